//! Turns the fetched chunks of a row group into batches.
//!
//! Each leaf is read a batch of rows at a time, page by page, so that what is being decoded stays in cache. Where damage
//! is to be survived, every page is tried first: what is lost of any column cuts the rows of the group into segments
//! in which a column is whole or lost, and rows stay side by side.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, new_null_array};
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DecodeUnit, Error, ErrorContext, ErrorKind, OnError, Result, arrow_error,
};
use coldframe_encoding::codec::Decompressor;

use super::leaf::LeafReader;
use super::survey::Survey;
use super::{ScanContext, assemble};
use crate::open::groups::{Chunk, Group};
use crate::pages::chunk::ChunkContext;
use crate::pages::walk::PageWalk;

/// A row group to decode.
pub(crate) struct DecodeGroup {
    /// The scan.
    pub(crate) scan: Arc<ScanContext>,
    /// The group.
    pub(crate) group: Arc<Group>,
}

/// Rows in which each column is whole or lost.
#[derive(Clone, Debug)]
struct Segment {
    rows: usize,
    /// For each column whether it is lost.
    lost: Vec<bool>,
    /// Whether the rows are left out.
    dropped: bool,
}

impl DecodeUnit for DecodeGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let scan = self.scan.clone();
        let rows = usize::try_from(self.group.rows).unwrap_or(usize::MAX);
        let mut decompressor = Decompressor::new();
        let (mut readers, mut surveys) = (BTreeMap::new(), BTreeMap::new());
        for (place, bytes) in scan.wanted().into_iter().zip(bytes) {
            let Some(chunk) = self.group.chunks.get(place) else { continue };
            let context = scan.file.chunk_context(place, chunk)?;
            let name = || format!("column `{}`", context.leaf.name());
            if scan.on_error == OnError::Raise {
                let metadata =
                    chunk.metadata.as_ref().map_err(|e| Error::corrupt(e.clone()).at(chunk.range.start));
                let reader =
                    LeafReader::new(context.clone(), metadata.within(name)?, bytes, chunk.range.start);
                readers.insert(place, reader);
            } else {
                let survey = survey(&context, chunk, bytes, self.group.rows, &mut decompressor);
                readers.insert(place, LeafReader::of_parts(context, survey.parts.clone()));
                surveys.insert(place, survey);
            }
        }
        if readers.is_empty() {
            // Nothing in the file bounds rows of no column.
            scan.file.options.limits.unit_rows("a row group of which no column is read", self.group.rows)?;
        }
        let segments = segments(&scan, &self.group, surveys, rows);
        let large = self.group.chunks.iter().any(Chunk::is_large);
        Ok(Box::new(Batches { scan, group: self.group, readers, segments, decompressor, large }))
    }
}

fn survey(
    context: &ChunkContext,
    chunk: &Chunk,
    bytes: Bytes,
    rows: u64,
    decompressor: &mut Decompressor,
) -> Survey {
    match &chunk.metadata {
        Err(e) => Survey::all_lost(Error::corrupt(e.clone()), chunk.range.clone(), rows),
        Ok(metadata) => {
            let values = u64::try_from(metadata.num_values).unwrap_or(0);
            let walk = PageWalk::new(bytes, chunk.range.start, values, context.limits);
            Survey::new(context, walk, rows, chunk.range.end, decompressor)
        }
    }
}

/// Cuts the rows of a group where a column's loss begins or ends, and records the damage.
fn segments(
    scan: &ScanContext,
    group: &Group,
    surveys: BTreeMap<usize, Survey>,
    rows: usize,
) -> VecDeque<Segment> {
    let whole = Segment { rows, lost: vec![false; scan.columns.len()], dropped: false };
    if surveys.values().all(|s| s.lost.is_empty()) {
        return VecDeque::from([whole]);
    }
    let mut dropped = Ranges::default();
    let mut columns = Vec::new();
    for column in &scan.columns {
        let nulls = scan.on_error == OnError::Null && column.field().is_nullable();
        let (mut places, mut lost) = (Vec::new(), Ranges::default());
        column.leaf_places(&mut places);
        for survey in places.iter().filter_map(|i| surveys.get(i).map(|s| (i, s))) {
            let (place, survey) = survey;
            for (e, bytes, rows) in &survey.damage {
                let new = if nulls { 0 } else { dropped.add(rows.clone()) };
                let leaf = scan.file.leaf_name(*place);
                let mut record = Damage::from_error(e, bytes.clone(), Some(new));
                let inner = if record.structure.is_empty() {
                    String::new()
                } else {
                    format!(": {}", record.structure)
                };
                record.structure = format!("{}: column `{leaf}`{inner}", group.name());
                scan.damage.push(record);
            }
            for rows in &survey.lost {
                lost.add(rows.clone());
            }
        }
        columns.push((lost, nulls));
    }
    let mut cuts: Vec<u64> = vec![0, rows as u64];
    for (lost, _) in &columns {
        cuts.extend(lost.0.iter().flat_map(|r| [r.start, r.end]));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let pairs = cuts.iter().zip(cuts.iter().skip(1));
    let segment = |(start, end): (&u64, &u64)| {
        let lost: Vec<bool> = columns.iter().map(|(lost, _)| lost.contains(*start)).collect();
        let dropped = lost.iter().zip(&columns).any(|(lost, (_, nulls))| *lost && !nulls);
        Segment { rows: usize::try_from(end - start).unwrap_or(usize::MAX), lost, dropped }
    };
    pairs.map(segment).collect()
}

/// Ranges without overlap, in order.
#[derive(Debug, Default)]
struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Adds one; how much of it was not there.
    fn add(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.len();
        self.0.push(range);
        self.0.sort_unstable_by_key(|r| r.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(self.0.len());
        for range in self.0.drain(..) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.0 = merged;
        self.len() - before
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }

    fn contains(&self, at: u64) -> bool {
        self.0.iter().any(|r| r.contains(&at))
    }
}

/// The batches of a row group.
struct Batches {
    scan: Arc<ScanContext>,
    group: Arc<Group>,
    readers: BTreeMap<usize, LeafReader>,
    segments: VecDeque<Segment>,
    decompressor: Decompressor,
    /// Whether the byte arrays of a batch may be more than Arrow's offsets reach.
    large: bool,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(segment) = self.segments.front().cloned() else {
                self.finish()?;
                return Ok(None);
            };
            if segment.dropped || segment.rows == 0 {
                for reader in self.readers.values_mut() {
                    reader.skip(segment.rows, &mut self.decompressor)?;
                }
                self.segments.pop_front();
                continue;
            }
            let rows = segment.rows.min(self.scan.batch_rows);
            let (batch, rows) = self.read_fitting(rows, &segment)?;
            match self.segments.front_mut() {
                Some(front) if front.rows > rows => front.rows -= rows,
                _ => drop(self.segments.pop_front()),
            }
            return Ok(Some(batch));
        }
    }

    /// The next `rows` rows, or as many as Arrow's offsets allow.
    fn read_fitting(&mut self, mut rows: usize, segment: &Segment) -> Result<(RecordBatch, usize)> {
        if !self.large {
            return self.read(rows, segment).map(|batch| (batch, rows));
        }
        loop {
            let before = self.readers.clone();
            match self.read(rows, segment) {
                Err(e)
                    if rows > 1
                        && matches!(e.kind(), ErrorKind::LimitExceeded { option: "batch_size", .. }) =>
                {
                    self.readers = before;
                    rows /= 2;
                }
                other => return other.map(|batch| (batch, rows)),
            }
        }
    }

    fn read(&mut self, rows: usize, segment: &Segment) -> Result<RecordBatch> {
        let scan = self.scan.clone();
        let mut arrays = Vec::with_capacity(scan.columns.len());
        let mut places = Vec::new();
        for (column, lost) in scan.columns.iter().zip(&segment.lost) {
            places.clear();
            column.leaf_places(&mut places);
            let mut leaves = assemble::Leaves::new();
            for place in &places {
                let Some(reader) = self.readers.get_mut(place) else { continue };
                let name = || format!("column `{}`", scan.file.leaf_name(*place));
                if *lost {
                    reader.skip(rows, &mut self.decompressor).within(name)?;
                } else {
                    leaves.insert(*place, reader.read(rows, &mut self.decompressor).within(name)?);
                }
            }
            arrays.push(match lost {
                true => new_null_array(column.field().data_type(), rows),
                false => assemble::column(column, &mut leaves, rows)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(scan.schema.clone(), arrays, &options).map_err(arrow_error)
    }

    fn finish(&mut self) -> Result<()> {
        if self.scan.on_error != OnError::Raise {
            return Ok(());
        }
        for (place, reader) in &mut self.readers {
            let file = &self.scan.file;
            let name = || format!("column `{}`", file.leaf_name(*place));
            reader.finish(&mut self.decompressor).within(name)?;
        }
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.segments.clear();
            self.readers.clear();
        }
        let group = &self.group;
        next.map_err(|e| e.at(group.start)).transpose()
    }
}
