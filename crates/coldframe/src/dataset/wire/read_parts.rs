//! Converts the parts that definitions and plans share from messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::{Error, KeySource, Limits, OpenOptions, Result, SchemaSpec, Value};

use super::{arrow, message, refused};
use crate::dataset::columns::ColumnsBy;
use crate::dataset::opening::Opening;
use crate::dataset::storage::{Storage, Stores};

/// Objects of this process that a plan needs and that cannot be sent as bytes.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// Opens files that no built-in store can open.
    pub storage: Option<Arc<dyn Storage>>,
    /// Supplies keys that the options do not contain.
    pub keys: Option<Arc<dyn KeySource>>,
}

/// The element of a list at an index; an error if there is none.
pub(super) fn at<'a, T>(all: &'a [T], number: u32, what: &str) -> Result<&'a T> {
    let element = usize::try_from(number).ok().and_then(|number| all.get(number));
    element.ok_or_else(|| refused(format!("expected one of {} {what}, found number {number}", all.len())))
}

pub(super) fn size(number: u64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| refused(format!("{what} {number} is more than memory can hold")))
}

pub(super) fn strings(message: u32) -> Result<Option<Strings>> {
    match message {
        0 => Ok(None),
        1 => Ok(Some(Strings::Plain)),
        2 => Ok(Some(Strings::View)),
        other => Err(refused(format!("expected a layout of strings, found {other}"))),
    }
}

pub(super) fn opening(message: &message::Opening, bound: &Bound) -> Result<Opening> {
    let storage: Arc<dyn Storage> = if message.foreign_storage {
        let missing = || {
            Error::unsupported(
                "a plan whose files need the file system of another process; bind a file system",
            )
        };
        bound.storage.clone().ok_or_else(missing)?
    } else {
        let options: BTreeMap<String, String> =
            message.storage.iter().map(|item| (item.name.clone(), item.text.clone())).collect();
        Arc::new(Stores(options))
    };
    let schema = match (&message.schema, &message.ddl) {
        (Some(schema), None) => Some(SchemaSpec::Arrow(arrow::to_schema(schema)?)),
        (None, Some(ddl)) => Some(SchemaSpec::Ddl(ddl.clone())),
        (None, None) => None,
        _ => return Err(refused("expected one schema, found two")),
    };
    let [max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows, memory_limit] =
        *message.limits.as_slice()
    else {
        return Err(refused(format!("expected 6 limits, found {}", message.limits.len())));
    };
    let extra = match message.extra.as_ref().map(value).transpose()? {
        Some(Value::Map(pairs)) => pairs.into_iter().collect(),
        None => BTreeMap::new(),
        Some(_) => return Err(refused("expected options by their names")),
    };
    let key_source = if message.asks_for_keys {
        let missing = || {
            Error::unsupported("a plan whose keys come from a function of another process; bind a key source")
        };
        Some(bound.keys.clone().ok_or_else(missing)?)
    } else {
        None
    };
    let options = OpenOptions {
        schema,
        skip_checksums: message.skip_checksums,
        keys: message.keys.iter().map(|item| (item.name.clone(), item.key.clone())).collect(),
        key_source,
        limits: Limits {
            max_block_bytes,
            max_columns,
            max_depth,
            max_metadata_bytes,
            max_unit_rows: Some(max_unit_rows).filter(|rows| *rows > 0),
            memory_limit,
        },
        threads: message.threads.map(|threads| size(threads, "the threads")).transpose()?,
        microseconds: message.microseconds,
        timestamps_in: message.timestamps_in.clone(),
        strings: strings(message.strings)?,
        extra,
    };
    Ok(Opening { format: message.format.clone(), options, storage })
}

fn value(message: &message::Value) -> Result<Value> {
    let items = || message.items.iter().map(value).collect::<Result<Vec<_>>>();
    Ok(match message.kind {
        0 => Value::Null,
        1 => Value::Bool(message.int != 0),
        2 => Value::Int(message.int),
        3 => Value::UInt(message.uint),
        4 => Value::Float(message.float),
        5 => Value::Str(message.text.clone()),
        6 => Value::Bytes(message.bytes.clone()),
        7 => Value::List(items()?),
        8 if message.names.len() == message.items.len() => {
            Value::Map(message.names.iter().cloned().zip(items()?).collect())
        }
        8 => return Err(refused("expected a name for each value")),
        other => return Err(refused(format!("expected a value, found the kind {other}"))),
    })
}

pub(super) fn by(kind: u32, key: &str) -> Result<ColumnsBy> {
    match kind {
        0 => Ok(ColumnsBy::Name),
        1 => Ok(ColumnsBy::Position),
        2 => Ok(ColumnsBy::Id(key.to_owned())),
        3 => Ok(ColumnsBy::Hive),
        other => Err(refused(format!("expected a way to match columns, found {other}"))),
    }
}

pub(super) fn known(message: &message::Known) -> Identity {
    Identity { len: message.len, modified: message.modified, etag: message.etag.clone() }
}
