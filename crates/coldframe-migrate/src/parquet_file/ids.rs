//! Numbers of columns in a Parquet file, by which Iceberg finds a column whatever its name is now.
//!
//! ```text
//! id, tags list<string>, at struct<x, y>       ids: id, tags, element of tags, at, x, y
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use coldframe::{Error, Result};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

/// The schema with an id on each field: a field before those inside it, without the entries of maps.
pub(super) fn numbered(schema: &SchemaRef, ids: &[i32]) -> Result<SchemaRef> {
    let mut ids = ids.iter();
    let fields = schema.fields().iter().map(|field| numbered_field(field, &mut ids));
    let fields = fields.collect::<Result<Fields>>()?;
    match ids.next() {
        None => Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))),
        Some(_) => Err(Error::invalid("ids for Parquet columns: there are more ids than columns")),
    }
}

fn numbered_field(field: &FieldRef, ids: &mut std::slice::Iter<'_, i32>) -> Result<FieldRef> {
    let id = ids
        .next()
        .ok_or_else(|| Error::invalid("ids for Parquet columns: there are fewer ids than columns"))?;
    let kind = numbered_type(field.data_type(), ids)?;
    let mut metadata = field.metadata().clone();
    metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    Ok(Arc::new(Field::clone(field).with_data_type(kind).with_metadata(metadata)))
}

fn numbered_type(kind: &DataType, ids: &mut std::slice::Iter<'_, i32>) -> Result<DataType> {
    let mut each =
        |fields: &Fields| fields.iter().map(|field| numbered_field(field, ids)).collect::<Result<Fields>>();
    Ok(match kind {
        DataType::Struct(fields) => DataType::Struct(each(fields)?),
        DataType::List(element) => DataType::List(numbered_field(element, ids)?),
        DataType::LargeList(element) => DataType::LargeList(numbered_field(element, ids)?),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(pair) => {
                let entries = Field::clone(entries).with_data_type(DataType::Struct(each(pair)?));
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => kind.clone(),
        },
        _ => kind.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_of(fields: &Fields) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        for field in fields {
            if let Some(id) = field.metadata().get(PARQUET_FIELD_ID_META_KEY) {
                seen.push((field.name().clone(), id.clone()));
            }
            match field.data_type() {
                DataType::Struct(inner) => seen.extend(ids_of(inner)),
                DataType::List(inner) | DataType::Map(inner, _) => {
                    seen.extend(ids_of(&Fields::from(vec![inner.clone()])));
                }
                _ => {}
            }
        }
        seen
    }

    #[test]
    fn each_field_gets_its_id() {
        let element = Field::new("element", DataType::Int32, true);
        let pair = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        let inner = vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Int32, true)];
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("tags", DataType::List(Arc::new(element)), true),
            Field::new("pairs", DataType::Map(Arc::new(entries), false), true),
            Field::new("at", DataType::Struct(inner.into()), true),
        ]));
        let with = numbered(&schema, &[1, 2, 5, 3, 6, 7, 4, 8, 9]).unwrap();
        let ids = ids_of(with.fields());
        let wanted = [
            ("id", "1"),
            ("tags", "2"),
            ("element", "5"),
            ("pairs", "3"),
            ("key", "6"),
            ("value", "7"),
            ("at", "4"),
            ("x", "8"),
            ("y", "9"),
        ];
        let ids: Vec<_> = ids.iter().map(|(name, id)| (name.as_str(), id.as_str())).collect();
        assert_eq!(ids, wanted);
        assert!(numbered(&schema, &[1, 2]).is_err());
        assert!(numbered(&schema, &[1; 10]).is_err());
    }
}
