//! Decodes datums straight into Arrow: a column for each requested part of the schema.
//!
//! If a parent is null, its child columns get nothing at first: they are padded when their next value
//! arrives, or at the end. So decoding a record of Hudi's metadata, which has only one of many payloads,
//! takes time only for that payload.

mod finish;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use arrow_schema::{DataType, Field};
use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;

use super::datum;
use super::schema::{Schema, Type, TypeId};

/// The values of one type while they are decoded.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    data_type: DataType,
    /// The number of branches of the union around the type; 0 if there is no union.
    branches: usize,
    /// The index of the union's null branch.
    null: Option<usize>,
    len: usize,
    /// The null bitmap of a nullable column.
    nulls: Option<NullBufferBuilder>,
    kind: BuilderKind,
}

#[derive(Debug)]
enum BuilderKind {
    Null,
    Boolean(BooleanBufferBuilder),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    /// Big-endian integers, either preceded by a length or of a fixed size.
    Decimal {
        precision: u8,
        size: Option<usize>,
        values: Vec<i128>,
    },
    Bytes(Strings),
    String(Strings),
    Enum(Vec<String>, Strings),
    Fixed {
        size: usize,
        data: Vec<u8>,
    },
    List {
        offsets: Vec<i32>,
        item: Box<ColumnBuilder>,
        /// If an item can take no bytes: the number of values in it; otherwise 0.
        without_bytes: u64,
    },
    Map {
        offsets: Vec<i32>,
        keys: Strings,
        value: Box<ColumnBuilder>,
    },
    Struct(Vec<FieldPart>),
    /// A union of several types: for each branch, the column of its values; `None` for null.
    Members {
        by_branch: Vec<Option<usize>>,
        members: Vec<ColumnBuilder>,
    },
}

/// A field of a record.
#[derive(Debug)]
enum FieldPart {
    Keep(String, Box<ColumnBuilder>),
    Skip(TypeId),
}

impl FieldPart {
    /// Reads the field of row `row`. First pads the field's column for the rows in which the record was null.
    fn read(&mut self, row: usize, schema: &Schema, cursor: &mut Cursor<'_>, limits: &Limits) -> Result<()> {
        match self {
            Self::Keep(name, column) => {
                column.pad(row);
                column.read(schema, cursor, limits).map_err(|e| e.within(name.clone()))
            }
            Self::Skip(id) => datum::skip(schema, *id, cursor, limits, 0),
        }
    }
}

/// Values of variable length.
#[derive(Debug)]
struct Strings {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new() }
    }
}

impl Strings {
    fn push(&mut self, value: &[u8]) -> Result<()> {
        self.data.extend_from_slice(value);
        self.offsets.push(offset(self.data.len())?);
        Ok(())
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.data.truncate(last(&self.offsets));
    }
}

/// Converts a length to an offset of Arrow. Readers end batches long before an offset overflows.
fn offset(len: usize) -> Result<i32> {
    i32::try_from(len).map_err(|_| {
        Error::corrupt(format!("{len} bytes or items in one batch of a column: the maximum is 2147483647"))
    })
}

fn last(offsets: &[i32]) -> usize {
    offsets.last().and_then(|o| usize::try_from(*o).ok()).unwrap_or(0)
}

impl ColumnBuilder {
    /// A column for datums of the schema's outermost type, decoded as `wanted`: the type that [`Schema::arrow`]
    /// returns, with struct fields possibly omitted.
    pub(crate) fn new(schema: &Schema, wanted: &DataType) -> Result<Self> {
        Self::of(schema, schema.root(), &Field::new("value", wanted.clone(), false))
    }

    /// A column of one type. The recursion follows `wanted`, whose depth was checked when it was built.
    fn of(schema: &Schema, id: TypeId, wanted: &Field) -> Result<Self> {
        if let Type::Union(branches) = schema.get(id) {
            let values = schema.value_branches(branches);
            if values.len() < 2 {
                // If all branches are null, any of them can be used.
                let branch = values.first().or(branches.first().map(|b| (0, *b)).as_ref()).map(|(_, id)| *id);
                let mut column =
                    Self::of(schema, branch.ok_or_else(|| mismatch(wanted.data_type()))?, wanted)?;
                column.branches = branches.len();
                column.null = (0..branches.len()).find(|i| values.iter().all(|(v, _)| v != i));
                return Ok(column);
            }
        }
        let data_type = wanted.data_type().clone();
        let kind = Self::kind(schema, id, &data_type)?;
        let nulls = wanted.is_nullable().then(|| NullBufferBuilder::new(0));
        Ok(Self { data_type, branches: 0, null: None, len: 0, nulls, kind })
    }

    fn kind(schema: &Schema, id: TypeId, wanted: &DataType) -> Result<BuilderKind> {
        let decimal = |precision: u8, size| BuilderKind::Decimal { precision, size, values: Vec::new() };
        Ok(match (schema.get(id), wanted) {
            (Type::Null, _) => BuilderKind::Null,
            (Type::Boolean, _) => BuilderKind::Boolean(BooleanBufferBuilder::new(0)),
            (Type::Int(_), _) => BuilderKind::Int(Vec::new()),
            (Type::Long(_), _) => BuilderKind::Long(Vec::new()),
            (Type::Float, _) => BuilderKind::Float(Vec::new()),
            (Type::Double, _) => BuilderKind::Double(Vec::new()),
            (Type::Bytes(_), DataType::Decimal128(precision, _)) => decimal(*precision, None),
            (Type::Fixed { size, .. }, DataType::Decimal128(precision, _)) => {
                decimal(*precision, Some(*size))
            }
            (Type::Bytes(_), _) => BuilderKind::Bytes(Strings::default()),
            (Type::String, _) => BuilderKind::String(Strings::default()),
            (Type::Enum(symbols), _) => BuilderKind::Enum(symbols.clone(), Strings::default()),
            (Type::Fixed { size, .. }, _) => BuilderKind::Fixed { size: *size, data: Vec::new() },
            (Type::Array(of), DataType::List(field)) => BuilderKind::List {
                offsets: vec![0],
                item: Box::new(Self::of(schema, *of, field)?),
                without_bytes: schema.without_bytes(*of),
            },
            (Type::Map(of), DataType::Map(entries, _)) => {
                let DataType::Struct(fields) = entries.data_type() else { return Err(mismatch(wanted)) };
                let value = fields.get(1).ok_or_else(|| mismatch(wanted))?;
                let value = Box::new(Self::of(schema, *of, value)?);
                BuilderKind::Map { offsets: vec![0], keys: Strings::default(), value }
            }
            (Type::Record { fields, .. }, DataType::Struct(kept)) => {
                let parts = fields.iter().map(|f| match kept.iter().find(|k| *k.name() == f.name) {
                    Some(field) => {
                        Ok(FieldPart::Keep(f.name.clone(), Box::new(Self::of(schema, f.of, field)?)))
                    }
                    None => Ok(FieldPart::Skip(f.of)),
                });
                BuilderKind::Struct(parts.collect::<Result<_>>()?)
            }
            (Type::Union(branches), DataType::Struct(fields)) => {
                let values = schema.value_branches(branches);
                let mut by_branch = vec![None; branches.len()];
                let mut members = Vec::new();
                for (i, (branch, of)) in values.into_iter().enumerate() {
                    // Members that are not requested are decoded too, because unions are small.
                    let field = fields.iter().find(|f| *f.name() == format!("member{i}"));
                    members.push(match field {
                        Some(field) => Self::of(schema, of, field)?,
                        None => Self::of(schema, of, &schema.member(of)?)?,
                    });
                    if let Some(place) = by_branch.get_mut(branch) {
                        *place = Some(i);
                    }
                }
                BuilderKind::Members { by_branch, members }
            }
            _ => return Err(mismatch(wanted)),
        })
    }

    /// The number of values so far.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Decodes one datum, which must fill `bytes`. On failure the column is unchanged.
    pub(crate) fn push(&mut self, schema: &Schema, bytes: &[u8], limits: &Limits) -> Result<()> {
        let (len, mut cursor) = (self.len, Cursor::new(bytes, 0));
        let result = self.read(schema, &mut cursor, limits).and_then(|()| cursor.finish());
        if result.is_err() {
            self.truncate(len);
        }
        result
    }

    /// Appends a null.
    pub(crate) fn push_null(&mut self) {
        self.pad(self.len + 1);
    }

    fn read(&mut self, schema: &Schema, cursor: &mut Cursor<'_>, limits: &Limits) -> Result<()> {
        if self.branches > 0 && Some(datum::read_index(cursor, self.branches, "branch")?) == self.null {
            self.push_null();
            return Ok(());
        }
        let len = self.len;
        match &mut self.kind {
            BuilderKind::Null => {}
            BuilderKind::Boolean(values) => values.append(datum::read_bool(cursor)?),
            BuilderKind::Int(values) => values.push(datum::read_int(cursor)?),
            BuilderKind::Long(values) => values.push(cursor.zigzag()?),
            BuilderKind::Float(values) => values.push(f32::from_le_bytes(cursor.array()?)),
            BuilderKind::Double(values) => values.push(f64::from_le_bytes(cursor.array()?)),
            BuilderKind::Decimal { precision, size, values } => {
                let at = cursor.offset();
                let bytes = match size {
                    Some(size) => cursor.take(*size)?,
                    None => datum::read_bytes(cursor)?,
                };
                values.push(decimal(bytes, *precision).map_err(|e| e.at(at))?);
            }
            BuilderKind::Bytes(values) => values.push(datum::read_bytes(cursor)?)?,
            BuilderKind::String(values) => values.push(datum::read_str(cursor)?.as_bytes())?,
            BuilderKind::Enum(symbols, values) => {
                let index = datum::read_index(cursor, symbols.len(), "symbol")?;
                values.push(symbols.get(index).map(String::as_bytes).unwrap_or_default())?;
            }
            BuilderKind::Fixed { size, data } => data.extend_from_slice(cursor.take(*size)?),
            BuilderKind::List { offsets, item, without_bytes } => {
                datum::read_blocks(cursor, limits, *without_bytes, |c| item.read(schema, c, limits))?;
                offsets.push(offset(item.len)?);
            }
            BuilderKind::Map { offsets, keys, value } => {
                datum::read_blocks(cursor, limits, 0, |c| {
                    keys.push(datum::read_str(c)?.as_bytes())?;
                    value.read(schema, c, limits)
                })?;
                offsets.push(offset(value.len)?);
            }
            BuilderKind::Struct(parts) => {
                for part in parts {
                    part.read(len, schema, cursor, limits)?;
                }
            }
            BuilderKind::Members { by_branch, members } => {
                let branch = datum::read_index(cursor, by_branch.len(), "branch")?;
                let member = by_branch.get(branch).copied().flatten().and_then(|i| members.get_mut(i));
                let Some(member) = member else {
                    self.push_null();
                    return Ok(());
                };
                member.pad(len);
                member.read(schema, cursor, limits)?;
            }
        }
        self.len += 1;
        if let Some(nulls) = &mut self.nulls {
            nulls.append_non_null();
        }
        Ok(())
    }

    /// Appends nulls (or defaults, under a null parent) up to a length of `len`.
    fn pad(&mut self, len: usize) {
        let Some(n) = len.checked_sub(self.len).filter(|n| *n > 0) else { return };
        if let Some(nulls) = &mut self.nulls {
            nulls.append_n_nulls(n);
        }
        self.len = len;
        let repeat = |offsets: &mut Vec<i32>| {
            offsets.resize(len + 1, offsets.last().copied().unwrap_or(0));
        };
        match &mut self.kind {
            BuilderKind::Boolean(values) => values.append_n(n, false),
            BuilderKind::Int(values) => values.resize(len, 0),
            BuilderKind::Long(values) => values.resize(len, 0),
            BuilderKind::Float(values) => values.resize(len, 0.0),
            BuilderKind::Double(values) => values.resize(len, 0.0),
            BuilderKind::Decimal { values, .. } => values.resize(len, 0),
            BuilderKind::Bytes(values) | BuilderKind::String(values) | BuilderKind::Enum(_, values) => {
                repeat(&mut values.offsets)
            }
            BuilderKind::Fixed { size, data } => data.resize(len * *size, 0),
            BuilderKind::List { offsets, .. } | BuilderKind::Map { offsets, .. } => repeat(offsets),
            // The children of these types are padded only when they are needed.
            BuilderKind::Null | BuilderKind::Struct(_) | BuilderKind::Members { .. } => {}
        }
    }

    /// Drops all values after the first `len`, including a partly decoded value.
    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if let Some(nulls) = &mut self.nulls {
            nulls.truncate(len);
        }
        match &mut self.kind {
            BuilderKind::Null => {}
            BuilderKind::Boolean(values) => values.truncate(len),
            BuilderKind::Int(values) => values.truncate(len),
            BuilderKind::Long(values) => values.truncate(len),
            BuilderKind::Float(values) => values.truncate(len),
            BuilderKind::Double(values) => values.truncate(len),
            BuilderKind::Decimal { values, .. } => values.truncate(len),
            BuilderKind::Bytes(values) | BuilderKind::String(values) | BuilderKind::Enum(_, values) => {
                values.truncate(len)
            }
            BuilderKind::Fixed { size, data } => data.truncate(len * *size),
            BuilderKind::List { offsets, item, .. } => {
                offsets.truncate(len + 1);
                item.truncate(last(offsets));
            }
            BuilderKind::Map { offsets, keys, value } => {
                offsets.truncate(len + 1);
                keys.truncate(last(offsets).min(keys.len()));
                value.truncate(last(offsets));
            }
            BuilderKind::Struct(parts) => parts.iter_mut().for_each(|part| {
                if let FieldPart::Keep(_, column) = part {
                    column.truncate(len);
                }
            }),
            BuilderKind::Members { members, .. } => members.iter_mut().for_each(|m| m.truncate(len)),
        }
    }

    /// Returns the values as an array and empties the column.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        finish::finish(self, self.len)
    }
}

fn mismatch(wanted: &DataType) -> Error {
    Error::schema(format!("the Avro schema of the file does not decode to {wanted}"))
}

/// Reads a big-endian two's complement number of any length. An error if it has more digits than the
/// precision.
fn decimal(bytes: &[u8], precision: u8) -> Result<i128> {
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let filler = if negative { 0xff } else { 0 };
    let mut value = [filler; 16];
    let (extra, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    if let Some(place) = value.get_mut(16 - digits.len()..) {
        place.copy_from_slice(digits);
    }
    let value = i128::from_be_bytes(value);
    let bound = 10_u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    if extra.iter().any(|b| *b != filler) || (value < 0) != negative || value.unsigned_abs() >= bound {
        return Err(Error::corrupt(format!("expected a decimal of at most {precision} digits, found more")));
    }
    Ok(value)
}
