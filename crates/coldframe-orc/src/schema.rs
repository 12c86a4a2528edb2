//! Gives the Arrow schema of a type tree, as pyarrow does.
//!
//! | ORC | Arrow |
//! |---|---|
//! | boolean, tinyint .. bigint, float, double | bool, int8 .. int64, float, double |
//! | string, varchar, char | string; a dictionary of it by the option `dictionary` |
//! | binary, geometry, geography | binary; the coordinate system in the field's metadata |
//! | date | date32 |
//! | timestamp, timestamp with local time zone | timestamp, the second in UTC; unit by the option `timestamp_unit`. With `timestamps_in`, both in UTC |
//! | decimal(p, s) | decimal128(p, s); without precision (Hive 0.11) decimal128(38, s), with s the largest of any value and at least 10 |
//! | list, map, struct | list of `item`, map, struct |
//! | union | sparse union of `_union_0` .. |
//!
//! With the option `row_numbers` a column of that name comes last: the number of each row. This number is not
//! stored.
//!
//! A root that is not a struct becomes one column `value`. A struct without columns becomes a column of row
//! numbers, [`ROWS`], since a table without columns loses its row count. Attributes of types become metadata
//! of fields.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit, UnionFields, UnionMode};
use coldframe_core::types::char_field;
use coldframe_core::{Error, Result};

use crate::layout::proto::Footer;
use crate::layout::types::{Column, Kind, TypeTree};
use crate::options::Options;

/// The smallest scale of decimals without precision: the scale of Java's default type.
pub(crate) const OLD_SCALE: u32 = 10;

/// Arrow's name of an extension type, in a field's metadata.
const EXTENSION: &str = "ARROW:extension:name";
/// Extension types whose storage type ORC lacks: lists and bytes of a fixed size.
const FOREIGN_EXTENSIONS: [&str; 3] =
    ["arrow.uuid", "arrow.fixed_shape_tensor", "arrow.variable_shape_tensor"];

/// The name of the column of row numbers that replaces missing columns.
pub(crate) const ROWS: &str = "__rows";

/// The schema of all columns.
pub(crate) fn schema(tree: &TypeTree, footer: &Footer, options: &Options) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = match tree.root() {
        None => Vec::new(),
        Some(root) if root.kind == Kind::Struct && root.children.is_empty() => {
            vec![Arc::new(Field::new(ROWS, DataType::Int64, false))]
        }
        Some(root) if root.kind == Kind::Struct => struct_fields(tree, root, options)?,
        Some(root) => vec![field(tree, "value", root, options)?],
    };
    if let Some(name) = options.row_numbers.as_ref().filter(|_| tree.root().is_some()) {
        if fields.iter().any(|field| field.name() == name) {
            let what = format!("the file has a column `{name}`: `row_numbers` needs another name");
            return Err(Error::schema(what));
        }
        fields.push(Arc::new(Field::new(name, DataType::Int64, false)));
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, user_metadata(footer))))
}

/// The items of user metadata that are text.
fn user_metadata(footer: &Footer) -> HashMap<String, String> {
    let text = |item: &crate::layout::proto::UserMetadataItem| {
        Some((item.name().to_owned(), String::from_utf8(item.value.clone()?).ok()?))
    };
    footer.metadata.iter().filter_map(text).collect()
}

fn struct_fields(tree: &TypeTree, column: &Column, options: &Options) -> Result<Vec<FieldRef>> {
    let children = column.children.iter().zip(&column.field_names);
    children.map(|(id, name)| field(tree, name, child(tree, *id)?, options)).collect()
}

fn child(tree: &TypeTree, id: usize) -> Result<&Column> {
    tree.get(id).ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))
}

fn field(tree: &TypeTree, name: &str, column: &Column, options: &Options) -> Result<FieldRef> {
    let field = Field::new(name, data_type(tree, column, options)?, true);
    let mut metadata: HashMap<String, String> = column.attributes.iter().cloned().collect();
    // ORC lacks their storage type: readers that know the extension type would refuse the column.
    if metadata.get(EXTENSION).is_some_and(|name| FOREIGN_EXTENSIONS.contains(&name.as_str())) {
        metadata.retain(|key, _| !key.starts_with("ARROW:extension:"));
    }
    if let Some(crs) = &column.crs {
        metadata.insert("crs".to_owned(), crs.clone());
    }
    if let (Kind::Geography, Some(algorithm)) = (column.kind, column.algorithm) {
        let names = ["spherical", "vincenty", "thomas", "andoyer", "karney"];
        let name = usize::try_from(algorithm).ok().and_then(|a| names.get(a)).copied().unwrap_or("unknown");
        metadata.insert("algorithm".to_owned(), name.to_owned());
    }
    let field = field.with_metadata(metadata);
    Ok(Arc::new(match column.kind {
        Kind::Char => char_field(field, column.maximum_length.unwrap_or(0)),
        _ => field,
    }))
}

/// The type of a decimal.
pub(crate) fn decimal(column: &Column) -> Result<(u8, i8)> {
    let (precision, scale) = match column.precision {
        // The values may have more digits after the point: see `undeclared`.
        0 => (38, column.scale.max(OLD_SCALE)),
        precision => (precision, column.scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s)) if i16::from(s) <= i16::from(p) => Ok((p, s)),
        _ => Err(Error::corrupt(format!(
            "expected a decimal of 1 to 38 digits, found decimal({}, {})",
            column.precision, column.scale
        ))
        .within(format!("type {}", column.id))),
    }
}

fn data_type(tree: &TypeTree, column: &Column, options: &Options) -> Result<DataType> {
    let nested = |place: usize, name: &str| {
        let id = column.children.get(place).copied().unwrap_or(usize::MAX);
        field(tree, name, child(tree, id)?, options)
    };
    Ok(match column.kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Byte => DataType::Int8,
        Kind::Short => DataType::Int16,
        Kind::Int => DataType::Int32,
        Kind::Long => DataType::Int64,
        Kind::Float => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::String | Kind::Varchar | Kind::Char if options.dictionary => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        Kind::String | Kind::Varchar | Kind::Char => DataType::Utf8,
        Kind::Binary | Kind::Geometry | Kind::Geography => DataType::Binary,
        Kind::Date => DataType::Date32,
        Kind::Timestamp if options.timestamps_in.is_none() => {
            DataType::Timestamp(options.timestamp_unit, None)
        }
        Kind::Timestamp | Kind::TimestampInstant => {
            DataType::Timestamp(options.timestamp_unit, Some("UTC".into()))
        }
        Kind::Decimal => {
            let (precision, scale) = decimal(column)?;
            DataType::Decimal128(precision, scale)
        }
        Kind::List => DataType::List(nested(0, "item")?),
        Kind::Map => {
            let key = Arc::new(Field::clone(&*nested(0, "key")?).with_nullable(false));
            let entries = Fields::from(vec![key, nested(1, "value")?]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        Kind::Struct => DataType::Struct(struct_fields(tree, column, options)?.into()),
        Kind::Union => {
            let fields: Vec<FieldRef> = (0..column.children.len())
                .map(|place| nested(place, &format!("_union_{place}")))
                .collect::<Result<_>>()?;
            let tags = 0..i8::try_from(fields.len()).unwrap_or(i8::MAX);
            DataType::Union(tags.zip(fields).collect::<UnionFields>(), UnionMode::Sparse)
        }
    })
}

/// The unit of a timestamp's type.
pub(crate) fn unit_of(data_type: &DataType) -> TimeUnit {
    match data_type {
        DataType::Timestamp(unit, _) => *unit,
        _ => TimeUnit::Nanosecond,
    }
}
