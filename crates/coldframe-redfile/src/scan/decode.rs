//! Decodes the fetched chunks of a row group into batches.
//!
//! Each leaf is read a batch of rows at a time, page by page, so that what is being decoded stays in the
//! cache; batches have fewer rows if the rows are long. With `skip` and `null`, the whole group is decoded
//! before its first row is returned. If that fails, every page is tried: the losses of all columns divide the
//! rows of the group into stretches. In a stretch each column is either intact or lost, so that values stay in
//! their rows. Single pages do not show whether the leaves of a column contradict each other. If they do,
//! assembling the column fails, and the rows are located by reading smaller and smaller ranges.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::DataType;
use bytes::Bytes;
use coldframe_core::salvage::{Fate, Loss, Salvage, Stretch, cut_batches, decoded_whole, fitting};
use coldframe_core::{BatchIter, DamageLog, DecodeUnit, Error, ErrorContext, OnError, Result, arrow_error};
use coldframe_encoding::codec::Decompressor;

use super::leaf::LeafReader;
use super::survey::Survey;
use super::{ScanContext, assemble};
use crate::open::groups::{Chunk, Group};
use crate::pages::chunk::ChunkContext;
use crate::pages::plain::fixed_width;
use crate::pages::walk::PageWalk;

/// How often a row group is read again to locate rows that cannot be assembled. After that, a batch with such
/// a row is lost as a whole.
const MAX_SEARCHES: u32 = 10_000;

/// A row group that takes at most this part of the read's memory is decoded before its first row is returned. The pages of
/// a larger one are decoded twice.
const WHOLE_SHARE: u64 = 4;

/// Decoded bytes of such a group, beyond twice its stored bytes: a page of nulls takes almost no bytes.
const UNBACKED_BYTES: u64 = 32 << 20;

/// Rows of such a group that are decoded at once, however small the user's batches are.
const ROWS_AT_ONCE: usize = 1 << 16;

/// A row group to decode.
pub(crate) struct DecodeGroup {
    /// The scan.
    pub(crate) scan: Arc<ScanContext>,
    /// The group.
    pub(crate) group: Arc<Group>,
    /// How many bytes of each chunk are read at once, if the group has too many for the read's memory: its bytes
    /// are not fetched then.
    pub(crate) window: Option<u64>,
}

impl DecodeUnit for DecodeGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let most = self.scan.batch_rows;
        if self.scan.on_error == OnError::Raise {
            return Ok(Box::new(self.batches(bytes)?));
        }
        if self.window.is_none() {
            return match self.whole(&bytes) {
                Some(whole) => Ok(Box::new(cut_batches(whole, most).map(Ok))),
                None => Ok(Box::new(self.batches(bytes)?)),
            };
        }
        // Decoded twice, a window at a time. Only if it is damaged, all of its bytes are read at once.
        let at_once = most.max(ROWS_AT_ONCE);
        let once = self.raising(at_once).batches(bytes.clone());
        if once.is_ok_and(|mut batches| batches.all(|batch| batch.is_ok())) {
            return Ok(Box::new(self.raising(most).batches(bytes)?));
        }
        let bytes = self.scan.fetch(&self.group).into_iter().map(|part| part.source.read(part.range));
        let bytes = bytes.collect::<Result<_>>()?;
        Ok(Box::new(Self { window: None, ..*self }.batches(bytes)?))
    }
}

impl DecodeGroup {
    /// The group as a plain read decodes it, in batches of at most `batch_rows` rows.
    fn raising(&self, batch_rows: usize) -> Self {
        let scan = ScanContext {
            on_error: OnError::Raise,
            batch_rows,
            damage: DamageLog::default(),
            ..(*self.scan).clone()
        };
        Self { scan: Arc::new(scan), group: self.group.clone(), window: self.window }
    }

    /// All batches of an intact group; `None` if the group is damaged or too large.
    fn whole(&self, bytes: &[Bytes]) -> Option<Vec<RecordBatch>> {
        let stored = bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(bytes.len() as u64));
        let justified = UNBACKED_BYTES.saturating_add(stored.saturating_mul(2));
        let most = justified.min(self.scan.file.options.limits.memory_limit / WHOLE_SHARE);
        let leaves = self.scan.wanted();
        let chunks = leaves.iter().filter_map(|(place, _)| self.group.chunks.get(*place));
        if chunks.map(Chunk::unpacked).fold(0, u64::saturating_add) > most {
            return None;
        }
        let batch_rows = self.scan.batch_rows.max(ROWS_AT_ONCE);
        decoded_whole(self.raising(batch_rows).batches(bytes.to_vec()).ok()?, most)
    }

    /// The batches of the group.
    pub(super) fn batches(self, bytes: Vec<Bytes>) -> Result<Batches> {
        let Self { scan, group, window } = self;
        let mut decompressor = Decompressor::new();
        let nullable = scan.columns.iter().map(|c| c.field().is_nullable());
        let mut salvage = Salvage::new(scan.on_error, nullable, scan.damage.clone());
        let mut readers = Readers::new();
        // The readers are cloned for a second pass, but only if one may be needed.
        let mut may_retry = scan.on_error != OnError::Raise;
        let mut unpacked = 0u64;
        // Minimum memory of a row whose values are all null.
        let mut width = 0u64;
        let columns = scan.columns.iter().enumerate().flat_map(|(i, column)| {
            let mut leaves = Vec::new();
            column.typed_leaves(&mut leaves);
            leaves.into_iter().map(move |(place, data_type)| (i, place, data_type))
        });
        for ((column, place, data_type), bytes) in columns.zip(bytes) {
            let Some(chunk) = group.chunks.get(place) else { continue };
            unpacked = unpacked.saturating_add(chunk.unpacked());
            let tolerant = scan.on_error != OnError::Raise;
            let (context, unreadable) = match scan.file.chunk_context(place, chunk) {
                // An invalid codec may be damage of the footer: in that case only the chunk is lost.
                Err(e) if tolerant => (scan.file.leaf_context(place, None)?, Some(e)),
                context => (context?, None),
            };
            may_retry |= context.leaf.max_repetition > 0;
            width += fixed_width(context.leaf.physical_type).unwrap_or(4) as u64;
            let reader = if !tolerant {
                let metadata =
                    chunk.metadata.as_ref().map_err(|e| Error::corrupt(e.clone()).at(chunk.range.start));
                let metadata = metadata.within(|| format!("column `{}`", context.leaf.name()))?;
                let values = u64::try_from(metadata.num_values).unwrap_or(0);
                let source = scan.file.parts.get(chunk.source).map(|part| part.source.clone());
                let walk = match window.zip(source) {
                    Some((window, source)) => {
                        PageWalk::windowed(source, chunk.range.clone(), window, values, context.limits)
                    }
                    None => PageWalk::new(bytes, chunk.range.start, values, context.limits),
                };
                LeafReader::new(context, data_type, walk)
            } else {
                let survey = match unreadable {
                    Some(e) => Survey::all_lost(e, chunk.range.clone(), group.rows),
                    None => survey(&context, data_type, chunk, bytes, group.rows, &mut decompressor),
                };
                for (e, bytes, rows) in survey.damage {
                    salvage.lose(column, loss(&group, &context.leaf.name(), &e, bytes, rows));
                }
                LeafReader::of_parts(context, data_type, survey.parts)
            };
            readers.insert(place, reader);
        }
        if readers.is_empty() {
            // If no column is read, the number of rows is not limited by the length of the file.
            scan.file.options.limits.counted_rows("a row group without requested columns", group.rows)?;
        }
        let stretches = salvage.stretches(0..group.rows);
        // Batches are shortened before reading if rows are long on average.
        let batch_bytes = scan.file.options.limits.batch_bytes();
        let row = (unpacked / group.rows.max(1)).max(width).max(1);
        let max_rows = usize::try_from(batch_bytes / row).unwrap_or(usize::MAX);
        let batch_rows = scan.batch_rows.min(max_rows.max(1));
        may_retry |= unpacked > batch_bytes;
        let search = Search { rows: batch_rows, left: MAX_SEARCHES, lost: None };
        Ok(Batches { scan, group, readers, stretches, salvage, decompressor, batch_rows, may_retry, search })
    }
}

fn survey(
    context: &ChunkContext,
    data_type: &DataType,
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
            Survey::new(context, data_type, walk, rows, chunk.range.end, decompressor)
        }
    }
}

/// The loss that damage in a leaf causes.
fn loss(group: &Group, leaf: &str, e: &Error, bytes: Range<u64>, rows: Range<u64>) -> Loss {
    let mut loss = Loss::from_error(e, bytes, rows);
    let inner = if loss.structure.is_empty() { String::new() } else { format!(": {}", loss.structure) };
    loss.structure = format!("{}: column `{leaf}`{inner}", group.name());
    loss
}

type Readers = BTreeMap<usize, LeafReader>;

/// The batches of a row group.
pub(super) struct Batches {
    pub(super) scan: Arc<ScanContext>,
    pub(super) group: Arc<Group>,
    readers: Readers,
    stretches: VecDeque<Stretch>,
    salvage: Salvage,
    decompressor: Decompressor,
    pub(super) batch_rows: usize,
    may_retry: bool,
    search: Search,
}

/// The search for rows that cannot be assembled: row by row after a bad row, and in ranges of doubling length
/// as long as there is none.
struct Search {
    /// How many rows to read next.
    rows: usize,
    /// How many more failures are allowed.
    left: u32,
    /// The lost rows found so far that are adjacent: the column, the error, the rows.
    lost: Option<(usize, Error, Range<u64>)>,
}

/// Why a batch could not be read: the column, by its index among the scan's columns.
pub(super) struct Failed(pub(super) usize, pub(super) Error);

impl Batches {
    /// Maximum bytes of a batch of several rows.
    pub(super) fn batch_bytes(&self) -> u64 {
        self.scan.file.options.limits.batch_bytes()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(stretch) = self.stretches.front_mut() {
            let left = usize::try_from(stretch.rows.end - stretch.rows.start).unwrap_or(usize::MAX);
            let (start, fate) = (stretch.rows.start, stretch.fate.clone());
            if left == 0 || fate == Fate::Dropped {
                self.stretches.pop_front();
                for reader in self.readers.values_mut() {
                    reader.skip(left, &mut self.decompressor)?;
                }
                continue;
            }
            let (batch, rows) = self.read_tolerant(left.min(self.search.rows), start, &fate)?;
            if let Some(stretch) = self.stretches.front_mut() {
                stretch.rows.start = start.saturating_add(rows as u64);
            }
            if let Some(batch) = batch {
                return Ok(Some(batch));
            }
        }
        self.record_lost();
        self.finish()?;
        Ok(None)
    }

    /// Reads the next `rows` rows, or fewer. Returns their number, and the batch; no batch if the rows are
    /// lost.
    fn read_tolerant(
        &mut self,
        mut rows: usize,
        start: u64,
        fate: &Fate,
    ) -> Result<(Option<RecordBatch>, usize)> {
        loop {
            let read = self.read_fitting(rows, fate, &|_| true).and_then(|(arrays, rows)| {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(self.scan.schema.clone(), arrays, &options);
                Ok((batch.map_err(|e| Failed(0, arrow_error(e)))?, rows))
            });
            let Failed(column, e) = match read {
                Ok((batch, rows)) => {
                    self.record_lost();
                    self.search.rows = self.search.rows.saturating_mul(2).min(self.batch_rows);
                    return Ok((Some(batch), rows));
                }
                Err(failed) => failed,
            };
            if self.scan.on_error == OnError::Raise || !e.is_damage() {
                return Err(e);
            }
            let may_search = self.search.left > 0;
            self.search.left = self.search.left.saturating_sub(1);
            if rows > 1 && may_search {
                rows /= 2;
                continue;
            }
            self.search.rows = if may_search { 1 } else { self.batch_rows };
            let end = start.saturating_add(rows as u64);
            match &mut self.search.lost {
                Some((same, _, lost)) if *same == column && lost.end == start => lost.end = end,
                _ => {
                    self.record_lost();
                    self.search.lost = Some((column, e, start..end));
                }
            }
            for reader in self.readers.values_mut() {
                reader.skip(rows, &mut self.decompressor)?;
            }
            return Ok((None, rows));
        }
    }

    /// Records the lost rows of the search.
    fn record_lost(&mut self) {
        let Some((column, e, rows)) = self.search.lost.take() else { return };
        let name = self.scan.columns.get(column).map_or("", |c| c.name.as_str());
        let bytes = self.group.start..self.group.end;
        self.salvage.lose_rows(loss(&self.group, name, &e, bytes, rows));
    }

    /// Reads the columns that `wanted` accepts, for the next `rows` rows or as many as an array can hold. The
    /// readers do not advance on an error.
    pub(super) fn read_fitting(
        &mut self,
        rows: usize,
        fate: &Fate,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<ArrayRef>, usize), Failed> {
        let mut failed = None;
        let read = fitting(rows, |rows| {
            let before = self.may_retry.then(|| self.readers.clone());
            self.read(rows, fate, wanted).map_err(|Failed(column, e)| {
                if let Some(before) = before {
                    self.readers = before;
                }
                failed = Some(column);
                e
            })
        });
        read.map_err(|e| Failed(failed.unwrap_or_default(), e))
    }

    fn read(
        &mut self,
        rows: usize,
        fate: &Fate,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<ArrayRef>, Failed> {
        let scan = self.scan.clone();
        let mut arrays = Vec::with_capacity(scan.columns.len());
        for (i, column) in scan.columns.iter().enumerate().filter(|(i, _)| wanted(*i)) {
            let lost = matches!(fate, Fate::Null(columns) if columns.get(i) == Some(&true));
            let mut places = Vec::new();
            column.leaf_places(&mut places);
            let mut leaves = assemble::Leaves::new();
            for place in places {
                let Some(reader) = self.readers.get_mut(&place) else { continue };
                let name = || format!("column `{}`", scan.file.leaf_name(place));
                if lost {
                    let skipped = reader.skip(rows, &mut self.decompressor).within(name);
                    skipped.map_err(|e| Failed(i, e))?;
                } else {
                    let data = reader.read(rows, &mut self.decompressor).within(name);
                    leaves.insert(place, data.map_err(|e| Failed(i, e))?);
                }
            }
            let array = match lost {
                true => Ok(new_null_array(column.field().data_type(), rows)),
                false => assemble::column(column, &mut leaves, rows),
            };
            arrays.push(array.map_err(|e| Failed(i, e))?);
        }
        Ok(arrays)
    }

    /// Skips the next `rows` rows of the columns that `wanted` accepts.
    pub(super) fn skip_rows(&mut self, rows: usize, wanted: &dyn Fn(usize) -> bool) -> Result<()> {
        for (_, column) in self.scan.columns.iter().enumerate().filter(|(i, _)| wanted(*i)) {
            let mut places = Vec::new();
            column.leaf_places(&mut places);
            for place in places {
                let Some(reader) = self.readers.get_mut(&place) else { continue };
                let skipped = reader.skip(rows, &mut self.decompressor);
                skipped.within(|| format!("column `{}`", self.scan.file.leaf_name(place)))?;
            }
        }
        Ok(())
    }

    /// Ends the reading.
    pub(super) fn stop(&mut self) {
        self.stretches.clear();
        self.readers.clear();
    }

    pub(super) fn finish(&mut self) -> Result<()> {
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
            self.stop();
        }
        let group = &self.group;
        next.map_err(|e| e.at(group.start)).transpose()
    }
}
