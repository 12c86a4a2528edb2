//! Converts the parts that definitions and plans share to messages.

use std::collections::BTreeMap;

use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::{Error, Limits, Result, SchemaSpec, Value};

use super::{arrow, message};
use crate::dataset::columns::ColumnsBy;
use crate::dataset::opening::Opening;

pub(super) fn strings(of: Option<Strings>) -> u32 {
    match of {
        None => 0,
        Some(Strings::Plain) => 1,
        Some(Strings::View) => 2,
    }
}

/// The index of `item` in the list, or of an element equal to it; appends it if there is none.
pub(super) fn number<T: PartialEq>(all: &mut Vec<T>, item: T) -> Result<u32> {
    let at = all.iter().rposition(|known| *known == item).unwrap_or_else(|| {
        all.push(item);
        all.len() - 1
    });
    u32::try_from(at).map_err(|_| Error::unsupported("a plan of more than 2^32 files"))
}

pub(super) fn known(known: &Identity) -> message::Known {
    message::Known { len: known.len, modified: known.modified, etag: known.etag.clone() }
}

/// The number of a way to match columns, and the key of ids.
pub(super) fn by(of: &ColumnsBy) -> (u32, String) {
    match of {
        ColumnsBy::Name => (0, String::new()),
        ColumnsBy::Position => (1, String::new()),
        ColumnsBy::Id(key) => (2, key.clone()),
        ColumnsBy::Hive => (3, String::new()),
    }
}

pub(super) fn opening(
    opening: &Opening,
    storage: Option<&BTreeMap<String, String>>,
) -> Result<message::Opening> {
    let options = &opening.options;
    let (schema, ddl) = match &options.schema {
        None => (None, None),
        Some(SchemaSpec::Arrow(schema)) => (Some(arrow::from_schema(schema)?), None),
        Some(SchemaSpec::Ddl(ddl)) => (None, Some(ddl.clone())),
    };
    let text = |(name, text): (&String, &String)| message::Text { name: name.clone(), text: text.clone() };
    let key = |(name, key): (&String, &Vec<u8>)| message::Key { name: name.clone(), key: key.clone() };
    let Limits { max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows, memory_limit } =
        options.limits;
    let pairs = options.extra.iter().map(|(name, value)| (name.clone(), value.clone()));
    Ok(message::Opening {
        format: opening.format.clone(),
        storage: storage.into_iter().flatten().map(text).collect(),
        schema,
        ddl,
        skip_checksums: options.skip_checksums,
        keys: options.keys.iter().map(key).collect(),
        limits: vec![
            max_block_bytes,
            max_columns,
            max_depth,
            max_metadata_bytes,
            max_unit_rows.unwrap_or(0),
            memory_limit,
        ],
        threads: options.threads.map(|threads| threads as u64),
        microseconds: options.microseconds,
        timestamps_in: options.timestamps_in.clone(),
        extra: Some(value(&Value::Map(pairs.collect()))),
        asks_for_keys: options.key_source.is_some(),
        foreign_storage: storage.is_none(),
        strings: strings(options.strings),
    })
}

fn value(of: &Value) -> message::Value {
    let new = |kind| message::Value { kind, ..message::Value::default() };
    match of {
        Value::Null => new(0),
        Value::Bool(v) => message::Value { int: (*v).into(), ..new(1) },
        Value::Int(int) => message::Value { int: *int, ..new(2) },
        Value::UInt(uint) => message::Value { uint: *uint, ..new(3) },
        Value::Float(float) => message::Value { float: *float, ..new(4) },
        Value::Str(text) => message::Value { text: text.clone(), ..new(5) },
        Value::Bytes(bytes) => message::Value { bytes: bytes.clone(), ..new(6) },
        Value::List(items) => message::Value { items: items.iter().map(value).collect(), ..new(7) },
        Value::Map(pairs) => message::Value {
            items: pairs.iter().map(|(_, item)| value(item)).collect(),
            names: pairs.iter().map(|(name, _)| name.clone()).collect(),
            ..new(8)
        },
    }
}
