//! Converts messages to plans.

use std::sync::Arc;

use arrow_array::RecordBatch;
use coldframe_core::{OnError, Piece, Result, Scan};

use super::read_parts::{Bound, at, by, known, opening, size, strings};
use super::table_def::{columns_of, conversion_of, deletes_of};
use super::{arrow, message, predicate, refused};
use crate::dataset::fragment::Fragment;
use crate::dataset::opening::Opening;
use crate::dataset::plan::{Part, Plan, Split, SplitFile};
use crate::dataset::table_def::Stated;

pub(super) fn plan(message: &message::Plan, bound: &Bound) -> Result<Plan> {
    let scan = message.scan.as_ref().map(scan).transpose()?.unwrap_or_default();
    let openings = message.openings.iter().map(|message| opening(message, bound).map(Arc::new));
    let openings = openings.collect::<Result<Vec<_>>>()?;
    let tables = message.tables.iter().map(table).collect::<Result<Vec<_>>>()?;
    let key_tables = super::table_def::key_tables(&message.key_tables)?;
    let files =
        message.files.iter().map(|message| file(message, &openings, &tables, &key_tables).map(Arc::new));
    let files = files.collect::<Result<Vec<_>>>()?;
    let splits = message.splits.iter().map(|message| split(message, &files)).collect::<Result<_>>()?;
    Ok(Plan { schema: arrow::to_schema(&message.schema)?, scan, splits })
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

fn table(message: &message::Table) -> Result<Fragment> {
    Ok(Fragment {
        defaults: arrow::to_row(&message.defaults)?,
        by: by(message.by, &message.key)?,
        complete: message.complete,
        stated: Arc::new(Stated {
            table: Arc::new(columns_of(message.stated.as_ref())?),
            own: columns_of(message.own.as_ref())?,
            conversion: conversion_of(message.conversion)?,
            row_numbers: message.row_numbers.clone(),
        }),
        ..Fragment::new(arrow::to_schema(&message.schema)?)
    })
}

fn file(
    message: &message::File,
    openings: &[Arc<Opening>],
    tables: &[Fragment],
    key_tables: &[Arc<RecordBatch>],
) -> Result<SplitFile> {
    let deletes = message.deletes.as_ref().map(|message| deletes_of(message, key_tables)).transpose()?;
    let (deletes, first_row, rows) = (deletes.map(Arc::new), message.first_row, message.rows);
    let fragment = message.table.map(|number| at(tables, number, "tables")).transpose()?.cloned();
    let constants = arrow::to_row(&message.constants)?;
    Ok(SplitFile {
        path: message.path.clone(),
        opening: at(openings, message.opening, "ways to open a file")?.clone(),
        known: message.known.as_ref().map(known),
        recorded: Arc::new(message.recorded.iter().map(piece).collect()),
        fragment: fragment.map(|fragment| Fragment { constants, deletes, first_row, rows, ..fragment }),
        source: None,
    })
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
