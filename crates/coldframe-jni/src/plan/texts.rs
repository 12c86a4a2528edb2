//! Texts of Hive tables, which Spark's readers pass on as they are, also if they are not UTF-8: files give them as bytes, and so
//! they go to Spark, whose strings are bytes, too.
//!
//! ```text
//! Spark              files               batches
//! string             binary              binary      the JVM reads text and bytes in one way
//! struct<s: string>  struct<s: binary>   the same
//! string             string              string      keys of partitions, other tables
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

/// The table's columns with their texts as bytes, but for the columns `keys`.
pub(super) fn as_bytes(columns: &Schema, keys: &[String]) -> SchemaRef {
    let of = |field: &FieldRef| match keys.contains(field.name()) {
        true => field.clone(),
        false => with(field, bytes(field.data_type())),
    };
    Arc::new(Schema::new(columns.fields().iter().map(of).collect::<Vec<_>>()))
}

fn with(field: &Field, kind: DataType) -> FieldRef {
    Arc::new(field.clone().with_data_type(kind))
}

fn bytes(kind: &DataType) -> DataType {
    let below = |field: &FieldRef| with(field, bytes(field.data_type()));
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect()),
        DataType::List(item) => DataType::List(below(item)),
        DataType::Map(entries, sorted) => DataType::Map(below(entries), *sorted),
        other => other.clone(),
    }
}

/// Spark's type of a column with texts as bytes where the files have bytes.
pub(super) fn stored(spark: &DataType, files: &DataType) -> DataType {
    let below =
        |spark: &FieldRef, files: &FieldRef| with(spark, stored(spark.data_type(), files.data_type()));
    match (spark, files) {
        (DataType::Utf8, DataType::Binary) => DataType::Binary,
        (DataType::List(spark), DataType::List(files)) => DataType::List(below(spark, files)),
        (DataType::Map(spark, sorted), DataType::Map(files, _)) => {
            match (spark.data_type(), files.data_type()) {
                (DataType::Struct(own), DataType::Struct(pair)) if own.len() == pair.len() => {
                    // The names of key and value may differ.
                    let both = own.iter().zip(pair).map(|(own, file)| below(own, file)).collect();
                    DataType::Map(with(spark, DataType::Struct(both)), *sorted)
                }
                _ => DataType::Map(spark.clone(), *sorted),
            }
        }
        (DataType::Struct(spark), DataType::Struct(files)) => {
            let of = |field: &FieldRef| {
                let file = files.iter().find(|file| file.name().eq_ignore_ascii_case(field.name()));
                file.map_or_else(|| field.clone(), |file| below(field, file))
            };
            DataType::Struct(spark.iter().map(of).collect())
        }
        (spark, _) => spark.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("element", item, true)))
    }

    fn row(name: &str, text: DataType) -> DataType {
        DataType::Struct(vec![Field::new(name, text, true), Field::new("n", DataType::Int32, true)].into())
    }

    #[test]
    fn texts_are_bytes_where_files_have_bytes() {
        let columns = Schema::new(vec![
            Field::new("k", DataType::Utf8, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("l", list(row("t", DataType::Utf8)), true),
        ]);
        let made = as_bytes(&columns, &["k".to_owned()]);
        let kinds: Vec<&DataType> = made.fields().iter().map(|field| field.data_type()).collect();
        assert_eq!(kinds, [&DataType::Utf8, &DataType::Binary, &list(row("t", DataType::Binary))]);
        for (field, file) in columns.fields().iter().zip(made.fields()) {
            assert_eq!(stored(field.data_type(), file.data_type()), *file.data_type());
            assert_eq!(stored(field.data_type(), field.data_type()), *field.data_type());
        }
        let upper = row("T", DataType::Utf8);
        assert_eq!(stored(&upper, &row("t", DataType::Binary)), row("T", DataType::Binary));
    }
}
