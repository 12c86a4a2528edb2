//! Finds the ORC types for the columns of an Arrow schema.
//!
//! | Arrow | ORC |
//! |---|---|
//! | bool, int8, int16, int32, int64 | boolean, tinyint, smallint, int, bigint |
//! | float16, float32, float64 | float, float, double |
//! | string (all layouts); binary (all layouts) | string, or varchar(n) or char(n) by the option `types`; binary |
//! | date32, date64 | date |
//! | timestamp of any unit, without and with a zone | timestamp, timestamp with local time zone |
//! | decimal of up to 38 digits | decimal |
//! | list (all layouts) | list |
//! | map, struct, union | map, struct, uniontype |
//! | dictionary, run-end encoded | the types of their values |
//!
//! ORC has no unsigned integers, times of day or intervals: the writer refuses them. Metadata of fields
//! becomes attributes of types.

use arrow_schema::{DataType, Field, Schema, UnionMode};
use coldframe_core::types::HIVE_TYPE;
use coldframe_encoding::{Error, Limits, Result};

use crate::layout::proto;

/// Hive's limit for varchar.
const MAX_VARCHAR: u32 = 65_535;
/// Hive's limit for char.
const MAX_CHAR: u32 = 255;

/// Maximum number of branches of a union: its tag is a signed byte.
const MAX_BRANCHES: usize = 128;

/// A column and its children.
#[derive(Clone, Debug)]
pub(super) struct ColumnType {
    /// The column's number in the file; the root has 0.
    pub(super) id: u32,
    /// The column's path from the root, `a.b.c`.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) children: Vec<ColumnType>,
    /// Whether the column's values may be null.
    pub(super) nullable: bool,
    attributes: Vec<(String, String)>,
}

/// Limit for the characters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// string
    Any,
    /// varchar(n): longer text is truncated.
    AtMost(u32),
    /// char(n): longer text is truncated, shorter text is padded with blanks.
    Exactly(u32),
}

impl std::str::FromStr for Length {
    type Err = Error;

    /// Parses a type in Hive's notation.
    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let within = |name: &str, most: u32| {
            let number = lower.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')')?;
            number.trim().parse::<u32>().ok().filter(|n| (1..=most).contains(n))
        };
        match (lower.as_str(), within("varchar", MAX_VARCHAR), within("char", MAX_CHAR)) {
            ("string", ..) => Ok(Self::Any),
            (_, Some(n), _) => Ok(Self::AtMost(n)),
            (_, _, Some(n)) => Ok(Self::Exactly(n)),
            _ => Err(Error::invalid(format!(
                "option `types`: expected string, varchar(1) to varchar({MAX_VARCHAR}) or char(1) to char({MAX_CHAR}), found {text:?}"
            ))),
        }
    }
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    String(Length),
    Binary,
    Date,
    /// A timestamp; whether its values are instants.
    Timestamp(bool),
    Decimal(u8, i8),
    List,
    Map,
    /// A struct; the names of its children.
    Struct(Vec<String>),
    Union,
}

impl Kind {
    /// `Type.kind`
    fn code(&self) -> u32 {
        match self {
            Self::Boolean => 0,
            Self::Byte => 1,
            Self::Short => 2,
            Self::Int => 3,
            Self::Long => 4,
            Self::Float => 5,
            Self::Double => 6,
            Self::String(Length::Any) => 7,
            Self::Binary => 8,
            Self::Timestamp(false) => 9,
            Self::List => 10,
            Self::Map => 11,
            Self::Struct(_) => 12,
            Self::Union => 13,
            Self::Decimal(..) => 14,
            Self::Date => 15,
            Self::String(Length::AtMost(_)) => 16,
            Self::String(Length::Exactly(_)) => 17,
            Self::Timestamp(true) => 18,
        }
    }
}

impl ColumnType {
    /// The type of the root. `lengths` are the lengths of text columns, by path.
    pub(super) fn of(schema: &Schema, lengths: &[(String, Length)]) -> Result<Self> {
        let root = Field::new("", DataType::Struct(schema.fields().clone()), false);
        let mut types = Types { next: 0, limits: Limits::default() };
        let mut root = types.of_field(&root, "", 0)?;
        let columns = types.next.saturating_sub(1);
        if u64::from(columns) > types.limits.max_columns {
            return Err(Error::schema(format!(
                "expected at most {} columns including nested ones, the reader's default limit; \
                 found {columns}",
                types.limits.max_columns
            )));
        }
        for (path, length) in lengths {
            let Some(column) = root.find(path) else {
                return Err(Error::not_found(format!("column {path:?} of `types`")));
            };
            if !matches!(column.kind, Kind::String(_)) {
                return Err(Error::invalid(format!("option `types`: column {path:?} has no text")));
            }
            column.kind = Kind::String(*length);
        }
        Ok(root)
    }

    fn find(&mut self, path: &str) -> Option<&mut Self> {
        if self.id > 0 && self.path == path {
            return Some(self);
        }
        self.children.iter_mut().find_map(|c| c.find(path))
    }

    /// This type and its children, in order of their numbers.
    pub(super) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        self.children.iter().for_each(|c| all.extend(c.all()));
        all
    }

    /// The type as the footer stores it.
    pub(super) fn to_proto(&self) -> proto::Type {
        let pair = |(key, value): &(String, String)| proto::StringPair {
            key: Some(key.clone()),
            value: Some(value.clone()),
        };
        let mut to = proto::Type {
            kind: Some(self.kind.code()),
            subtypes: self.children.iter().map(|c| c.id).collect(),
            attributes: self.attributes.iter().map(pair).collect(),
            ..Default::default()
        };
        match &self.kind {
            Kind::Struct(names) => to.field_names.clone_from(names),
            Kind::String(Length::AtMost(n) | Length::Exactly(n)) => to.maximum_length = Some(*n),
            Kind::Decimal(precision, scale) => {
                to.precision = Some((*precision).into());
                to.scale = u32::try_from(*scale).ok();
            }
            _ => {}
        }
        to
    }
}

struct Types {
    next: u32,
    limits: Limits,
}

impl Types {
    fn of_field(&mut self, field: &Field, parent: &str, depth: u64) -> Result<ColumnType> {
        // Readers count the root as the first level of the tree.
        if depth >= self.limits.max_depth {
            return Err(Error::schema(format!(
                "expected types of at most {} levels, found a deeper one",
                self.limits.max_depth - 1
            ))
            .within(format!("column {:?}", short(parent))));
        }
        let id = self.next;
        self.next += 1;
        let separator = if parent.is_empty() { "" } else { "." };
        let path = format!("{parent}{separator}{}", field.name());
        check_extension(field).map_err(|e| e.within(format!("column {path:?}")))?;
        let mut children = Vec::new();
        let mut child = |types: &mut Self, field: &Field| -> Result<()> {
            children.push(types.of_field(field, &path, depth + 1)?);
            Ok(())
        };
        let kind = match values_of(field.data_type()) {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                child(self, item)?;
                Kind::List
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(entries) = entries.data_type() else {
                    return Err(Error::schema(format!("expected a map of structs, found one of {entries}"))
                        .within(path));
                };
                entries.iter().try_for_each(|f| child(self, f))?;
                // A map with a null key could not be read.
                if let Some(key) = children.first_mut() {
                    key.nullable = false;
                }
                Kind::Map
            }
            DataType::Struct(fields) => {
                fields.iter().try_for_each(|f| child(self, f))?;
                Kind::Struct(fields.iter().map(|f| f.name().clone()).collect())
            }
            DataType::Union(branches, UnionMode::Sparse | UnionMode::Dense) => {
                if branches.len() > MAX_BRANCHES {
                    let n = branches.len();
                    return Err(Error::schema(format!(
                        "a union of {n} types: ORC has at most {MAX_BRANCHES}"
                    ))
                    .within(path));
                }
                branches.iter().try_for_each(|(_, f)| child(self, f))?;
                Kind::Union
            }
            leaf => leaf_kind(leaf).map_err(|e| e.within(format!("column {path:?}")))?,
        };
        // The Hive type of a column is not stored as an attribute.
        let kept = field.metadata().iter().filter(|(key, _)| *key != HIVE_TYPE);
        let mut attributes: Vec<_> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
        attributes.sort();
        Ok(ColumnType { id, path, kind, children, nullable: field.is_nullable(), attributes })
    }
}

/// The start of a path that is too long for a message.
fn short(path: &str) -> &str {
    let end = path.char_indices().nth(60).map_or(path.len(), |(at, _)| at);
    path.get(..end).unwrap_or_default()
}

/// Arrow's name of an extension type, in a field's metadata.
const EXTENSION: &str = "ARROW:extension:name";

/// Refuses an extension type whose storage type is read from ORC as another type, because the extension type
/// would be wrong for it.
fn check_extension(field: &Field) -> Result<()> {
    let Some(name) = field.metadata().get(EXTENSION) else { return Ok(()) };
    if is_read_back(field.data_type()) {
        return Ok(());
    }
    Err(Error::schema(format!(
        "the extension type {name} is stored as {}, which ORC reads back as another type: cast the column to its \
         storage type first",
        field.data_type()
    )))
}

/// Whether a column of the type is read as the same type, except for the unit of times.
fn is_read_back(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Timestamp(..)
        | DataType::Decimal128(..) => true,
        DataType::List(item) => is_read_back(item.data_type()),
        DataType::Map(entries, _) => is_read_back(entries.data_type()),
        DataType::Struct(fields) => fields.iter().all(|f| is_read_back(f.data_type())),
        _ => false,
    }
}

/// The value type of dictionaries and run-end encoded arrays.
pub(super) fn values_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values_of(values),
        DataType::RunEndEncoded(_, values) => values_of(values.data_type()),
        other => other,
    }
}

fn leaf_kind(data_type: &DataType) -> Result<Kind> {
    Ok(match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Int8 => Kind::Byte,
        DataType::Int16 => Kind::Short,
        DataType::Int32 => Kind::Int,
        DataType::Int64 => Kind::Long,
        DataType::Float16 | DataType::Float32 => Kind::Float,
        DataType::Float64 => Kind::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::String(Length::Any),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Kind::Binary
        }
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(_, zone) => Kind::Timestamp(zone.is_some()),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let digits = i8::try_from(*precision).unwrap_or(i8::MAX);
            if digits > 38 || *scale < 0 || *scale > digits {
                return Err(Error::schema(format!(
                    "ORC decimals have 1 to 38 digits, and a scale of at most as many; found {data_type}"
                )));
            }
            Kind::Decimal(*precision, *scale)
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            return Err(Error::schema(format!(
                "ORC has no unsigned integers: cast {data_type} to a signed type that holds its values"
            )));
        }
        other => return Err(Error::schema(format!("ORC has no type for Arrow's {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::TimeUnit;
    use std::sync::Arc;

    #[test]
    fn numbers_and_paths_are_in_pre_order() {
        let item = Field::new("item", DataType::Int8, true);
        let inner = DataType::Struct(vec![Field::new("x", DataType::List(Arc::new(item)), true)].into());
        let unit = DataType::Timestamp(TimeUnit::Second, Some("Asia/Tokyo".into()));
        let schema = Schema::new(vec![
            Field::new("a", inner, true),
            Field::new("b", unit, true).with_metadata([("k".to_owned(), "v".to_owned())]),
        ]);
        let root = ColumnType::of(&schema, &[]).unwrap();
        let columns: Vec<(u32, &str, u32)> =
            root.all().iter().map(|t| (t.id, t.path.as_str(), t.kind.code())).collect();
        assert_eq!(columns, [(0, "", 12), (1, "a", 12), (2, "a.x", 10), (3, "a.x.item", 1), (4, "b", 18)]);
        let stored: Vec<proto::Type> = root.all().iter().map(|t| t.to_proto()).collect();
        assert_eq!(stored[0].subtypes, [1, 4]);
        assert_eq!(stored[0].field_names, ["a", "b"]);
        assert_eq!(stored[4].attributes[0].value.as_deref(), Some("v"));
    }

    #[test]
    fn lengths_of_text_are_given_by_path() {
        let inner = DataType::Struct(vec![Field::new("t", DataType::LargeUtf8, true)].into());
        let schema = Schema::new(vec![Field::new("s", inner, true), Field::new("n", DataType::Int8, true)]);
        let of = |path: &str, text: &str| ColumnType::of(&schema, &[(path.to_owned(), text.parse()?)]);
        let stored = |text: &str| of("s.t", text).unwrap().all()[2].to_proto();
        assert_eq!((stored("varchar(10)").kind(), stored("VARCHAR( 10 )").maximum_length()), (16, 10));
        assert_eq!((stored("char(3)").kind(), stored("char(3)").maximum_length()), (17, 3));
        assert_eq!((stored("string").kind(), stored("string").maximum_length), (7, None));
        assert!(of("t", "char(3)").is_err() && of("n", "char(3)").is_err());
        for text in ["char(0)", "char(256)", "varchar(65536)", "varchar", "int"] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }

    #[test]
    fn types_without_an_orc_type_are_refused_by_name() {
        let of =
            |t| ColumnType::of(&Schema::new(vec![Field::new("a", t, true)]), &[]).unwrap_err().to_string();
        assert_eq!(
            of(DataType::UInt16),
            "column \"a\": ORC has no unsigned integers: cast UInt16 to a signed type that holds its values"
        );
        assert!(of(DataType::Decimal256(39, 0)).contains("1 to 38 digits"));
        assert!(of(DataType::Decimal128(5, -1)).contains("1 to 38 digits"));
        assert!(of(DataType::Duration(TimeUnit::Second)).contains("no type for"));
    }
}
