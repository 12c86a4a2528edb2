//! The Arrow type that an encoder accepts for the values of another one: dictionaries and run-end encoded arrays become
//! their values, views and large lists the common types. Times keep their unit, so that no digits are lost.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, UnionMode};

use crate::hive_type::HiveType;
use crate::serde::TimestampUnit;

/// The type that `found` is cast to for a column of `hive_type`.
pub(super) fn data_type(hive_type: &HiveType, found: &DataType, unit: TimestampUnit) -> DataType {
    let inner = |hive_type: &HiveType, found: &FieldRef| data_type(hive_type, found.data_type(), unit);
    match (hive_type, found) {
        (_, DataType::Dictionary(_, values)) => data_type(hive_type, values, unit),
        (_, DataType::RunEndEncoded(_, values)) => inner(hive_type, values),
        (HiveType::Timestamp | HiveType::TimestampLocalTz, DataType::Timestamp(..)) => found.clone(),
        (
            HiveType::Array(element),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _),
        ) => DataType::List(Arc::new(Field::new("item", inner(element, item), true))),
        (HiveType::Map(key, value), DataType::Map(entries, _)) => {
            let DataType::Struct(fields) = entries.data_type() else { return hive_type.to_arrow(unit) };
            let [found_key, found_value] = fields.as_ref() else { return hive_type.to_arrow(unit) };
            let fields = Fields::from(vec![
                Field::new("key", inner(key, found_key), false),
                Field::new("value", inner(value, found_value), true),
            ]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
        }
        (HiveType::Struct(types), DataType::Struct(fields)) if types.len() == fields.len() => {
            let fields = types.iter().zip(fields);
            let fields = fields.map(|((name, t), found)| Field::new(name, inner(t, found), true));
            DataType::Struct(fields.collect())
        }
        (HiveType::Union(types), DataType::Union(fields, UnionMode::Sparse))
            if types.len() == fields.len() =>
        {
            let fields = types
                .iter()
                .zip(fields.iter())
                .map(|(t, (id, found))| (id, Arc::new(Field::new(format!("f{id}"), inner(t, found), true))));
            DataType::Union(fields.collect(), UnionMode::Sparse)
        }
        _ => hive_type.to_arrow(unit),
    }
}
