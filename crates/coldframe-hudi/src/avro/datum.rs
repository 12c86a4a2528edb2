//! One datum as a tree, for code that inspects single values, such as merging two records.

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::limits::walk::Walk as Budget;
use coldframe_encoding::varint::put_uleb128;

use super::schema::{Schema, Type, TypeId};

/// Maximum number of values of a datum for each of its bytes; [`Limits::max_columns`] is added to the
/// product.
const VALUES_PER_BYTE: u64 = 4;
/// Maximum values of an array whose items take no bytes.
const MAX_WITHOUT_BYTES: u64 = 4096;

/// A value. Text and bytes are borrowed from the input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum<'a> {
    /// Null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An int or a long.
    Long(i64),
    /// 32 bits.
    Float(f32),
    /// 64 bits.
    Double(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Bytes of the type's fixed length.
    Fixed(&'a [u8]),
    /// Text.
    String(&'a str),
    /// The index of a symbol.
    Enum(usize),
    /// Items.
    Array(Vec<Datum<'a>>),
    /// Key-value pairs, as written.
    Map(Vec<(&'a str, Datum<'a>)>),
    /// Fields in order.
    Record(Vec<Datum<'a>>),
    /// The index of a branch and its value.
    Union(usize, Box<Datum<'a>>),
}

impl<'a> Datum<'a> {
    /// Decodes `bytes` as exactly one datum of the schema's outermost type.
    pub(crate) fn decode(schema: &Schema, bytes: &'a [u8], limits: &Limits) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        let value = Self::next(schema, &mut cursor, limits)?;
        cursor.finish()?;
        Ok(value)
    }

    /// Decodes a datum of the schema's outermost type from the front of `cursor`.
    pub(crate) fn next(schema: &Schema, cursor: &mut Cursor<'a>, limits: &Limits) -> Result<Self> {
        // One byte may select a branch with many values that take no bytes, so the number of values is
        // bounded by the bytes and the maximum size of a schema.
        let most =
            (cursor.remaining() as u64).saturating_mul(VALUES_PER_BYTE).saturating_add(limits.max_columns);
        Self::read(schema, schema.root(), cursor, limits, (0, &mut Budget::new("Avro value", most)))
    }

    /// Decodes a datum of type `id` from the front of `cursor`.
    fn read(
        schema: &Schema,
        id: TypeId,
        cursor: &mut Cursor<'a>,
        limits: &Limits,
        (depth, budget): (u64, &mut Budget),
    ) -> Result<Self> {
        limits.depth("Avro datum", depth)?;
        budget.visit()?;
        Ok(match schema.get(id) {
            Type::Null => Self::Null,
            Type::Boolean => Self::Boolean(read_bool(cursor)?),
            Type::Int(_) => Self::Long(read_int(cursor)?.into()),
            Type::Long(_) => Self::Long(cursor.zigzag()?),
            Type::Float => Self::Float(f32::from_le_bytes(cursor.array()?)),
            Type::Double => Self::Double(f64::from_le_bytes(cursor.array()?)),
            Type::Bytes(_) => Self::Bytes(read_bytes(cursor)?),
            Type::String => Self::String(read_str(cursor)?),
            Type::Fixed { size, .. } => Self::Fixed(cursor.take(*size)?),
            Type::Enum(symbols) => Self::Enum(read_index(cursor, symbols.len(), "symbol")?),
            Type::Array(of) => {
                let mut items = Vec::new();
                read_blocks(cursor, limits, schema.without_bytes(*of), |cursor| {
                    items.push(Self::read(schema, *of, cursor, limits, (depth + 1, budget))?);
                    Ok(())
                })?;
                Self::Array(items)
            }
            Type::Map(of) => {
                let mut items = Vec::new();
                read_blocks(cursor, limits, 0, |cursor| {
                    let key = read_str(cursor)?;
                    items.push((key, Self::read(schema, *of, cursor, limits, (depth + 1, budget))?));
                    Ok(())
                })?;
                Self::Map(items)
            }
            Type::Record { fields, .. } => {
                let fields = fields.iter().map(|f| {
                    Self::read(schema, f.of, cursor, limits, (depth + 1, budget))
                        .map_err(|e| e.within(f.name.clone()))
                });
                Self::Record(fields.collect::<Result<_>>()?)
            }
            Type::Union(branches) => {
                let branch = read_index(cursor, branches.len(), "branch")?;
                let of = branches.get(branch).copied().unwrap_or_default();
                Self::Union(branch, Box::new(Self::read(schema, of, cursor, limits, (depth + 1, budget))?))
            }
        })
    }

    /// Appends the encoded value.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Boolean(b) => out.push(u8::from(*b)),
            Self::Long(v) => put_long(out, *v),
            Self::Float(v) => out.extend(v.to_le_bytes()),
            Self::Double(v) => out.extend(v.to_le_bytes()),
            Self::Bytes(v) => put_bytes(out, v),
            Self::Fixed(v) => out.extend_from_slice(v),
            Self::String(v) => put_bytes(out, v.as_bytes()),
            Self::Enum(i) => put_uleb128(out, (*i as u64) << 1),
            Self::Array(items) => {
                put_count(out, items.len());
                items.iter().for_each(|v| v.encode(out));
                if !items.is_empty() {
                    out.push(0);
                }
            }
            Self::Map(items) => {
                put_count(out, items.len());
                for (key, value) in items {
                    put_bytes(out, key.as_bytes());
                    value.encode(out);
                }
                if !items.is_empty() {
                    out.push(0);
                }
            }
            Self::Record(fields) => fields.iter().for_each(|v| v.encode(out)),
            Self::Union(branch, value) => {
                put_count(out, *branch);
                value.encode(out);
            }
        }
    }

    /// The value inside all unions around it.
    pub(crate) fn unwrap_union(&self) -> &Datum<'a> {
        match self {
            Self::Union(_, inner) => inner.unwrap_union(),
            other => other,
        }
    }

    /// The field `name` of a record of type `id`, with the unions around its value removed.
    pub(crate) fn field<'s>(&'s self, schema: &Schema, id: TypeId, name: &str) -> Option<&'s Datum<'a>> {
        let (Self::Record(values), Type::Record { fields, .. }) = (self.unwrap_union(), schema.get(id))
        else {
            return None;
        };
        let index = fields.iter().position(|f| f.name == name)?;
        values.get(index).map(Datum::unwrap_union)
    }

    /// Converts the value to another schema: fields match by name, branches of unions by type. Drops fields that the
    /// other schema lacks. A field that exists only in the other schema becomes null; fails if the field
    /// cannot be null. Both schemas come from files of one table, so a mismatch is damage.
    pub(crate) fn resolve(&self, from: (&Schema, TypeId), to: (&Schema, TypeId)) -> Result<Datum<'a>> {
        let ((a, from_id), (b, to_id)) = (from, to);
        match (self, a.get(from_id), b.get(to_id)) {
            (Self::Union(branch, value), Type::Union(branches), _) => {
                value.resolve((a, branches.get(*branch).copied().unwrap_or_default()), to)
            }
            (value, of, Type::Union(branches)) => {
                let index = branches.iter().position(|id| same_kind(of, b.get(*id)));
                let branch = index
                    .ok_or_else(|| Error::corrupt("the other schema lacks the union branch of a value"))?;
                let id = branches.get(branch).copied().unwrap_or_default();
                Ok(Datum::Union(branch, Box::new(value.resolve(from, (b, id))?)))
            }
            (Self::Record(values), Type::Record { fields, .. }, Type::Record { fields: wanted, .. }) => {
                let resolved = wanted.iter().map(|w| {
                    let index = fields.iter().position(|f| f.name == w.name);
                    match index.and_then(|i| Some((values.get(i)?, fields.get(i)?))) {
                        Some((value, field)) => value.resolve((a, field.of), (b, w.of)),
                        None => absent(b, w.of)
                            .ok_or_else(|| Error::corrupt(format!("field {:?} is missing", w.name))),
                    }
                });
                Ok(Datum::Record(resolved.collect::<Result<_>>()?))
            }
            (Self::Array(items), Type::Array(x), Type::Array(y)) => {
                let items = items.iter().map(|v| v.resolve((a, *x), (b, *y)));
                Ok(Datum::Array(items.collect::<Result<_>>()?))
            }
            (Self::Map(items), Type::Map(x), Type::Map(y)) => {
                let items = items.iter().map(|(k, v)| Ok((*k, v.resolve((a, *x), (b, *y))?)));
                Ok(Datum::Map(items.collect::<Result<_>>()?))
            }
            (value, x, y) if same_kind(x, y) => Ok(value.clone()),
            (_, x, y) => Err(Error::corrupt(format!("expected {y:?}, found {x:?}"))),
        }
    }
}

/// The default of a field that the writer's schema lacks.
fn absent<'a>(schema: &Schema, id: TypeId) -> Option<Datum<'a>> {
    match schema.get(id) {
        Type::Null => Some(Datum::Null),
        Type::Boolean => Some(Datum::Boolean(false)),
        Type::Int(_) | Type::Long(_) => Some(Datum::Long(0)),
        Type::Union(branches) => {
            let null = branches.iter().position(|id| matches!(schema.get(*id), Type::Null))?;
            Some(Datum::Union(null, Box::new(Datum::Null)))
        }
        _ => None,
    }
}

fn same_kind(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Record { name: x, .. }, Type::Record { name: y, .. }) => x == y,
        (Type::Fixed { size: x, .. }, Type::Fixed { size: y, .. }) => x == y,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// A boolean.
pub(crate) fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool> {
    let at = cursor.offset();
    match cursor.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::corrupt(format!("expected a boolean of 0 or 1, found {other}")).at(at)),
    }
}

/// An int.
pub(crate) fn read_int(cursor: &mut Cursor<'_>) -> Result<i32> {
    let at = cursor.offset();
    let value = cursor.zigzag()?;
    i32::try_from(value)
        .map_err(|_| Error::corrupt(format!("expected a 32-bit integer, found {value}")).at(at))
}

/// Bytes preceded by their length.
#[inline]
pub(crate) fn read_bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.zigzag()?;
    cursor.take_signed(length)
}

/// Text preceded by its length.
pub(crate) fn read_str<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let at = cursor.offset();
    simdutf8::basic::from_utf8(read_bytes(cursor)?)
        .map_err(|_| Error::corrupt("expected UTF-8, found other bytes").at(at))
}

/// An index below `count`.
#[inline]
pub(crate) fn read_index(cursor: &mut Cursor<'_>, count: usize, what: &str) -> Result<usize> {
    let at = cursor.offset();
    let index = cursor.zigzag()?;
    usize::try_from(index)
        .ok()
        .filter(|i| *i < count)
        .ok_or_else(|| Error::corrupt(format!("expected a {what} below {count}, found {index}")).at(at))
}

/// Calls `item` for each item of an array or a map. `without_bytes`: the number of values in an item that may
/// take no bytes. The input does not limit the number of such items, so this function does; every other item
/// takes at least a byte.
pub(crate) fn read_blocks<'a>(
    cursor: &mut Cursor<'a>,
    limits: &Limits,
    without_bytes: u64,
    mut item: impl FnMut(&mut Cursor<'a>) -> Result<()>,
) -> Result<u64> {
    let mut total: u64 = 0;
    loop {
        let at = cursor.offset();
        let mut count = cursor.zigzag()?;
        if count == 0 {
            return Ok(total);
        }
        if count < 0 {
            let bytes = cursor.zigzag()?;
            if usize::try_from(bytes).map_or(true, |n| n > cursor.remaining()) {
                let left = cursor.remaining();
                return Err(Error::corrupt(format!(
                    "expected a block of at most {left} bytes, found {bytes}"
                ))
                .at(at));
            }
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        total = total.saturating_add(count.unsigned_abs());
        if without_bytes > 0 {
            let bound =
                Limits { max_unit_rows: Some(limits.max_unbacked_rows().min(MAX_WITHOUT_BYTES)), ..*limits };
            bound.unit_rows(
                "values of an Avro array that take no bytes",
                total.saturating_mul(without_bytes),
            )?;
        } else if count.unsigned_abs() > cursor.remaining() as u64 {
            let left = cursor.remaining();
            return Err(
                Error::corrupt(format!("expected at most {left} items in a block, found {count}")).at(at)
            );
        }
        for _ in 0..count {
            item(cursor)?;
        }
    }
}

/// Skips a datum of type `id`.
pub(crate) fn skip(
    schema: &Schema,
    id: TypeId,
    cursor: &mut Cursor<'_>,
    limits: &Limits,
    depth: u64,
) -> Result<()> {
    limits.depth("Avro datum", depth)?;
    match schema.get(id) {
        Type::Null => Ok(()),
        Type::Boolean => read_bool(cursor).map(drop),
        Type::Int(_) | Type::Long(_) | Type::Enum(_) => cursor.uleb128().map(drop),
        Type::Float => cursor.skip(4),
        Type::Double => cursor.skip(8),
        Type::Bytes(_) | Type::String => read_bytes(cursor).map(drop),
        Type::Fixed { size, .. } => cursor.skip(*size),
        Type::Array(of) => read_blocks(cursor, limits, schema.without_bytes(*of), |c| {
            skip(schema, *of, c, limits, depth + 1)
        })
        .map(drop),
        Type::Map(of) => read_blocks(cursor, limits, 0, |c| {
            read_bytes(c)?;
            skip(schema, *of, c, limits, depth + 1)
        })
        .map(drop),
        Type::Record { fields, .. } => {
            fields.iter().try_for_each(|f| skip(schema, f.of, cursor, limits, depth + 1))
        }
        Type::Union(branches) => {
            let branch = read_index(cursor, branches.len(), "branch")?;
            skip(schema, branches.get(branch).copied().unwrap_or_default(), cursor, limits, depth + 1)
        }
    }
}

fn put_long(out: &mut Vec<u8>, value: i64) {
    put_uleb128(out, (value << 1 ^ value >> 63).cast_unsigned());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_uleb128(out, (count as u64) << 1);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}
