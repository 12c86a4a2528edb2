//! Converts plans to messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::{Error, Limits, OnError, Result, Scan, SchemaSpec, Value};

use super::table_def::{KeyTables, columns_to_message, conversion_to_message};
use super::{arrow, message, predicate};
use crate::dataset::columns::ColumnsBy;
use crate::dataset::fragment::Fragment;
use crate::dataset::plan::{Opening, Part, Plan, Split, SplitFile};
use crate::dataset::storage::{os_path, shown_path};

/// The parts that several splits share. Each is written once.
#[derive(Default)]
struct Known {
    openings: Vec<message::Opening>,
    tables: Vec<message::Table>,
    files: Vec<message::File>,
    /// The last file and the last opening, with their indexes: the next split or file usually has the same.
    /// For an opening, also whether its storage cannot be sent.
    file: Option<(Arc<SplitFile>, u32)>,
    opening: Option<(Arc<Opening>, bool, u32)>,
    /// The last fragment, with the index of its table.
    table: Option<(Fragment, u32)>,
    key_tables: KeyTables,
}

pub(super) fn plan(plan: &Plan) -> Result<message::Plan> {
    let mut known = Known::default();
    let splits = plan.splits.iter().map(|split| known.split(split)).collect::<Result<_>>()?;
    let Known { openings, tables, files, key_tables: KeyTables { all: key_tables, .. }, .. } = known;
    let (schema, scan) = (arrow::from_schema(&plan.schema)?, Some(scan(&plan.scan)?));
    Ok(message::Plan { schema, scan, openings, tables, files, splits, key_tables })
}

fn scan(scan: &Scan) -> Result<message::Scan> {
    Ok(message::Scan {
        has_columns: scan.columns.is_some(),
        columns: scan.columns.clone().unwrap_or_default(),
        filter: scan.predicate.as_ref().map_or(Ok(Vec::new()), predicate::to_nodes)?,
        limit: scan.limit,
        batch_rows: scan.batch_rows as u64,
        on_error: match scan.on_error {
            OnError::Raise => 0,
            OnError::Skip => 1,
            OnError::Null => 2,
        },
        no_prune: !scan.prune,
        threads: scan.threads as u64,
        strings: strings(scan.strings),
    })
}

fn strings(of: Option<Strings>) -> u32 {
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

impl Known {
    fn split(&mut self, split: &Split) -> Result<message::Split> {
        let file = match &self.file {
            Some((file, number)) if Arc::ptr_eq(file, &split.file) => *number,
            _ => self.file(&split.file)?,
        };
        self.file = Some((split.file.clone(), file));
        let own = split.own.iter().map(piece).collect();
        Ok(match &split.part {
            Part::Cut(cut) => message::Split {
                file,
                part: cut.part,
                start: cut.range.start,
                end: cut.range.end,
                rows: cut.rows,
                own,
                ..message::Split::default()
            },
            Part::Share { number, of, target } => message::Split {
                file,
                own,
                of: (*of).max(1),
                number: *number,
                target: *target,
                ..message::Split::default()
            },
        })
    }

    fn file(&mut self, file: &SplitFile) -> Result<u32> {
        if file.source.is_some() {
            return Err(Error::unsupported(format!(
                "a split of {} cannot be pickled or sent to another process: its source is an object of this \
                 process. Open the file by its path or URL instead",
                shown_path(&file.path)
            )));
        }
        let options = file.opening.storage.options(&os_path(&file.path));
        let opening = match &self.opening {
            Some((opening, foreign, number))
                if Arc::ptr_eq(opening, &file.opening) && *foreign == options.is_none() =>
            {
                *number
            }
            _ => number(&mut self.openings, self::opening(&file.opening, options)?)?,
        };
        self.opening = Some((file.opening.clone(), options.is_none(), opening));
        let fragment = file.fragment.as_ref();
        let table = fragment.map(|fragment| self.table(fragment)).transpose()?;
        let constants = fragment.map(|fragment| arrow::from_columns(&fragment.constants));
        let deletes = self.key_tables.deletes(fragment.and_then(|fragment| fragment.deletes.as_deref()))?;
        self.files.push(message::File {
            path: file.path.clone(),
            opening,
            table,
            known: file.known.as_ref().map(known),
            recorded: file.recorded.iter().map(piece).collect(),
            constants: constants.transpose()?.unwrap_or_default(),
            deletes,
            first_row: fragment.and_then(|fragment| fragment.first_row),
        });
        u32::try_from(self.files.len() - 1).map_err(|_| Error::unsupported("a plan of more than 2^32 files"))
    }

    fn table(&mut self, fragment: &Fragment) -> Result<u32> {
        let last = self.table.as_ref().filter(|(last, _)| is_same_table(last, fragment));
        let at = match last {
            Some((_, at)) => *at,
            None => number(&mut self.tables, table(fragment)?)?,
        };
        self.table = Some((fragment.clone(), at));
        Ok(at)
    }
}

/// Whether two fragments visibly have one table; false if only a comparison of their parts can tell.
fn is_same_table(one: &Fragment, other: &Fragment) -> bool {
    let same = |(a, b): (&(String, ArrayRef), &(String, ArrayRef))| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1);
    Arc::ptr_eq(&one.schema, &other.schema)
        && Arc::ptr_eq(&one.stated, &other.stated)
        && (&one.by, one.complete) == (&other.by, other.complete)
        && one.defaults.len() == other.defaults.len()
        && one.defaults.iter().zip(&other.defaults).all(same)
}

fn piece((at, bytes): &(u64, bytes::Bytes)) -> message::Piece {
    message::Piece { at: *at, bytes: bytes.clone() }
}

pub(super) fn known(known: &Identity) -> message::Known {
    message::Known { len: known.len, modified: known.modified, etag: known.etag.clone() }
}

fn table(fragment: &Fragment) -> Result<message::Table> {
    let (by, key) = by(&fragment.by);
    Ok(message::Table {
        schema: arrow::from_schema(&fragment.schema)?,
        defaults: arrow::from_columns(&fragment.defaults)?,
        by,
        key,
        complete: fragment.complete,
        stated: Some(columns_to_message(&fragment.stated.table)?),
        own: Some(columns_to_message(&fragment.stated.own)?),
        conversion: conversion_to_message(fragment.stated.conversion),
        row_numbers: fragment.stated.row_numbers.clone(),
    })
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
