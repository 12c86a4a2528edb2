//! The columns of a table: the meta columns, then the columns of the schema that its last commit recorded.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use coldframe_core::{Error, ErrorContext, Limits, Result};
use serde_json::Value as Json;

use crate::avro::Schema;
use crate::data::commit;
use crate::data::keys::RECORD_KEY;

/// The columns that Hudi adds to each row.
pub(crate) const META: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    RECORD_KEY,
    "_hoodie_partition_path",
    "_hoodie_file_name",
];

/// The column with the instant that wrote a row.
pub(crate) const COMMIT_TIME: &str = "_hoodie_commit_time";

/// The columns of a table.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// All columns.
    pub schema: SchemaRef,
    /// The defaults of columns, as arrays of one row; a column without an entry has the default null.
    pub defaults: Arc<HashMap<String, ArrayRef>>,
}

impl Columns {
    /// A table without any write has no columns.
    pub(crate) fn none() -> Self {
        Self { schema: Arc::new(ArrowSchema::empty()), defaults: Arc::default() }
    }

    /// The columns of an Avro schema.
    pub(crate) fn of_avro(json: &str, limits: &Limits) -> Result<Self> {
        let schema = Schema::parse(json.as_bytes(), limits).within(|| "schema of a Hudi table")?;
        let DataType::Struct(own) = schema.arrow(limits)? else {
            return Err(Error::corrupt("expected a record as the schema of a Hudi table"));
        };
        let meta = META.map(|name| Arc::new(Field::new(name, DataType::Utf8, true)));
        let own = own.iter().filter(|f| !META.contains(&f.name().as_str()));
        let fields: Fields = meta.into_iter().chain(own.map(nullable)).collect();
        let defaults = defaults(&commit::parse(json.as_bytes(), limits)?, &fields);
        Ok(Self { schema: Arc::new(ArrowSchema::new(fields)), defaults: Arc::new(defaults) })
    }
}

/// A field in which everything may be null: older files may lack any part of it.
fn nullable(field: &FieldRef) -> FieldRef {
    let inner = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable).collect()),
        DataType::List(item) => DataType::List(nullable(item)),
        DataType::Map(entries, sorted) => {
            let inner = match entries.data_type() {
                DataType::Struct(pair) => {
                    let values = pair.iter().skip(1).map(nullable);
                    DataType::Struct(pair.iter().take(1).cloned().chain(values).collect())
                }
                other => other.clone(),
            };
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(inner)), *sorted)
        }
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(inner).with_nullable(true))
}

/// The defaults that are not null, of columns of plain types.
fn defaults(schema: &Json, fields: &Fields) -> HashMap<String, ArrayRef> {
    let mut all = HashMap::new();
    for own in schema.get("fields").and_then(Json::as_array).into_iter().flatten() {
        let (Some(name), Some(default)) = (own.get("name").and_then(Json::as_str), own.get("default")) else {
            continue;
        };
        let Some((_, field)) = fields.find(name) else { continue };
        let text: ArrayRef = match default {
            Json::Bool(value) => Arc::new(BooleanArray::from(vec![*value])),
            Json::Number(value) => Arc::new(StringArray::from(vec![value.to_string()])),
            Json::String(value) => Arc::new(StringArray::from(vec![value.as_str()])),
            _ => continue,
        };
        if let Ok(value) = cast(&text, field.data_type())
            && value.null_count() == 0
        {
            all.insert(name.to_owned(), value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_columns_come_first_and_everything_may_be_null() {
        let json = r#"{"type":"record","name":"r","fields":[{"name":"_hoodie_commit_time","type":["null","string"]},
            {"name":"id","type":"string","default":"x"},{"name":"n","type":["int","null"],"default":7},
            {"name":"s","type":{"type":"record","name":"i","fields":[{"name":"a","type":"long"}]},"default":null}]}"#;
        let columns = Columns::of_avro(json, &Limits::default()).unwrap();
        let names: Vec<&str> = columns.schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, [META.as_slice(), &["id", "n", "s"]].concat());
        let DataType::Struct(inner) = columns.schema.field(7).data_type() else { panic!() };
        assert!(columns.schema.fields().iter().chain(inner).all(|f| f.is_nullable()));
        let mut defaults: Vec<&String> = columns.defaults.keys().collect();
        defaults.sort();
        assert_eq!(defaults, ["id", "n"]);
    }
}
