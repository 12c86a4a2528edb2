//! Plans one split, which is a range of rows of a region. A unit is a range of rows with the blocks of all
//! files that may have these rows.
//!
//! ```text
//! file 0   |--a--|--f--|--m--|--s--|       a unit takes blocks in order of their starts until it has enough bytes, and
//! file 1   |--b------|--k------|--r--|     ends before the row of the next block
//! unit       a .. k          )
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::RecordBatch;
use coldframe_core::format::Fetch;
use coldframe_core::{KeyRange, Notice, OnError, PassedOver, Plan, Result, Unit};

use super::damaged_rows::{self, DamagedRows};
use super::feed::{Feed, Piece};
use super::merge::{DecodeRows, Scanning};
use crate::regions::alive::Region;
use crate::regions::files::{DamagedFile, Shared, StoreFile};
use crate::wal::edits::{Edits, Logs};

/// Bytes on disk after which a unit ends at the next row boundary.
const UNIT_BYTES: u64 = 4 << 20;

/// The rows of a region to read.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
    /// Whether the range begins where a region or the range of a filter begins, and not where another split
    /// ends.
    pub(crate) first: bool,
}

/// The files and logs from which regions are read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) shared: Arc<Shared>,
    /// The logs with unflushed edits, if the scan reads them.
    pub(crate) logs: Option<Arc<Logs>>,
}

/// Plans the units of a range of rows.
pub(crate) struct RegionPlan {
    table: Source,
    region: Arc<Region>,
    scanning: Arc<Scanning>,
    /// For each family, whether it is read.
    families: Vec<bool>,
    rows: Rows,
    edits: Vec<Edits>,
    feeds: Option<Vec<Feed>>,
    damaged: Vec<DamagedRows>,
    done: bool,
}

impl RegionPlan {
    /// Plans `rows` of a region. Opens nothing before the first unit is requested.
    pub(crate) fn new(
        table: Source,
        region: Arc<Region>,
        scanning: Arc<Scanning>,
        families: Vec<bool>,
        rows: Rows,
    ) -> Self {
        let (edits, damaged) = (Vec::new(), Vec::new());
        Self { table, region, scanning, families, rows, edits, feeds: None, damaged, done: false }
    }

    fn reads(&self, family: usize) -> bool {
        self.families.get(family).copied().unwrap_or(false)
    }

    /// Whether this plan records damage that begins at a row.
    fn owns(&self, row: &[u8]) -> bool {
        let order = self.scanning.order;
        let after = self.rows.upper.as_ref().is_some_and(|upper| order.compare(row, upper).is_ge());
        !after && (self.rows.first || order.compare(row, &self.rows.lower).is_ge())
    }

    /// Opens the files of the region.
    fn start(&mut self) -> Result<Vec<Feed>> {
        let mut open = self.table.shared.open(&self.region)?;
        for file in std::mem::take(&mut open.damaged) {
            if self.reads(file.family) {
                self.record_damaged_file(file)?;
            }
        }
        if let Some(logs) = &self.table.logs {
            let (edits, damage) =
                logs.edits(&self.region, &open, self.scanning.order, self.scanning.on_error)?;
            self.edits = edits.into_iter().filter(|e| self.reads(e.family)).collect();
            if self.owns(&self.region.start) && logs.missing(&self.region, &open)?.is_some() {
                self.scanning.damage.pass_over(PassedOver::Logs, 1);
            }
            if !damage.is_empty() {
                self.withhold_region();
            }
            if self.owns(&self.region.start) {
                damage.into_iter().for_each(|damage| self.scanning.damage.push(damage));
            }
        }
        let mut feeds = Vec::with_capacity(open.files.len());
        for file in open.files.into_iter().filter(|f| self.reads(f.family)) {
            if self.is_outside(&file) {
                continue;
            }
            feeds.push(self.feed(file)?);
        }
        Ok(feeds)
    }

    /// The blocks of a file that have the rows. If its index contradicts the blocks at the ends of the rows, all of
    /// them are read for an index that is right.
    fn feed(&self, mut file: StoreFile) -> Result<Feed> {
        let order = self.scanning.order;
        let lower = match order.compare(&file.lower, &self.rows.lower) {
            Ordering::Greater => file.lower.clone(),
            _ => self.rows.lower.clone(),
        };
        let uppers = [&file.upper, &self.rows.upper].into_iter().flatten();
        let upper = uppers.min_by(|a, b| order.compare(a, b)).cloned();
        let rows = KeyRange { lower: Some(lower.clone()).filter(|lower| !lower.is_empty()), upper };
        let lie = match rows == KeyRange::default() {
            true => None,
            false => file.hfile.contradiction(&rows).map_err(|e| file.named(e))?,
        };
        let Some(lie) = lie else { return Ok(Feed::new(Arc::new(file), &self.rows.lower)) };
        match file.hfile.restored() {
            Ok(restored) => {
                self.scanning.damage.notify(Notice::wrong_index(&file.named(lie)));
                file.hfile = restored;
                Ok(Feed::new(Arc::new(file), &self.rows.lower))
            }
            Err(_) => Ok(Feed::broken(Arc::new(file), lower, lie)),
        }
    }

    /// Withholds all rows: the edits in the damaged part of a log are unknown, and each may replace or delete a cell.
    fn withhold_region(&mut self) {
        for (family, _) in self.families.iter().enumerate().filter(|(_, reads)| **reads) {
            self.damaged.push(DamagedRows {
                family,
                lower: self.region.start.clone(),
                upper: self.region.upper().map(<[u8]>::to_vec),
                through: false,
                whole_file: false,
                times: None,
            });
        }
    }

    /// Whether no row of a file is requested.
    fn is_outside(&self, file: &StoreFile) -> bool {
        let order = self.scanning.order;
        let after = self.rows.upper.as_ref().is_some_and(|upper| order.compare(&file.lower, upper).is_ge());
        let before = file.upper.as_ref().is_some_and(|upper| order.compare(upper, &self.rows.lower).is_le());
        after || before
    }

    fn record_damaged_file(&mut self, file: DamagedFile) -> Result<()> {
        if self.scanning.on_error == OnError::Raise {
            return Err(file.fault.to_error());
        }
        if self.owns(&file.lower) {
            self.scanning.damage.push(file.fault.damage);
        }
        if file.cells_intact {
            return Ok(());
        }
        let DamagedFile { family, lower, upper, .. } = file;
        self.damaged.push(DamagedRows {
            family,
            lower,
            upper,
            through: false,
            whole_file: true,
            times: None,
        });
        Ok(())
    }

    /// Takes blocks until they have enough bytes; returns the row before which the unit ends.
    fn fill(&mut self, feeds: &mut [Feed]) -> Option<Vec<u8>> {
        let order = self.scanning.order;
        let mut bytes = 0_u64;
        loop {
            let with_rows = feeds.iter().enumerate().filter_map(|(i, f)| Some((i, f.next_row()?)));
            let Some((i, row)) = with_rows.min_by(|a, b| order.compare(a.1, b.1)) else {
                return self.rows.upper.clone();
            };
            let row = row.to_vec();
            let feed = feeds.get_mut(i)?;
            let ends =
                |upper: &Option<Vec<u8>>| upper.as_ref().is_some_and(|u| order.compare(&row, u).is_ge());
            if ends(&self.rows.upper) || ends(&feed.file.upper) {
                feed.end();
                continue;
            }
            if bytes >= UNIT_BYTES && order.compare(&row, &self.rows.lower).is_gt() {
                return Some(row);
            }
            bytes = bytes.saturating_add(feed.take());
        }
    }

    /// Records damage: the rows of unreadable parts of indexes, and of blocks above the size limit.
    fn record_unreadable_blocks(&mut self, feeds: &mut [Feed]) -> Result<()> {
        for feed in feeds {
            for (piece, e) in std::mem::take(&mut feed.too_long) {
                let e = feed.file.named(e).within(self.region.describe());
                let own = self.owns(piece.first.as_slice().max(&feed.file.lower));
                self.scanning.record_damage(e, feed.file.raw().range_of(piece.block), None, own)?;
                let (family, times) = (feed.file.family, feed.file.times());
                damaged_rows::add_block(&mut self.damaged, family, piece, times, self.scanning.order);
            }
            let Some((row, e)) = feed.broken.take() else { continue };
            let e = feed.file.named(e).within(self.region.describe());
            let at = e.offset().unwrap_or(0);
            let own = self.owns(&row);
            self.scanning.record_damage(e, at..at, None, own)?;
            let (family, upper) = (feed.file.family, feed.file.upper.clone());
            let times = feed.file.times();
            let through = false;
            self.damaged.push(DamagedRows { family, lower: row, upper, through, whole_file: false, times });
        }
        Ok(())
    }

    fn unit(&mut self, feeds: &mut [Feed], upper: Option<Vec<u8>>) -> Option<Unit> {
        let order = self.scanning.order;
        let mut fetch = Vec::new();
        let mut files: Vec<(Arc<StoreFile>, Vec<Piece>)> = Vec::with_capacity(feeds.len());
        for feed in feeds {
            let pieces = feed.cut(order, upper.as_deref());
            let raw = feed.file.raw();
            let of_piece = |p: &Piece| Fetch { source: raw.source().clone(), range: raw.range_of(p.block) };
            fetch.extend(pieces.iter().map(of_piece));
            if !pieces.is_empty() {
                files.push((feed.file.clone(), pieces));
            }
        }
        let lower = std::mem::replace(&mut self.rows.lower, upper.clone().unwrap_or_default());
        let first = std::mem::replace(&mut self.rows.first, false);
        let edits = self.edits.iter().map(|e| (e.family, e.of_rows(order, &lower, upper.as_deref())));
        let edits: Vec<_> = edits.filter(|(_, cells)| !cells.is_empty()).collect();
        if files.is_empty() && edits.is_empty() {
            return None;
        }
        let structure = format!("{}: rows from \"{}\"", self.region.describe(), lower.escape_ascii());
        let scanning = self.scanning.clone();
        // Rows are requested in order, so earlier ranges are no longer needed.
        self.damaged.retain(|rows| !rows.ends_before(&lower, order));
        let damaged = self.damaged.clone();
        let decode = DecodeRows { scanning, files, lower, upper, first, damaged, edits };
        Some(Unit { fetch, bytes: 0..0, rows: None, structure, decode: Box::new(decode) })
    }
}

/// Passes the batches of a plan to `with`, for readers inside this crate.
pub(crate) fn each_batch(plan: &mut dyn Plan, mut with: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
    while let Some(unit) = plan.next_unit()? {
        let mut bytes = Vec::with_capacity(unit.fetch.len());
        for Fetch { source, range } in &unit.fetch {
            bytes.push(source.read(range.clone())?);
        }
        for batch in unit.decode.decode(bytes)? {
            with(batch?)?;
        }
    }
    Ok(())
}

impl Plan for RegionPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        while !self.done {
            let mut feeds = match self.feeds.take() {
                Some(feeds) => feeds,
                None => self.start()?,
            };
            let upper = self.fill(&mut feeds);
            self.record_unreadable_blocks(&mut feeds)?;
            self.done = feeds.iter().all(|f| f.next_row().is_none()) && upper == self.rows.upper;
            let unit = self.unit(&mut feeds, upper);
            self.feeds = Some(feeds);
            if unit.is_some() {
                return Ok(unit);
            }
        }
        Ok(None)
    }
}
