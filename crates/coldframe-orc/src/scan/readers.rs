//! The columns of a stripe, open at a row.

use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::FieldRef;
use coldframe_core::{Error, ErrorKind, OnError, Result};

use super::anchor;
use super::column::dictionary::Dictionaries;
use super::column::input::{BatchBytes, Input, StoredStreams};
use super::column::{self, ColumnReader};
use super::job::{Groups, ScanShared, StripeJob, stored_bytes};
use super::rle::bytes::BitRle;
use super::statements::Tally;
use crate::layout::compression::Compression;
use crate::layout::index::Positions;
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};

/// Rows that are proved together: as many whole row groups as fit, and at least one. The user's size of
/// batches does not matter.
pub(super) const PROVED_ROWS: usize = 1 << 16;

/// Rows that are skipped at once.
pub(super) const SKIPPED: u64 = 1 << 16;

/// A stripe with its streams.
pub(super) struct Stored {
    pub(super) scan: Arc<ScanShared>,
    pub(super) job: StripeJob,
    pub(super) streams: StoredStreams,
    /// Stored bytes of each column to decode.
    pub(super) sizes: Vec<u64>,
    dictionaries: Dictionaries,
    /// Those that were read with [`Compression::strict`].
    strict_dictionaries: Dictionaries,
    pub(super) batch_bytes: BatchBytes,
    /// For each column, whether it is read from the stripe's start, since its index is wrong or unusable.
    pub(super) in_full: Vec<bool>,
    /// For each column, whether structs inside structs have values for their nulls, too.
    pub(super) superfluous: Vec<bool>,
    /// Maximum rows that are decoded at once.
    pub(super) rows_at_once: usize,
}

/// How strictly chunks are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// As far as decompression shows.
    Usual,
    /// Each chunk but the last must be full, and end with its bytes.
    Strict,
}

/// For each column, whether no index states where its row groups begin.
fn in_full(groups: Option<&Groups>, columns: usize) -> Vec<bool> {
    let located = |place: usize| groups.and_then(|groups| groups.located.get(place).copied());
    (0..columns).map(|place| located(place) != Some(true)).collect()
}

impl Stored {
    pub(super) fn new(scan: Arc<ScanShared>, job: StripeJob, streams: StoredStreams) -> Self {
        let columns = scan.columns.len();
        Self {
            in_full: in_full(job.groups.as_deref(), columns),
            superfluous: vec![false; columns],
            // If damage is tolerated, the user's size of batches must not matter: the consumer cuts them.
            rows_at_once: match scan.on_error {
                OnError::Raise => scan.batch_rows,
                _ => scan.most_rows.min(PROVED_ROWS),
            },
            sizes: stored_bytes(&scan, &job),
            scan,
            job,
            streams,
            dictionaries: Dictionaries::default(),
            strict_dictionaries: Dictionaries::default(),
            batch_bytes: BatchBytes::default(),
        }
    }

    /// Sets where row groups begin.
    pub(super) fn set_groups(&mut self, groups: Option<Arc<Groups>>) {
        self.in_full = in_full(groups.as_deref(), self.scan.columns.len());
        self.job.groups = groups;
    }

    /// Forgets dictionaries that were read from other streams.
    pub(super) fn forget_dictionaries(&mut self) {
        (self.dictionaries, self.strict_dictionaries) = Default::default();
    }

    /// A column of the scan.
    pub(super) fn column(&self, place: usize) -> Result<(&Column, &FieldRef)> {
        let (id, field) =
            self.scan.columns.get(place).ok_or_else(|| Error::invalid("a column that no scan requested"))?;
        let of = self.scan.shape.tree.get(*id);
        let of = of.ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))?;
        Ok((of, field))
    }

    /// The input of a column's readers, at the stripe's start or where a row group begins.
    pub(super) fn input<'a>(
        &'a self,
        place: Option<usize>,
        positions: Option<&'a Positions>,
        chunks: Chunks,
    ) -> Input<'a> {
        let shape = &self.scan.shape;
        let strict = chunks == Chunks::Strict && shape.quirks.full_chunks;
        let is = |flags: &[bool]| place.and_then(|place| flags.get(place).copied()).unwrap_or(false);
        Input {
            tree: &shape.tree,
            changes: self.scan.damage.changes(),
            layout: &self.job.layout,
            streams: &self.streams,
            positions,
            compression: Compression { strict, ..shape.tail.compression },
            dictionaries: if strict { &self.strict_dictionaries } else { &self.dictionaries },
            timezone: self.job.layout.writer_timezone.as_deref(),
            timestamps_in: shape.options.timestamps_in.as_deref(),
            quirks: shape.quirks,
            limits: shape.options.limits,
            rows: self.job.stripe.rows,
            file_len: shape.tail.file_len,
            single_row: self.rows_at_once == 1,
            batch_bytes: &self.batch_bytes,
            superfluous: is(&self.superfluous),
        }
    }

    /// The row group from whose beginning a column is opened at `row`; `None` for the stripe's start.
    fn group_of(&self, place: usize, row: u64) -> Option<(&Groups, usize)> {
        let is_in_full = self.in_full.get(place).copied().unwrap_or(true);
        let groups = self.job.groups.as_deref().filter(|_| !is_in_full)?;
        Some((groups, groups.holding(row)))
    }

    /// The nulls of the root at a row group or the stripe's start; `None` if it stores none.
    pub(super) fn root(&self, positions: Option<&Positions>) -> Result<Option<BitRle>> {
        let is_struct = self.scan.shape.tree.root().is_some_and(|r| r.kind == Kind::Struct);
        if !is_struct || self.job.layout.stream(0, StreamKind::Present).is_none() {
            return Ok(None);
        }
        self.input(None, positions, Chunks::Usual).bits(0, StreamKind::Present).map(Some)
    }

    /// Whether columns are opened at a position of the index, where the row group of `row` begins.
    pub(super) fn believes(&self, row: u64) -> bool {
        let begin = |place| self.group_of(place, row).and_then(|(groups, group)| groups.begin(group));
        (0..self.in_full.len()).any(|place| begin(place).is_some())
    }

    /// The nulls of the root at `row`, from where the row group of the row `from` begins.
    pub(super) fn root_at(&self, from: u64, row: u64) -> Result<Option<BitRle>> {
        let by_index = self.in_full.iter().all(|in_full| !in_full);
        let groups = self.job.groups.as_deref().filter(|_| by_index && !self.in_full.is_empty());
        let group = groups.map_or(0, |groups| groups.holding(from));
        let begin = groups.and_then(|groups| groups.begin(group)).map(AsRef::as_ref);
        let first = groups.and_then(|groups| groups.runs.get(group)).map_or(0, |run| run.rows.start);
        let Some(mut bits) = self.root(begin)? else { return Ok(None) };
        bits.skip(usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX))?;
        Ok(Some(bits))
    }

    /// Opens a column at `row`, from where the row group of the row `from` begins.
    pub(super) fn open(&self, place: usize, from: u64, row: u64) -> Result<Box<dyn ColumnReader>> {
        let group = self.group_of(place, from);
        let begin = group.and_then(|(groups, group)| groups.begin(group)).map(AsRef::as_ref);
        let first = group.and_then(|(groups, group)| groups.runs.get(group)).map_or(0, |run| run.rows.start);
        let mut reader = self.open_at(place, begin, Chunks::Usual)?;
        self.skip(reader.as_mut(), begin, row.saturating_sub(first))?;
        Ok(reader)
    }

    /// Opens a column at the stripe's start or where a row group begins.
    pub(super) fn open_at(
        &self,
        place: usize,
        begin: Option<&Positions>,
        chunks: Chunks,
    ) -> Result<Box<dyn ColumnReader>> {
        let (of, field) = self.column(place)?;
        let reader = column::reader(&self.input(Some(place), begin, chunks), of, field);
        reader.map_err(|e| self.as_damage(e))
    }

    /// Skips the first rows of a reader that was opened at `begin`.
    fn skip(&self, reader: &mut dyn ColumnReader, begin: Option<&Positions>, mut rows: u64) -> Result<()> {
        let mut root = if rows > 0 { self.root(begin)? } else { None };
        while rows > 0 {
            let n = rows.min(SKIPPED).min(self.rows_at_once as u64);
            let some = usize::try_from(n).unwrap_or(usize::MAX);
            self.batch_bytes.clear();
            reader.skip(some, nulls(&mut root, some)?.as_ref())?;
            rows -= n;
        }
        Ok(())
    }

    /// If damage is tolerated, an unknown encoding or time zone in a stripe's footer counts as damage: other
    /// stripes can still be read.
    fn as_damage(&self, e: Error) -> Error {
        match e.kind() {
            ErrorKind::Unsupported(_) if self.scan.on_error != OnError::Raise => e.as_damage(),
            _ => e,
        }
    }

    /// The statistics of a column in a row group, or in the whole stripe, to be compared with its values.
    pub(super) fn tally(&self, place: usize, group: Option<usize>) -> Option<Tally> {
        // Superfluous values are counted in the statistics, too.
        let groups = self.job.groups.as_deref().filter(|_| self.superfluous.get(place) != Some(&true))?;
        Tally::new(&self.scan, groups, place, group)
    }

    /// Fails unless a column's values end at `row`, if the file states where they end.
    pub(super) fn check_position(
        &self,
        place: usize,
        reader: &dyn ColumnReader,
        row: u64,
        chunks: Chunks,
    ) -> Result<()> {
        let (of, field) = self.column(place)?;
        if row == self.job.stripe.rows {
            return anchor::check_end(reader, &self.input(Some(place), None, chunks), of);
        }
        let Some(groups) = self.job.groups.as_deref() else { return Ok(()) };
        let group = groups.holding(row);
        let is_begin = groups.runs.get(group).is_some_and(|run| run.rows.start == row);
        let is_located = groups.located.get(place) == Some(&true);
        match groups.begin(group).filter(|_| is_begin && is_located) {
            Some(begin) => {
                let input = self.input(Some(place), Some(begin), chunks);
                anchor::check_begin(reader, &input, begin, of, field, row)
            }
            None => Ok(()),
        }
    }
}

/// The nulls of the next `rows` rows of the root.
pub(super) fn nulls(root: &mut Option<BitRle>, rows: usize) -> Result<Option<NullBuffer>> {
    let Some(bits) = root else { return Ok(None) };
    let bits = bits.read(rows)?;
    Ok(Some(NullBuffer::new(BooleanBuffer::new(bits.into(), 0, rows))))
}

/// How many rows to read at once after `rows` took too much memory: as many as should fit, and at most half.
pub(super) fn fewer_rows(e: &Error, rows: usize, batch_bytes: u64) -> usize {
    let ErrorKind::BatchTooLong { asked, .. } = e.kind() else { return (rows / 2).max(1) };
    let fit = (rows as u64).saturating_mul(batch_bytes) / (*asked).max(1);
    usize::try_from(fit).unwrap_or(usize::MAX).min(rows / 2).max(1)
}

/// The error for a single row whose values no array can hold.
pub(super) fn too_long_for_all(e: Error) -> Error {
    let ErrorKind::BatchTooLong { what, asked } = *e.kind() else { return e };
    let limit = i32::MAX.unsigned_abs().into();
    let limited = Error::new(ErrorKind::LimitExceeded { what, asked, limit, option: "max_block_bytes" });
    limited.within(e.structure())
}
