//! Converts messages to plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::{
    Error, KeySource, Limits, OnError, OpenOptions, Piece, Result, Scan, SchemaSpec, Value,
};

use super::{arrow, message, predicate, refused};
use crate::dataset::columns::ColumnsBy;
use crate::dataset::fragment::Fragment;
use crate::dataset::plan::{Opening, Part, Plan, Split, SplitFile};
use crate::dataset::storage::{Storage, Stores};

/// Objects of this process that a plan needs and that cannot be sent as bytes.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// Opens files that no built-in store can open.
    pub storage: Option<Arc<dyn Storage>>,
    /// Supplies keys that the options do not contain.
    pub keys: Option<Arc<dyn KeySource>>,
}

pub(super) fn plan(message: &message::Plan, bound: &Bound) -> Result<Plan> {
    let scan = message.scan.as_ref().map(scan).transpose()?.unwrap_or_default();
    let openings = message.openings.iter().map(|message| opening(message, bound).map(Arc::new));
    let openings = openings.collect::<Result<Vec<_>>>()?;
    let tables = message.tables.iter().map(table).collect::<Result<Vec<_>>>()?;
    let files = message.files.iter().map(|message| file(message, &openings, &tables).map(Arc::new));
    let files = files.collect::<Result<Vec<_>>>()?;
    let splits = message.splits.iter().map(|message| split(message, &files)).collect::<Result<_>>()?;
    Ok(Plan { schema: arrow::to_schema(&message.schema)?, scan, splits })
}

/// The element of a list at an index; an error if there is none.
fn at<'a, T>(all: &'a [T], number: u32, what: &str) -> Result<&'a T> {
    let element = usize::try_from(number).ok().and_then(|number| all.get(number));
    element.ok_or_else(|| refused(format!("expected one of {} {what}, found number {number}", all.len())))
}

fn size(number: u64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| refused(format!("{what} {number} is more than memory can hold")))
}

fn scan(message: &message::Scan) -> Result<Scan> {
    Ok(Scan {
        columns: message.has_columns.then(|| message.columns.clone()),
        predicate: predicate::from_nodes(&message.filter)?,
        limit: message.limit,
        batch_rows: size(message.batch_rows, "the rows of a batch")?,
        on_error: match message.on_error {
            0 => OnError::Raise,
            1 => OnError::Skip,
            2 => OnError::Null,
            other => return Err(refused(format!("expected a way to treat damage, found {other}"))),
        },
        doubtful: false,
        prune: !message.no_prune,
        threads: size(message.threads, "the threads")?.clamp(1, coldframe_core::threads::MAX),
        strings: strings(message.strings)?,
    })
}

fn strings(message: u32) -> Result<Option<Strings>> {
    match message {
        0 => Ok(None),
        1 => Ok(Some(Strings::Plain)),
        2 => Ok(Some(Strings::View)),
        other => Err(refused(format!("expected a layout of strings, found {other}"))),
    }
}

fn opening(message: &message::Opening, bound: &Bound) -> Result<Opening> {
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

fn table(message: &message::Table) -> Result<Fragment> {
    Ok(Fragment {
        defaults: arrow::to_row(&message.defaults)?,
        by: match message.by {
            0 => ColumnsBy::Name,
            1 => ColumnsBy::Position,
            2 => ColumnsBy::Id(message.key.clone()),
            other => return Err(refused(format!("expected a way to match columns, found {other}"))),
        },
        complete: message.complete,
        ..Fragment::new(arrow::to_schema(&message.schema)?)
    })
}

fn file(message: &message::File, openings: &[Arc<Opening>], tables: &[Fragment]) -> Result<SplitFile> {
    let fragment = message.table.map(|number| at(tables, number, "tables")).transpose()?.cloned();
    let constants = arrow::to_row(&message.constants)?;
    Ok(SplitFile {
        path: message.path.clone(),
        opening: at(openings, message.opening, "ways to open a file")?.clone(),
        known: message.known.as_ref().map(known),
        recorded: Arc::new(message.recorded.iter().map(piece).collect()),
        fragment: fragment.map(|fragment| Fragment { constants, ..fragment }),
        source: None,
    })
}

fn known(message: &message::Known) -> Identity {
    Identity { len: message.len, modified: message.modified, etag: message.etag.clone() }
}

fn piece(message: &message::Piece) -> Piece {
    (message.at, message.bytes.clone())
}

fn split(message: &message::Split, files: &[Arc<SplitFile>]) -> Result<Split> {
    let file = at(files, message.file, "files")?.clone();
    let part = if message.of > 0 {
        if message.number >= message.of || message.target == 0 {
            return Err(refused(format!(
                "expected one of {} shares, found number {}",
                message.of, message.number
            )));
        }
        Part::Share { number: message.number, of: message.of, target: message.target }
    } else {
        Part::Cut(coldframe_core::Split {
            part: message.part,
            range: message.start..message.end,
            rows: message.rows,
        })
    };
    Ok(Split { file, part, own: message.own.iter().map(piece).collect() })
}
