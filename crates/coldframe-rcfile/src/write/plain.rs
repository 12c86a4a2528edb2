//! Finds the Arrow type that an encoder accepts in place of another type: dictionaries and run-end encoded
//! arrays become their values, views and large lists the common types. Times keep their unit, so that no
//! digits are lost.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, UnionMode};

use crate::hive_type::HiveType;
use crate::serde::TimestampUnit;

/// The type that arrays of type `actual` are cast to for a column of `hive_type`.
pub(super) fn data_type(hive_type: &HiveType, actual: &DataType, unit: TimestampUnit) -> DataType {
    let inner = |hive_type: &HiveType, actual: &FieldRef| data_type(hive_type, actual.data_type(), unit);
    match (hive_type, actual) {
        (_, DataType::Dictionary(_, values)) => data_type(hive_type, values, unit),
        (_, DataType::RunEndEncoded(_, values)) => inner(hive_type, values),
        (HiveType::Timestamp | HiveType::TimestampLocalTz, DataType::Timestamp(..)) => actual.clone(),
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
            let [actual_key, actual_value] = fields.as_ref() else { return hive_type.to_arrow(unit) };
            let fields = Fields::from(vec![
                Field::new("key", inner(key, actual_key), false),
                Field::new("value", inner(value, actual_value), true),
            ]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
        }
        (HiveType::Struct(types), DataType::Struct(fields)) if types.len() == fields.len() => {
            let fields = types.iter().zip(fields);
            let fields = fields.map(|((name, t), actual)| Field::new(name, inner(t, actual), true));
            DataType::Struct(fields.collect())
        }
        (HiveType::Union(types), DataType::Union(fields, UnionMode::Sparse))
            if types.len() == fields.len() =>
        {
            let fields = types.iter().zip(fields.iter()).map(|(t, (id, actual))| {
                (id, Arc::new(Field::new(format!("f{id}"), inner(t, actual), true)))
            });
            DataType::Union(fields.collect(), UnionMode::Sparse)
        }
        _ => hive_type.to_arrow(unit),
    }
}
