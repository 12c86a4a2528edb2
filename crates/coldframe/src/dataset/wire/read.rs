//! Messages to plans.

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
    /// Reaches files that no built-in store reaches.
    pub storage: Option<Arc<dyn Storage>>,
    /// Supplies keys that are not given.
    pub keys: Option<Arc<dyn KeySource>>,
}

pub(super) fn plan(said: &message::Plan, bound: &Bound) -> Result<Plan> {
    let scan = said.scan.as_ref().map(scan).transpose()?.unwrap_or_default();
    let openings = said.openings.iter().map(|one| opening(one, bound).map(Arc::new));
    let openings = openings.collect::<Result<Vec<_>>>()?;
    let tables = said.tables.iter().map(table).collect::<Result<Vec<_>>>()?;
    let files = said.files.iter().map(|one| file(one, &openings, &tables).map(Arc::new));
    let files = files.collect::<Result<Vec<_>>>()?;
    let splits = said.splits.iter().map(|one| split(one, &files)).collect::<Result<_>>()?;
    Ok(Plan { schema: arrow::to_schema(&said.schema)?, scan, splits })
}

/// The element at an index.
fn at<'a, T>(all: &'a [T], number: u32, what: &str) -> Result<&'a T> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number));
    found.ok_or_else(|| refused(format!("expected one of {} {what}, found number {number}", all.len())))
}

fn size(number: u64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| refused(format!("{what} {number} is beyond what memory has")))
}

fn scan(said: &message::Scan) -> Result<Scan> {
    Ok(Scan {
        columns: said.has_columns.then(|| said.columns.clone()),
        predicate: said.predicate.as_ref().map(predicate::from_message).transpose()?,
        limit: said.limit,
        batch_rows: size(said.batch_rows, "the rows of a batch")?,
        on_error: match said.on_error {
            0 => OnError::Raise,
            1 => OnError::Skip,
            2 => OnError::Null,
            other => return Err(refused(format!("expected what to do about damage, found {other}"))),
        },
        prune: !said.no_prune,
        threads: size(said.threads, "the threads")?.clamp(1, coldframe_core::threads::MAX),
        strings: strings(said.strings)?,
    })
}

fn strings(said: u32) -> Result<Option<Strings>> {
    match said {
        0 => Ok(None),
        1 => Ok(Some(Strings::Plain)),
        2 => Ok(Some(Strings::View)),
        other => Err(refused(format!("expected a layout of strings, found {other}"))),
    }
}

fn opening(said: &message::Opening, bound: &Bound) -> Result<Opening> {
    let storage: Arc<dyn Storage> = if said.foreign_storage {
        let missing =
            || Error::unsupported("a plan whose files are reached by a file system of another process");
        bound.storage.clone().ok_or_else(missing)?
    } else {
        let options: BTreeMap<String, String> =
            said.storage.iter().map(|one| (one.name.clone(), one.text.clone())).collect();
        Arc::new(Stores(options))
    };
    let schema = match (&said.schema, &said.ddl) {
        (Some(schema), None) => Some(SchemaSpec::Arrow(arrow::to_schema(schema)?)),
        (None, Some(ddl)) => Some(SchemaSpec::Ddl(ddl.clone())),
        (None, None) => None,
        _ => return Err(refused("expected one schema, found two")),
    };
    let [max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows] =
        *said.limits.as_slice()
    else {
        return Err(refused(format!("expected 5 limits, found {}", said.limits.len())));
    };
    let extra = match said.extra.as_ref().map(value).transpose()? {
        Some(Value::Map(pairs)) => pairs.into_iter().collect(),
        None => BTreeMap::new(),
        Some(_) => return Err(refused("expected options by their names")),
    };
    let key_source = if said.asks_for_keys {
        let missing = || Error::unsupported("a plan whose keys are asked of a function of another process");
        Some(bound.keys.clone().ok_or_else(missing)?)
    } else {
        None
    };
    let options = OpenOptions {
        schema,
        skip_checksums: said.skip_checksums,
        keys: said.keys.iter().map(|one| (one.name.clone(), one.key.clone())).collect(),
        key_source,
        limits: Limits { max_block_bytes, max_columns, max_depth, max_metadata_bytes, max_unit_rows },
        threads: said.threads.map(|threads| size(threads, "the threads")).transpose()?,
        microseconds: said.microseconds,
        strings: strings(said.strings)?,
        extra,
    };
    Ok(Opening { format: said.format.clone(), options, storage })
}

fn value(said: &message::Value) -> Result<Value> {
    let items = || said.items.iter().map(value).collect::<Result<Vec<_>>>();
    Ok(match said.kind {
        0 => Value::Null,
        1 => Value::Bool(said.int != 0),
        2 => Value::Int(said.int),
        3 => Value::UInt(said.uint),
        4 => Value::Float(said.float),
        5 => Value::Str(said.text.clone()),
        6 => Value::Bytes(said.bytes.clone()),
        7 => Value::List(items()?),
        8 if said.names.len() == said.items.len() => {
            Value::Map(said.names.iter().cloned().zip(items()?).collect())
        }
        8 => return Err(refused("expected a name for each value")),
        other => return Err(refused(format!("expected a value, found the kind {other}"))),
    })
}

fn table(said: &message::Table) -> Result<Fragment> {
    Ok(Fragment {
        defaults: arrow::to_row(&said.defaults)?,
        by: match said.by {
            0 => ColumnsBy::Name,
            1 => ColumnsBy::Position,
            2 => ColumnsBy::Id(said.key.clone()),
            other => return Err(refused(format!("expected how columns are found, found {other}"))),
        },
        complete: said.complete,
        ..Fragment::new(arrow::to_schema(&said.schema)?)
    })
}

fn file(said: &message::File, openings: &[Arc<Opening>], tables: &[Fragment]) -> Result<SplitFile> {
    let fragment = said.table.map(|number| at(tables, number, "tables")).transpose()?.cloned();
    let constants = arrow::to_row(&said.constants)?;
    Ok(SplitFile {
        path: said.path.clone(),
        opening: at(openings, said.opening, "ways to open a file")?.clone(),
        known: said.known.as_ref().map(known),
        recorded: Arc::new(said.recorded.iter().map(piece).collect()),
        fragment: fragment.map(|fragment| Fragment { constants, ..fragment }),
        source: None,
    })
}

fn known(said: &message::Known) -> Identity {
    Identity { len: said.len, modified: said.modified, etag: said.etag.clone() }
}

fn piece(said: &message::Piece) -> Piece {
    (said.at, said.bytes.clone())
}

fn split(said: &message::Split, files: &[Arc<SplitFile>]) -> Result<Split> {
    let file = at(files, said.file, "files")?.clone();
    let part = if said.of > 0 {
        if said.number >= said.of || said.target == 0 {
            return Err(refused(format!("expected one of {} shares, found number {}", said.of, said.number)));
        }
        Part::Share { number: said.number, of: said.of, target: said.target }
    } else {
        Part::Cut(coldframe_core::Split { part: said.part, range: said.start..said.end, rows: said.rows })
    };
    Ok(Split { file, part, own: said.own.iter().map(piece).collect() })
}
