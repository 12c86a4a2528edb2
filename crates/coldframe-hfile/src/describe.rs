//! The metadata of a file, as nested values.

use coldframe_core::Value;

use crate::layout::codec::Codec;
use crate::layout::file_info::{self, FileInfo};
use crate::open::RawFile;

/// Trailer, file info and the names of the other parts.
pub(crate) fn metadata(file: &RawFile) -> Value {
    let trailer = &file.trailer;
    let info = &file.info;
    let codec = Codec::from_ordinal(trailer.codec).map(|c| c.name).ok();
    let damage = file.damage.as_ref().map(|d| format!("{}: {}", d.structure, d.reason));
    let encoding = info.text(file_info::DATA_BLOCK_ENCODING).unwrap_or("NONE");
    Value::map([
        ("version", Value::from(format!("{}.{}", trailer.major, trailer.minor))),
        ("codec", codec.into()),
        ("data_block_encoding", encoding.into()),
        ("comparator", trailer.comparator.as_str().into()),
        ("encrypted", trailer.encryption_key.is_some().into()),
        ("entry_count", trailer.entry_count.into()),
        ("first_row", row(first_key(file))),
        ("last_row", row(info.get(file_info::LAST_KEY))),
        ("has_tags", file.context.layout.tags.into()),
        ("has_sequence_ids", file.context.layout.sequence_ids.into()),
        ("bloom_filter", info.text(file_info::BLOOM_FILTER_TYPE).into()),
        ("index_levels", trailer.index_levels.into()),
        ("root_index_entries", trailer.data_index_count.into()),
        ("first_data_block_offset", trailer.first_data_block.into()),
        ("last_data_block_offset", trailer.last_data_block.into()),
        ("file_info_offset", trailer.file_info_offset.into()),
        ("load_on_open_offset", trailer.load_on_open_offset.into()),
        ("total_uncompressed_bytes", trailer.total_uncompressed_bytes.into()),
        ("uncompressed_data_index_size", trailer.uncompressed_data_index_size.into()),
        ("meta_blocks", Value::List(file.meta_names().map(Value::text_or_bytes).collect())),
        ("file_info", info_value(info)),
        ("damage", damage.into()),
    ])
}

/// The file info, in which the integers that the format defines are decoded.
fn info_value(info: &FileInfo) -> Value {
    let integers = [
        file_info::AVG_KEY_LEN,
        file_info::AVG_VALUE_LEN,
        file_info::CREATE_TIME,
        file_info::MAX_TAGS_LEN,
        file_info::KEY_VALUE_VERSION,
        file_info::MAX_MEMSTORE_TS,
    ];
    Value::map(info.0.iter().map(|(key, value)| {
        let integer = integers.contains(&key.as_slice()).then(|| info.integer(key)).flatten();
        let value = integer.map_or_else(|| Value::text_or_bytes(value), Value::from);
        (String::from_utf8_lossy(key).into_owned(), value)
    }))
}

/// The key of the first block. This key may be shortened in indexes with several levels.
fn first_key(file: &RawFile) -> Option<&[u8]> {
    (!file.root.is_empty() && file.damage.is_none()).then(|| file.root.key(0))
}

fn row(key: Option<&[u8]>) -> Value {
    key.and_then(crate::layout::cell::row_of).map_or(Value::Null, Value::text_or_bytes)
}

/// Statistics that the file stores: the range of rows, counts and averages of its cells.
pub(crate) fn statistics(file: &RawFile) -> Value {
    let info = &file.info;
    let integer = |key: &[u8]| info.integer(key).map_or(Value::Null, Value::from);
    let time = info.get(b"TIMERANGE").and_then(|t| t.as_chunks::<8>().0.first_chunk::<2>());
    let time =
        time.map(|range| Value::List(range.iter().map(|t| Value::from(i64::from_be_bytes(*t))).collect()));
    let min = info.get(file_info::HUDI_MIN_KEY).map(Value::text_or_bytes);
    let max = info.get(file_info::LAST_KEY);
    Value::map([
        ("rows", Value::from(file.trailer.entry_count)),
        ("min_row", min.unwrap_or_else(|| row(first_key(file)))),
        ("max_row", row(max)),
        ("time_range", time.into()),
        ("average_key_bytes", integer(file_info::AVG_KEY_LEN)),
        ("average_value_bytes", integer(file_info::AVG_VALUE_LEN)),
        ("max_sequence_id", integer(file_info::MAX_MEMSTORE_TS)),
        ("delete_family_count", integer(b"DELETE_FAMILY_COUNT")),
    ])
}
