//! A schema as a table of types with resolved names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use coldframe_core::{Error, Limits, Result};
use serde_json::Value as Json;

/// Index of a type in [`Schema::types`].
pub(crate) type TypeId = usize;

/// A schema: types by index. All uses of a named type refer to the same entry.
///
/// If each of several named types uses the previous type twice, they describe a tree of exponential size. So
/// the smallest number of values in a datum of each type is counted when the schema is parsed, and the number
/// of Arrow fields when the Arrow type is built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema {
    types: Vec<Type>,
    root: TypeId,
    /// For each type, its smallest datum.
    least: Vec<Least>,
}

/// The smallest datum of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Least {
    /// The number of values in the datum, including the datum itself. Values in a branch or in a list are not
    /// counted, because they take bytes of their own.
    values: u64,
    /// Whether the smallest datum takes no bytes.
    empty: bool,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    /// No value.
    Null,
    /// A boolean.
    Boolean,
    /// 32 bits, with an optional logical type.
    Int(Logical),
    /// 64 bits, with an optional logical type.
    Long(Logical),
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
    /// Bytes, or a decimal.
    Bytes(Logical),
    /// UTF-8.
    String,
    /// Bytes of a fixed length, or a decimal.
    Fixed {
        /// The length.
        size: usize,
        /// The logical type.
        logical: Logical,
    },
    /// One of several symbols.
    Enum(Vec<String>),
    /// Values of one type.
    Array(TypeId),
    /// Values of one type by name.
    Map(TypeId),
    /// A record.
    Record {
        /// The record's name without the namespace, by which branches of a union are matched.
        name: String,
        /// The record's fields in order.
        fields: Vec<RecordField>,
    },
    /// A value of one of several types.
    Union(Vec<TypeId>),
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: TypeId,
}

/// A logical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logical {
    /// No logical type.
    Plain,
    /// Days since 1970.
    Date,
    /// Time of day.
    Time(TimeUnit),
    /// An instant (`true`) or a local time (`false`).
    Timestamp(TimeUnit, bool),
    /// A decimal with this precision and scale.
    Decimal(u8, i8),
}

impl Schema {
    /// Parses the JSON of a schema.
    pub(crate) fn parse(json: &[u8], limits: &Limits) -> Result<Self> {
        let length = json.len() as u64;
        limits.metadata("Avro schema", length)?;
        limits.decoded("Avro schema, decoded", length.saturating_mul(JSON_TIMES), length)?;
        let json: Json = serde_json::from_slice(json)
            .map_err(|e| Error::corrupt(format!("expected JSON, found {e}")).within("Avro schema"))?;
        let mut parser = Parser { types: Vec::new(), names: HashMap::new(), limits };
        let root = parser.parse(&json, "", 0).map_err(|e| e.within("Avro schema"))?;
        let types = parser.types;
        let mut least = vec![None; types.len()];
        for id in 0..types.len() {
            least_of(&types, id, &mut least, limits, 0).map_err(|e| e.within("Avro schema"))?;
        }
        Ok(Self { types, root, least: least.into_iter().flatten().collect() })
    }

    /// The outermost type.
    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    /// A type by its index; `Null` for an unknown index.
    pub(crate) fn get(&self, id: TypeId) -> &Type {
        self.types.get(id).unwrap_or(&Type::Null)
    }

    /// The fields of the outermost type, if it is a record.
    pub(crate) fn fields(&self) -> &[RecordField] {
        match self.get(self.root) {
            Type::Record { fields, .. } => fields,
            _ => &[],
        }
    }

    /// The outermost type in Arrow: a struct if it is a record.
    pub(crate) fn arrow(&self, limits: &Limits) -> Result<DataType> {
        Ok(self.arrow_field("value", self.root, limits, 0, &mut 0)?.data_type().clone())
    }

    /// A field of type `id`. The field is nullable if the type is a union with null. `made` counts the fields
    /// made so far.
    fn arrow_field(
        &self,
        name: &str,
        id: TypeId,
        limits: &Limits,
        depth: u64,
        made: &mut u64,
    ) -> Result<FieldRef> {
        limits.depth("Avro schema", depth)?;
        *made += 1;
        limits.columns("Avro schema", *made)?;
        let mut field = |of: TypeId, name: &str| self.arrow_field(name, of, limits, depth + 1, made);
        let (data_type, nullable) = match self.get(id) {
            Type::Null => (DataType::Null, true),
            Type::Boolean => (DataType::Boolean, false),
            Type::Int(logical) => (logical.int(), false),
            Type::Long(logical) => (logical.long(), false),
            Type::Float => (DataType::Float32, false),
            Type::Double => (DataType::Float64, false),
            Type::Bytes(Logical::Decimal(precision, scale)) => {
                (DataType::Decimal128(*precision, *scale), false)
            }
            Type::Bytes(_) => (DataType::Binary, false),
            Type::String | Type::Enum(_) => (DataType::Utf8, false),
            Type::Fixed { logical: Logical::Decimal(precision, scale), .. } => {
                (DataType::Decimal128(*precision, *scale), false)
            }
            Type::Fixed { size, .. } => {
                let size = i32::try_from(*size)
                    .map_err(|_| Error::corrupt(format!("fixed type of {size} bytes")))?;
                (DataType::FixedSizeBinary(size), false)
            }
            Type::Array(of) => (DataType::List(field(*of, "item")?), false),
            Type::Map(of) => {
                let key = Arc::new(Field::new("key", DataType::Utf8, false));
                let entries = DataType::Struct(Fields::from(vec![key, field(*of, "value")?]));
                (DataType::Map(Arc::new(Field::new("entries", entries, false)), false), false)
            }
            Type::Record { fields, .. } => {
                let fields: Vec<FieldRef> =
                    fields.iter().map(|f| field(f.of, &f.name)).collect::<Result<_>>()?;
                (DataType::Struct(fields.into()), false)
            }
            Type::Union(branches) => self.union_type(branches, |of| field(of, name))?,
        };
        Ok(Arc::new(Field::new(name, data_type, nullable)))
    }

    /// The Arrow type of a union, and whether it is nullable. The type is the type of the only non-null
    /// branch, or a struct of which one field is set.
    fn union_type(
        &self,
        branches: &[TypeId],
        mut field: impl FnMut(TypeId) -> Result<FieldRef>,
    ) -> Result<(DataType, bool)> {
        let values = self.value_branches(branches);
        let nullable = values.len() < branches.len();
        match values.as_slice() {
            [] => Ok((DataType::Null, true)),
            [(_, branch)] => {
                let inner = field(*branch)?;
                Ok((inner.data_type().clone(), nullable || inner.is_nullable()))
            }
            many => {
                let members = many.iter().enumerate().map(|(i, (_, of))| {
                    Ok(Field::new(format!("member{i}"), field(*of)?.data_type().clone(), true))
                });
                Ok((DataType::Struct(members.collect::<Result<Vec<Field>>>()?.into()), nullable))
            }
        }
    }

    /// The non-null branches of a union, with their indexes.
    pub(crate) fn value_branches(&self, branches: &[TypeId]) -> Vec<(usize, TypeId)> {
        let values = branches.iter().copied().enumerate();
        values.filter(|(_, id)| !matches!(self.get(*id), Type::Null)).collect()
    }

    /// A branch of a union of several types, as a field.
    pub(crate) fn member(&self, id: TypeId) -> Result<Field> {
        let field = self.arrow_field("member", id, &Limits::default(), 0, &mut 0)?;
        Ok(field.as_ref().clone().with_nullable(true))
    }

    /// The number of values in a datum that takes no bytes, or 0 if every datum of the type takes bytes. The
    /// input does not limit the number of such datums.
    pub(crate) fn without_bytes(&self, id: TypeId) -> u64 {
        self.least.get(id).filter(|least| least.empty).map_or(0, |least| least.values)
    }
}

/// The smallest datum of a type. Fails if the datum is infinite, or has more values than a file may have
/// columns.
fn least_of(
    types: &[Type],
    id: TypeId,
    known: &mut [Option<Least>],
    limits: &Limits,
    depth: u64,
) -> Result<Least> {
    if let Some(least) = known.get(id).copied().flatten() {
        return Ok(least);
    }
    // A record that contains itself without a union has no finite datum; here this exceeds the maximum depth.
    limits.depth("Avro schema", depth)?;
    let mut least = Least { values: 1, empty: false };
    match types.get(id) {
        None | Some(Type::Null) => least.empty = true,
        Some(Type::Fixed { size, .. }) => least.empty = *size == 0,
        Some(Type::Record { fields, .. }) => {
            least.empty = true;
            for field in fields {
                let of = least_of(types, field.of, known, limits, depth + 1)?;
                least.values = least.values.saturating_add(of.values);
                least.empty &= of.empty;
            }
        }
        Some(_) => {}
    }
    limits.columns("Avro schema", least.values)?;
    if let Some(place) = known.get_mut(id) {
        *place = Some(least);
    }
    Ok(least)
}

impl Logical {
    fn int(self) -> DataType {
        match self {
            Self::Date => DataType::Date32,
            Self::Time(_) => DataType::Time32(TimeUnit::Millisecond),
            _ => DataType::Int32,
        }
    }

    fn long(self) -> DataType {
        match self {
            Self::Time(_) => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp(unit, true) => DataType::Timestamp(unit, Some("UTC".into())),
            Self::Timestamp(unit, false) => DataType::Timestamp(unit, None),
            _ => DataType::Int64,
        }
    }

    /// The logical type that `json` states for a type stored as `base`. An unknown logical type is ignored.
    fn of(json: &Json, base: &str) -> Self {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond};
        let digits = |key: &str| json.get(key).and_then(Json::as_u64);
        match (base, json.get("logicalType").and_then(Json::as_str).unwrap_or_default()) {
            ("int", "date") => Self::Date,
            ("int", "time-millis") => Self::Time(Millisecond),
            ("long", "time-micros") => Self::Time(Microsecond),
            ("long", "timestamp-millis") => Self::Timestamp(Millisecond, true),
            ("long", "timestamp-micros") => Self::Timestamp(Microsecond, true),
            ("long", "timestamp-nanos") => Self::Timestamp(Nanosecond, true),
            ("long", "local-timestamp-millis") => Self::Timestamp(Millisecond, false),
            ("long", "local-timestamp-micros") => Self::Timestamp(Microsecond, false),
            ("long", "local-timestamp-nanos") => Self::Timestamp(Nanosecond, false),
            ("bytes" | "fixed", "decimal") => {
                let precision = digits("precision").and_then(|p| u8::try_from(p).ok()).unwrap_or(0);
                let scale = digits("scale").unwrap_or(0);
                match i8::try_from(scale) {
                    Ok(scale) if (1..=38).contains(&precision) && scale.cast_unsigned() <= precision => {
                        Self::Decimal(precision, scale)
                    }
                    _ => Self::Plain,
                }
            }
            _ => Self::Plain,
        }
    }
}

/// Maximum bytes of memory for a byte of JSON: two bytes, a number of one digit and a comma, become a value.
const JSON_TIMES: u64 = 16;

struct Parser<'a> {
    types: Vec<Type>,
    names: HashMap<String, TypeId>,
    limits: &'a Limits,
}

impl Parser<'_> {
    fn add(&mut self, of: Type) -> Result<TypeId> {
        self.limits.columns("Avro schema", self.types.len() as u64 + 1)?;
        self.types.push(of);
        Ok(self.types.len() - 1)
    }

    fn parse(&mut self, json: &Json, namespace: &str, depth: u64) -> Result<TypeId> {
        self.limits.depth("Avro schema", depth)?;
        match json {
            Json::String(name) => self.named(name, json, namespace),
            Json::Array(branches) if branches.is_empty() => {
                Err(Error::corrupt("expected a union's branches, found none"))
            }
            Json::Array(branches) => {
                let branches = branches.iter().map(|b| self.parse(b, namespace, depth + 1));
                let branches = branches.collect::<Result<Vec<_>>>()?;
                self.add(Type::Union(branches))
            }
            Json::Object(_) => match json.get("type") {
                Some(Json::String(name)) => self.complex(name, json, namespace, depth),
                Some(inner) => self.parse(inner, namespace, depth + 1),
                None => Err(Error::corrupt("expected a `type`, found an object without one")),
            },
            other => Err(Error::corrupt(format!("expected a type, found {other}"))),
        }
    }

    /// Resolves the name of a primitive type, or of a type that was defined earlier.
    fn named(&mut self, name: &str, json: &Json, namespace: &str) -> Result<TypeId> {
        let primitive = match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" => Type::Int(Logical::of(json, name)),
            "long" => Type::Long(Logical::of(json, name)),
            "float" => Type::Float,
            "double" => Type::Double,
            "bytes" => Type::Bytes(Logical::of(json, name)),
            "string" => Type::String,
            _ => {
                let known = self.names.get(&full_name(name, namespace)).or_else(|| self.names.get(name));
                return known
                    .copied()
                    .ok_or_else(|| Error::corrupt(format!("expected a known type, found {name:?}")));
            }
        };
        self.add(primitive)
    }

    fn complex(&mut self, kind: &str, json: &Json, namespace: &str, depth: u64) -> Result<TypeId> {
        let part = |key: &str| {
            json.get(key).ok_or_else(|| Error::corrupt(format!("expected `{key}` of a type {kind:?}")))
        };
        match kind {
            "array" => {
                let of = self.parse(part("items")?, namespace, depth + 1)?;
                self.add(Type::Array(of))
            }
            "map" => {
                let of = self.parse(part("values")?, namespace, depth + 1)?;
                self.add(Type::Map(of))
            }
            "enum" => {
                let symbols = part("symbols")?.as_array().into_iter().flatten();
                let symbols = symbols.filter_map(Json::as_str).map(str::to_owned).collect();
                self.define(Type::Enum(symbols), json, namespace).map(|(id, _)| id)
            }
            "fixed" => {
                let size = part("size")?.as_u64().unwrap_or(u64::MAX);
                let size = self.limits.block("Avro fixed", size)?;
                let logical = Logical::of(json, "fixed");
                self.define(Type::Fixed { size, logical }, json, namespace).map(|(id, _)| id)
            }
            "record" | "error" => {
                let name = part("name")?.as_str().unwrap_or_default();
                let name = name.rsplit('.').next().unwrap_or_default().to_owned();
                let empty = Type::Record { name: name.clone(), fields: Vec::new() };
                let (id, inner) = self.define(empty, json, namespace)?;
                let (mut fields, mut seen) = (Vec::new(), HashSet::new());
                for field in part("fields")?.as_array().into_iter().flatten() {
                    let of = field.get("type").ok_or_else(|| Error::corrupt("expected a field's `type`"))?;
                    let of = self.parse(of, &inner, depth + 1)?;
                    let name = field.get("name").and_then(Json::as_str);
                    let name = name.ok_or_else(|| Error::corrupt("expected a field's `name`"))?;
                    // Fields match by name, as in Avro's own readers.
                    if !seen.insert(name) {
                        let message = format!("expected each field of a record once, found `{name}` again");
                        return Err(Error::corrupt(message));
                    }
                    fields.push(RecordField { name: name.to_owned(), of });
                }
                if let Some(of) = self.types.get_mut(id) {
                    *of = Type::Record { name, fields };
                }
                Ok(id)
            }
            _ => self.named(kind, json, namespace),
        }
    }

    /// Adds a type under its name; also returns the namespace for the names inside it.
    fn define(&mut self, of: Type, json: &Json, namespace: &str) -> Result<(TypeId, String)> {
        let name = json.get("name").and_then(Json::as_str).unwrap_or_default();
        let namespace = json.get("namespace").and_then(Json::as_str).unwrap_or(namespace);
        let full = full_name(name, namespace);
        let inner = full.rsplit_once('.').map(|(space, _)| space.to_owned()).unwrap_or_default();
        let id = self.add(of)?;
        self.names.insert(full, id);
        Ok((id, inner))
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}
