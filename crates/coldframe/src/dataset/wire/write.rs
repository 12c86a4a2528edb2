//! Converts plans to messages.

use std::sync::Arc;

use arrow_array::ArrayRef;
use coldframe_core::{Error, OnError, Result, Scan};

use super::table_def::{KeyTables, columns_to_message, conversion_to_message};
use super::write_parts::{by, known, number, opening, strings};
use super::{arrow, message, predicate};
use crate::dataset::fragment::Fragment;
use crate::dataset::opening::Opening;
use crate::dataset::plan::{Part, Plan, Split, SplitFile};
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
            rows: fragment.and_then(|fragment| fragment.rows),
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

/// Whether two fragments share one table object; false if only a comparison of their parts would show equality.
fn is_same_table(last: &Fragment, next: &Fragment) -> bool {
    let same = |(a, b): (&(String, ArrayRef), &(String, ArrayRef))| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1);
    Arc::ptr_eq(&last.schema, &next.schema)
        && Arc::ptr_eq(&last.stated, &next.stated)
        && (&last.by, last.complete) == (&next.by, next.complete)
        && last.defaults.len() == next.defaults.len()
        && last.defaults.iter().zip(&next.defaults).all(same)
}

fn piece((at, bytes): &(u64, bytes::Bytes)) -> message::Piece {
    message::Piece { at: *at, bytes: bytes.clone() }
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
