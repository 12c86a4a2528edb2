//! Converts Arrow types to types that Spark has, and converts these to and from Spark's JSON.
//!
//! ```text
//! file        uint32, large_utf8, timestamp[ns], dictionary, union ..
//! plain       int64,  utf8,       timestamp[us], its values, struct<tag, f0, ..>     what batches have
//! Spark       bigint, string,     timestamp_ntz ..                                   {"type":"struct","fields":[..]}
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use coldframe::types::{Consumer, MAX_PRECISION};
use coldframe::{Error, Result};
use serde_json::{Map, Value as Json, json};

use crate::notes;

/// Spark as a consumer of types; [`coldframe::types`] has the rules.
const SPARK: Consumer = Consumer::spark(TimeUnit::Microsecond);

/// The columns in types that Spark has.
pub fn plain_schema(schema: &Schema) -> Result<Schema> {
    let plain = SPARK.schema(schema)?;
    let fields =
        schema.fields().iter().zip(plain.fields()).map(|(own, plain)| notes::followed(own, plain, true));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Whether the values of a file's field have this type in Spark.
pub fn is_kind(own: &Field, spark: &DataType) -> bool {
    let plain = SPARK.plain(own.data_type()).map(|kind| Field::new(own.name(), kind, true));
    plain.is_ok_and(|plain| notes::followed(own, &plain, false).data_type() == spark)
}

/// The type in which the values of an Arrow type are passed to Spark.
pub fn plain_type(arrow: &DataType) -> Result<DataType> {
    SPARK.plain(arrow)
}

fn no_type(arrow: &DataType) -> Error {
    Error::unsupported(format!("Spark has no type for Arrow's {}", coldframe::types::name(arrow)))
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, true)))
}

fn map_between(key: DataType, value: DataType) -> DataType {
    let pair = vec![Field::new("key", key, false), Field::new("value", value, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)
}

/// A plain schema as Spark's JSON.
pub fn to_spark(schema: &Schema) -> Result<Json> {
    fields_to_spark(schema.fields())
}

fn fields_to_spark(fields: &Fields) -> Result<Json> {
    let of = |field: &Arc<Field>| {
        let kind = notes::name(field).map(|name| Ok(json!(name)));
        let (name, kind) = (field.name(), kind.unwrap_or_else(|| type_to_spark(field.data_type()))?);
        Ok(json!({"name": name, "type": kind, "nullable": true, "metadata": {}}))
    };
    let fields = fields.iter().map(of).collect::<Result<Vec<_>>>()?;
    Ok(json!({"type": "struct", "fields": fields}))
}

/// A plain type as Spark's JSON.
pub fn type_to_spark(kind: &DataType) -> Result<Json> {
    let name = match kind {
        DataType::Null => "void",
        DataType::Boolean => "boolean",
        DataType::Int8 => "byte",
        DataType::Int16 => "short",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        DataType::Duration(TimeUnit::Microsecond) => "interval day to second",
        DataType::Time64(TimeUnit::Nanosecond) => "time(6)",
        DataType::Decimal128(precision, scale) => {
            return Ok(Json::String(format!("decimal({precision},{scale})")));
        }
        DataType::List(item) => {
            let item = type_to_spark(item.data_type())?;
            return Ok(json!({"type": "array", "elementType": item, "containsNull": true}));
        }
        DataType::Struct(fields) => return fields_to_spark(fields),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let of = |field: Option<&Arc<Field>>| {
                    type_to_spark(field.map_or(&DataType::Null, |field| field.data_type()))
                };
                let (key, value) = (of(pair.first())?, of(pair.get(1))?);
                return Ok(
                    json!({"type": "map", "keyType": key, "valueType": value, "valueContainsNull": true}),
                );
            }
            other => return Err(no_type(other)),
        },
        other => return Err(no_type(other)),
    };
    Ok(Json::String(name.to_owned()))
}

/// The plain schema for Spark's JSON.
pub fn from_spark(json: &Json) -> Result<Schema> {
    Ok(Schema::new(fields_from_spark(json)?))
}

fn fields_from_spark(json: &Json) -> Result<Vec<Field>> {
    let wrong = || Error::schema(format!("expected the fields of a struct, found {json}"));
    let fields = json.get("fields").and_then(Json::as_array).ok_or_else(wrong)?;
    let of = |field: &Json| {
        let name = field.get("name").and_then(Json::as_str).ok_or_else(wrong)?;
        let kind = type_from_spark(field.get("type").ok_or_else(wrong)?);
        let kind = kind.map_err(|e| e.within(format!("column {name}")))?;
        let nullable = field.get("nullable").and_then(Json::as_bool).unwrap_or(true);
        Ok(Field::new(name, kind, nullable))
    };
    fields.iter().map(of).collect()
}

/// The plain type for Spark's JSON, if batches can have it.
pub fn type_from_spark(json: &Json) -> Result<DataType> {
    match json {
        Json::String(name) => named(name),
        Json::Object(whole) => nested(whole),
        other => Err(unknown(&other.to_string())),
    }
}

fn named(name: &str) -> Result<DataType> {
    Ok(match name {
        "void" | "null" => DataType::Null,
        "boolean" => DataType::Boolean,
        "byte" => DataType::Int8,
        "short" => DataType::Int16,
        "integer" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        other => {
            let known = notes::interval(other).or_else(|| parameterised(other));
            return known.ok_or_else(|| unknown(other));
        }
    })
}

/// Parses types such as `decimal(10,2)` and `time(6)`; `char(n)` and `varchar(n)` become text.
fn parameterised(name: &str) -> Option<DataType> {
    let (word, rest) = name.split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    match word {
        "decimal" => {
            let (precision, scale) = inside.split_once(',')?;
            let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
            (precision <= MAX_PRECISION).then_some(DataType::Decimal128(precision, scale))
        }
        "time" => Some(DataType::Time64(TimeUnit::Nanosecond)),
        "char" | "varchar" => Some(DataType::Utf8),
        _ => None,
    }
}

fn nested(whole: &Map<String, Json>) -> Result<DataType> {
    let part = |name: &str| {
        let part = whole
            .get(name)
            .ok_or_else(|| Error::schema(format!("expected {name} in a type of Spark, found none")));
        type_from_spark(part?)
    };
    match whole.get("type").and_then(Json::as_str) {
        Some("struct") => Ok(DataType::Struct(fields_from_spark(&Json::Object(whole.clone()))?.into())),
        Some("array") => Ok(list_of(part("elementType")?)),
        Some("map") => Ok(map_between(part("keyType")?, part("valueType")?)),
        other => Err(unknown(other.unwrap_or_default())),
    }
}

fn unknown(name: &str) -> Error {
    Error::unsupported(format!("Spark's type {name}; no file has values of this type"))
}

#[cfg(test)]
mod tests {
    use arrow_schema::{IntervalUnit, UnionFields, UnionMode};

    use super::*;

    fn field(name: &str, kind: DataType) -> Field {
        Field::new(name, kind, true)
    }

    #[test]
    fn plain_types_go_to_spark_and_back() {
        let list = DataType::List(Arc::new(field("item", DataType::UInt32)));
        let pair = vec![Field::new("k", DataType::LargeUtf8, false), field("v", list)];
        let map = DataType::Map(Arc::new(Field::new("kv", DataType::Struct(pair.into()), false)), false);
        let branches =
            [(0, Arc::new(field("x", DataType::Date64))), (1, Arc::new(field("y", DataType::Float16)))];
        let union = DataType::Union(branches.into_iter().collect::<UnionFields>(), UnionMode::Sparse);
        let kinds = [
            ("a", DataType::Dictionary(DataType::Int8.into(), DataType::Utf8View.into()), "string"),
            ("b", DataType::UInt64, "decimal(20,0)"),
            ("c", DataType::Decimal32(3, -2), "decimal(5,0)"),
            ("d", DataType::Timestamp(TimeUnit::Nanosecond, None), "timestamp_ntz"),
            ("e", DataType::Timestamp(TimeUnit::Second, Some("+01:00".into())), "timestamp"),
            ("f", DataType::FixedSizeBinary(3), "binary"),
            ("g", DataType::Time32(TimeUnit::Second), "time(6)"),
            ("h", DataType::Duration(TimeUnit::Second), "interval day to second"),
        ];
        let mut fields: Vec<Field> = kinds.iter().map(|(name, kind, _)| field(name, kind.clone())).collect();
        fields.extend([field("m", map), field("u", union)]);
        let plain = plain_schema(&Schema::new(fields)).unwrap();
        let json = to_spark(&plain).unwrap();
        for (at, (name, _, spark)) in kinds.iter().enumerate() {
            assert_eq!(
                (json["fields"][at]["name"].as_str(), json["fields"][at]["type"].as_str()),
                (Some(*name), Some(*spark))
            );
        }
        assert_eq!(json["fields"][8]["type"]["valueType"]["elementType"], "long");
        assert_eq!(json["fields"][9]["type"]["fields"][2]["type"], "float");
        assert_eq!(from_spark(&json).unwrap(), plain);
    }

    #[test]
    fn types_that_spark_lacks_are_errors() {
        let wide = plain_type(&DataType::Decimal256(50, 2)).unwrap_err().to_string();
        assert!(wide.contains("its decimals have at most 38 digits"), "{wide}");
        assert!(plain_type(&DataType::Interval(IntervalUnit::YearMonth)).is_err());
        let e =
            from_spark(&json!({"type": "struct", "fields": [{"name": "v", "type": "variant"}]})).unwrap_err();
        assert!(e.to_string().contains("variant"), "{e}");
    }
}
