//! The metadata of a CFile.

use coldframe_core::Value;
use prost::Message;

use crate::layout::block::BlockPointer;
use crate::layout::delta::STATISTICS;
use crate::layout::proto::{DeltaStats, MetadataPair};
use crate::open::{CFile, Purpose, VALUE};

/// The contents of footer and header.
pub(crate) fn metadata(file: &CFile, kind: Purpose) -> Value {
    let footer = file.footer();
    let root = |pointer: Option<BlockPointer>| {
        pointer.map(|p| Value::map([("offset", Value::from(p.offset)), ("size", Value::from(p.size))]))
    };
    Value::map([
        ("format", Value::from("cfile")),
        ("version", Value::from(footer.version.number())),
        ("kind", Value::from(kind.name())),
        ("data_type", Value::from(footer.data_type.name())),
        ("encoding", Value::from(footer.encoding.name())),
        ("compression", Value::from(footer.compression.name())),
        ("nullable", Value::from(footer.nullable)),
        ("num_values", Value::from(footer.num_values)),
        ("checksums", Value::from(footer.has_checksums())),
        ("incompatible_features", Value::from(footer.incompatible_features)),
        ("compatible_features", Value::from(footer.compatible_features)),
        ("positional_index", Value::from(root(footer.positional))),
        ("value_index", Value::from(root(footer.value))),
        ("dictionary", Value::from(root(footer.dictionary))),
        ("metadata", pairs(&footer.metadata)),
        ("header_metadata", pairs(&footer.header_metadata)),
    ])
}

/// Key-value pairs, with the statistics of a delta file decoded.
fn pairs(all: &[MetadataPair]) -> Value {
    let pair = |pair: &MetadataPair| {
        let name = String::from_utf8_lossy(&pair.key).into_owned();
        let value = match (pair.key == STATISTICS.as_bytes()).then(|| DeltaStats::decode(&*pair.value)) {
            Some(Ok(stats)) => delta_stats(&stats),
            _ => Value::Bytes(pair.value.clone()),
        };
        (name, value)
    };
    Value::Map(all.iter().map(pair).collect())
}

fn delta_stats(stats: &DeltaStats) -> Value {
    let updates = stats
        .columns
        .iter()
        .map(|c| Value::map([("column", Value::from(c.col_id)), ("updates", Value::from(c.update_count))]));
    Value::map([
        ("delete_count", Value::from(stats.delete_count)),
        ("reinsert_count", Value::from(stats.reinsert_count)),
        ("min_timestamp", Value::from(stats.min_timestamp)),
        ("max_timestamp", Value::from(stats.max_timestamp)),
        ("columns", Value::List(updates.collect())),
    ])
}

/// The statistics of a CFile: the smallest and the largest key, and the counts of a delta file.
pub(crate) fn statistics(file: &CFile) -> Value {
    let footer = file.footer();
    let mut column = vec![("num_values".to_owned(), Value::from(footer.num_values))];
    for name in ["min_key", "max_key"] {
        if let Some(bytes) = footer.pair(name) {
            column.push((name.to_owned(), Value::Bytes(bytes.to_vec())));
        }
    }
    if let Some(Ok(stats)) = footer.pair(STATISTICS).map(DeltaStats::decode) {
        column.push((STATISTICS.to_owned(), delta_stats(&stats)));
    }
    if !footer.nullable {
        column.push(("null_count".to_owned(), Value::from(0)));
    }
    Value::map([("columns", Value::map([(VALUE, Value::Map(column))]))])
}
