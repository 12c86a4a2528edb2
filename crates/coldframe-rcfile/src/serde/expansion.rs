//! How much memory nested cells may take. The number of their bytes does not limit it: a separator is an
//! element of a list, and so is one bit of a bitmap.

use arrow_schema::DataType;
use coldframe_core::options::TimestampUnit;

use crate::hive_type::HiveType;

/// Bytes for the place of an element while its list is decoded.
const PLACE_BYTES: u64 = 8;

/// Arrow bytes of one empty value, including validity and offset.
pub(crate) fn empty_bytes(data_type: &DataType) -> u64 {
    1 + match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| empty_bytes(f.data_type())).sum(),
        DataType::Union(fields, _) => fields.iter().map(|(_, f)| empty_bytes(f.data_type())).sum(),
        other => other.primitive_width().map_or(4, |width| width as u64),
    }
}

/// Bytes that an element without bytes takes while it is decoded.
pub(super) fn element_bytes(hive_type: &HiveType) -> u64 {
    PLACE_BYTES
        + match hive_type {
            HiveType::Struct(fields) => fields.iter().map(|(_, t)| element_bytes(t)).sum(),
            HiveType::Union(branches) => branches.iter().map(element_bytes).sum(),
            HiveType::Char(n) => u64::from(*n) + 5,
            other => empty_bytes(&other.to_arrow(TimestampUnit::default())),
        }
}

/// Adds, for each level of separators, the bytes of the elements that one separator of this level may begin.
pub(super) fn separated(hive_type: &HiveType, level: usize, costs: &mut Vec<u64>) {
    let mut add = |bytes: u64| {
        costs.resize(costs.len().max(level + 1), 0);
        if let Some(cost) = costs.get_mut(level) {
            *cost = cost.saturating_add(bytes);
        }
    };
    match hive_type {
        HiveType::Array(element) => {
            add(element_bytes(element));
            separated(element, level + 1, costs);
        }
        HiveType::Map(key, value) => {
            add(element_bytes(key) + element_bytes(value));
            separated(key, level + 2, costs);
            separated(value, level + 2, costs);
        }
        HiveType::Struct(fields) => fields.iter().for_each(|(_, t)| separated(t, level + 1, costs)),
        HiveType::Union(branches) => branches.iter().for_each(|t| separated(t, level + 1, costs)),
        _ => {}
    }
}

/// The maximum bytes of the elements that one bit of a bitmap adds: the elements of the lists in a value. A
/// map's entry has a key, which takes bytes.
pub(super) fn per_bit(hive_type: &HiveType) -> u64 {
    match hive_type {
        HiveType::Array(element) => element_bytes(element).max(per_bit(element)),
        HiveType::Map(key, value) => per_bit(key).max(per_bit(value)),
        HiveType::Struct(fields) => fields.iter().map(|(_, t)| per_bit(t)).max().unwrap_or(0),
        HiveType::Union(branches) => branches.iter().map(per_bit).max().unwrap_or(0),
        _ => 0,
    }
}
