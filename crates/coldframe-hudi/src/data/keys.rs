//! The key of a record: the meta column that has it or, for a table without meta columns, the key that its
//! key generator makes from the key's columns.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use coldframe_core::{Error, Result, arrow_error};

use crate::data::properties::Properties;

/// The meta column with the key.
pub(crate) const RECORD_KEY: &str = "_hoodie_record_key";

/// Where the keys of records are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// In the meta column.
    Stored,
    /// In the columns of the key. `named`: whether the key has the names of the columns, too.
    Columns {
        /// The columns.
        columns: Vec<String>,
        /// Whether a key is `name:value,name:value`.
        named: bool,
    },
}

impl Keys {
    /// The keys of a table.
    pub(crate) fn new(properties: &Properties) -> Result<Self> {
        if properties.is("hoodie.populate.meta.fields", true) {
            return Ok(Self::Stored);
        }
        let columns = properties.list("hoodie.table.recordkey.fields");
        if columns.is_empty() {
            return Err(Error::unsupported(
                "a Hudi table without meta columns that does not name the columns of its key",
            ));
        }
        let generator =
            properties.first(&["hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"]);
        let generator = generator.map(|name| name.rsplit('.').next().unwrap_or(name));
        let named = match generator {
            Some(
                "SimpleKeyGenerator"
                | "SimpleAvroKeyGenerator"
                | "TimestampBasedKeyGenerator"
                | "SIMPLE"
                | "SIMPLE_AVRO"
                | "TIMESTAMP"
                | "TIMESTAMP_AVRO",
            ) => false,
            Some(
                "NonpartitionedKeyGenerator"
                | "NonpartitionedAvroKeyGenerator"
                | "NON_PARTITION"
                | "NON_PARTITION_AVRO",
            )
            | None => columns.len() > 1,
            Some(
                "ComplexKeyGenerator"
                | "ComplexAvroKeyGenerator"
                | "CustomKeyGenerator"
                | "CustomAvroKeyGenerator"
                | "GlobalDeleteKeyGenerator"
                | "GlobalAvroDeleteKeyGenerator"
                | "COMPLEX"
                | "COMPLEX_AVRO"
                | "CUSTOM"
                | "CUSTOM_AVRO"
                | "GLOBAL_DELETE"
                | "GLOBAL_DELETE_AVRO",
            ) if columns.len() > 1 => true,
            Some(other) => {
                return Err(Error::unsupported(format!(
                    "a Hudi table without meta columns whose key generator is {other}"
                )));
            }
        };
        Ok(Self::Columns { columns, named })
    }

    /// The columns that are needed for keys.
    pub(crate) fn columns(&self) -> Vec<String> {
        match self {
            Self::Stored => vec![RECORD_KEY.to_owned()],
            Self::Columns { columns, .. } => columns.clone(),
        }
    }

    /// The keys of a batch.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<StringArray> {
        let column = |name: &str| -> Result<ArrayRef> {
            let column = batch.column_by_name(name);
            let column =
                column.ok_or_else(|| Error::corrupt(format!("expected the column `{name}` of keys")))?;
            cast(column, &DataType::Utf8).map_err(arrow_error)
        };
        match self {
            Self::Stored => Ok(column(RECORD_KEY)?.as_string::<i32>().clone()),
            Self::Columns { columns, named } => {
                let values = columns.iter().map(|name| column(name)).collect::<Result<Vec<_>>>()?;
                let text = |values: &ArrayRef, row: usize| match values.is_null(row) {
                    true => "__null__".to_owned(),
                    false => match values.as_string::<i32>().value(row) {
                        "" => "__empty__".to_owned(),
                        value => value.to_owned(),
                    },
                };
                let key = |row: usize| {
                    let parts = columns.iter().zip(&values).map(|(name, values)| match named {
                        true => format!("{name}:{}", text(values, row)),
                        false => text(values, row),
                    });
                    parts.collect::<Vec<_>>().join(",")
                };
                Ok(StringArray::from_iter_values((0..batch.num_rows()).map(key)))
            }
        }
    }
}
