//! Splits the fetched columns of a row group into cells and finds out what is lost.
//!
//! A column is decompressed once, as a whole; its cells are decoded a batch at a time ([`batches`]). If the SerDe
//! passes on a column's bytes without a copy (strings, binary), they live as long as the batches; otherwise the buffer
//! is reused for the next column.
//!
//! A key states the number of rows and the length of each cell of each column. A column must have as many lengths as
//! there are rows, and their sum must be the size of its bytes. Otherwise it is unknown which length is wrong, and
//! the column loses all cells of the group: their rows are dropped, or read as null. The number of rows is known
//! only if two statements agree: the key's number and a column's, or those of all of several columns. Otherwise the
//! group is lost.
//!
//! With a codec without checksums, one changed byte changes many cells of a column, and only some of them
//! contradict their type. If any does, the column loses all its cells of the group. Without a codec, it loses the cells
//! between them ([`surroundings`]). This is decided before the first row is returned.

mod batches;
mod doubtful;
mod surroundings;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, OffsetBuffer};
use bytes::Bytes;
use coldframe_core::salvage::{Loss, Salvage};
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, ErrorContext, ErrorKind, OnError, PlanRequest, Result,
    arrays,
};

use self::batches::Batches;
pub(super) use self::batches::take_cells;
use super::columns::{Decoders, ScanColumn};
use crate::layout::key::{CellLengths, ColumnKey, count_cells};
use crate::layout::row_group::RowGroup;

/// Maximum number of rows that are decoded at once, whatever the batch size, and of lengths that are expanded
/// before they are counted.
const MAX_ROWS: usize = 1 << 20;

/// A row group with at most this many Arrow bytes is decoded completely before its first row is returned. A larger
/// one is decoded twice.
const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Arrow bytes that the empty cells of a batch may take. They take no bytes in the file, so its size is no bound.
const EMPTY_BYTES: u64 = 64 << 20;

/// One row group to decode.
#[derive(Clone)]
pub(crate) struct DecodeGroup {
    pub(super) decoders: Arc<Decoders>,
    pub(super) group: RowGroup,
    /// Maximum number of rows of a batch.
    pub(super) batch_rows: usize,
    /// Maximum number of rows that are decoded at once.
    pub(super) max_rows: usize,
    pub(super) on_error: OnError,
    damage: DamageLog,
    number: u64,
    /// Whether only doubtful rows are returned.
    doubtful: bool,
    is_anchored: bool,
}

impl DecodeGroup {
    /// Row group `number` of the scan.
    pub(super) fn new(
        decoders: Arc<Decoders>,
        group: RowGroup,
        request: &PlanRequest,
        number: u64,
        is_anchored: bool,
    ) -> Self {
        let on_disk: u64 = decoders
            .file_columns()
            .filter_map(|i| group.key.columns.get(i))
            .fold(0, |sum, column| sum.saturating_add(column.disk_len));
        let bytes = EMPTY_BYTES.saturating_add(on_disk.saturating_mul(4)).min(decoders.limits.batch_bytes());
        let bounded = bytes / decoders.row_bytes;
        let bounded = usize::try_from(bounded).unwrap_or(usize::MAX).clamp(1, MAX_ROWS);
        let batch_rows = request.scan.batch_rows.min(bounded);
        let max_rows = if decoders.at_once { bounded } else { batch_rows };
        let (on_error, damage) = (request.scan.on_error, request.damage.clone());
        let doubtful = request.scan.doubtful;
        Self { decoders, group, batch_rows, max_rows, on_error, damage, number, doubtful, is_anchored }
    }
}

impl DecodeUnit for DecodeGroup {
    fn decode(mut self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut bytes = bytes.into_iter();
        let stored: Vec<Option<Bytes>> =
            self.columns().iter().map(|column| column.in_file.and_then(|_| bytes.next())).collect();
        if self.doubtful {
            return self.decode_doubtful(&stored);
        }
        let (mut cells, mut failed) = self.split(&stored)?;
        let nullable = self.columns().iter().map(|_| true);
        let mut salvage = Salvage::new(self.on_error, nullable, self.damage.clone());
        if !failed.is_empty() || (self.decoders.is_empty() && self.on_error != OnError::Raise) {
            let stated = self.group.key.rows;
            let Some(rows) = self.settled_rows() else {
                let e = Error::corrupt(format!("expected lengths of {stated} cells, found other numbers"));
                self.record(e.within("key"), None);
                return Ok(Box::new(std::iter::empty()));
            };
            if rows != stated {
                let e = Error::corrupt(format!("expected {rows} rows, as all columns have, found {stated}"));
                self.record(e.within("key"), Some(0));
                self.group.key.rows = rows;
                (cells, failed) = self.split(&stored)?;
            }
            for (i, e) in failed {
                salvage.lose(i, Loss::from_error(&e.within(self.title()), self.bytes(), 0..rows));
            }
        }
        let rows = self.group.key.rows;
        let spreads = self.decoders.spreads_damage();
        if self.on_error != OnError::Raise && (spreads || self.decoders.is_plain()) {
            if let Some(whole) = self.decoded_whole(&cells, &salvage)? {
                return Ok(Box::new(whole.into_iter().map(Ok)));
            }
            if !spreads {
                for (i, rows) in self.surrounded(&cells)? {
                    salvage.lose(i, self.doubtful_cells(i, rows));
                }
            }
            for (i, place) in cells.iter_mut().enumerate().filter(|_| spreads) {
                if let Some(e) = place.as_ref().map_or(Ok(None), |cells| self.contradiction(i, cells))? {
                    salvage.lose(i, Loss::from_error(&e.within(self.title()), self.bytes(), 0..rows));
                    *place = None;
                }
            }
        }
        let stretches = salvage.stretches(0..rows);
        Ok(Box::new(Batches::new(*self, cells, stretches)))
    }
}

/// The cells of a column.
#[derive(Clone)]
pub(super) struct ColumnCells {
    pub(super) data: Buffer,
    pub(super) places: Places,
}

/// Where a column's cells are.
#[derive(Clone)]
pub(super) enum Places {
    /// There are no cells: `TRUNCATE TABLE .. COLUMNS` removed them.
    Nulled,
    /// The offsets of all cells of the group, and the number of cells already taken.
    All(OffsetBuffer<i32>, usize),
    /// Lengths that are expanded a batch at a time.
    Lengths(CellLengths),
}

/// The cells of the requested columns, and the error of each column whose cells are lost.
type Split = (Vec<Option<ColumnCells>>, Vec<(usize, Error)>);

impl DecodeGroup {
    /// Splits the columns into cells; `stored` are their bytes. An error if damage is not skipped.
    fn split(&self, stored: &[Option<Bytes>]) -> Result<Split> {
        let (mut all, mut failed) = (Vec::with_capacity(stored.len()), Vec::new());
        for (i, disk) in stored.iter().enumerate() {
            let cells = disk.as_ref().map_or(Ok(None), |disk| self.column_cells(i, disk));
            all.push(match cells {
                Err(e) if self.on_error != OnError::Raise && e.is_damage() => {
                    failed.push((i, e));
                    None
                }
                cells => cells?,
            });
        }
        Ok((all, failed))
    }

    /// The group's key entry for a column; `None` if the file does not have the column.
    fn key(&self, column: &ScanColumn) -> Option<&ColumnKey> {
        column.in_file.and_then(|i| self.group.key.columns.get(i))
    }

    /// The cells of the requested column with index `place`.
    pub(super) fn column_cells(&self, place: usize, disk: &Bytes) -> Result<Option<ColumnCells>> {
        let key = self.columns().get(place).and_then(|column| self.key(column));
        key.map(|key| self.titled(place, self.cells(key, disk))).transpose()
    }

    /// Adds the column's name to an error of `result`.
    pub(super) fn titled<T>(&self, place: usize, result: Result<T>) -> Result<T> {
        result.within(|| self.columns().get(place).map_or_else(String::new, ScanColumn::title))
    }

    /// Splits a column into cells, if it agrees with its key.
    fn cells(&self, key: &ColumnKey, disk: &Bytes) -> Result<ColumnCells> {
        if key.lengths.is_empty() {
            return Ok(ColumnCells { data: Buffer::from(Vec::<u8>::new()), places: Places::Nulled });
        }
        let data = self.decoders.decompress(key, disk)?;
        let rows = usize::try_from(self.group.key.rows).unwrap_or(usize::MAX);
        // A short run can encode any number of empty cells: expand them at once only if needed.
        let shown = data.len().saturating_add(key.lengths.len()).min(MAX_ROWS);
        if rows > self.max_rows.max(shown) {
            let (cells, bytes) = count_cells(&key.lengths)?;
            self.compare(cells, bytes, &data)?;
            return Ok(ColumnCells { data, places: Places::Lengths(CellLengths::new(key.lengths.clone())) });
        }
        let mut lengths = CellLengths::new(key.lengths.clone());
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        lengths.read(rows, &mut ends)?;
        let (cells, more) = lengths.rest()?;
        let bytes = u64::try_from(lengths.end()).unwrap_or(0).saturating_add(more);
        self.compare(cells.saturating_add(rows as u64), bytes, &data)?;
        Ok(ColumnCells { data, places: Places::All(arrays::offsets(ends)?, 0) })
    }

    /// Compares the number of a column's cells with the rows, and their total size with its bytes.
    fn compare(&self, cells: u64, bytes: u64, data: &Buffer) -> Result<()> {
        let rows = self.group.key.rows;
        if cells != rows {
            return Err(Error::corrupt(format!("expected lengths of {rows} cells, found {cells}")));
        }
        if bytes != data.len() as u64 {
            let len = data.len();
            return Err(Error::corrupt(format!("expected cells of {len} bytes together, found {bytes}")));
        }
        Ok(())
    }

    /// The number of rows on which two statements of the key agree: the stated number and a column's, or those of
    /// several columns, if no column has another.
    fn settled_rows(&self) -> Option<u64> {
        let key = &self.group.key;
        let columns = key.columns.iter().filter(|column| !column.lengths.is_empty());
        let counts: Vec<_> = columns.map(|c| (count_cells(&c.lengths).ok(), c.data_len)).collect();
        // A key whose length differs from its header's may not be a key at all.
        let is_key = usize::try_from(self.group.header.key_len).ok() == Some(key.len);
        let is_stated =
            |(count, _): &(Option<(u64, u64)>, u64)| count.is_some_and(|(cells, _)| cells == key.rows);
        if counts.is_empty() || counts.iter().all(is_stated) || (is_key && counts.iter().any(is_stated)) {
            return Some(key.rows);
        }
        let mut whole = counts.iter().map(|(count, len)| count.filter(|(_, bytes)| bytes == len));
        let (rows, _) = whole.next().flatten()?;
        let agreed = counts.len() > 1 && whole.all(|count| count.is_some_and(|(cells, _)| cells == rows));
        Some(rows).filter(|rows| agreed && self.decoders.allows_rows(*rows))
    }

    /// Records damage that costs `rows` rows of this group.
    pub(super) fn record(&self, e: Error, rows: Option<u64>) {
        self.damage.push(Damage::from_error(&e.within(self.title()), self.bytes(), rows));
    }

    /// The batches of the group, if all cells decode and take little memory.
    fn decoded_whole(
        &self,
        cells: &[Option<ColumnCells>],
        salvage: &Salvage,
    ) -> Result<Option<Vec<RecordBatch>>> {
        let unit = Self { on_error: OnError::Raise, ..self.clone() };
        let stretches = salvage.stretches(0..self.group.key.rows);
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in Batches::new(unit, cells.to_vec(), stretches) {
            match batch {
                Ok(batch) => {
                    bytes += batch.get_array_memory_size();
                    batches.push(batch);
                }
                Err(e) if batches::is_of_a_cell(&e) => return Ok(None),
                Err(e) => return Err(e),
            }
            if bytes as u64 > MAX_WHOLE_BYTES.min(self.decoders.limits.batch_bytes()) {
                return Ok(None);
            }
        }
        Ok(Some(batches))
    }

    /// The first contradiction between a column's cells and its type.
    fn contradiction(&self, place: usize, cells: &ColumnCells) -> Result<Option<Error>> {
        let mut cells = cells.clone();
        let (mut at, rows) = (0, self.group.key.rows);
        while at < rows {
            let taken = usize::try_from(rows - at).unwrap_or(usize::MAX).min(self.max_rows);
            match self.check_cells(place, &take_cells(&mut cells, taken, at)?) {
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt(_)) => return Ok(Some(e)),
                Err(e) if !batches::is_of_a_cell(&e) => return Err(e),
                _ => {}
            }
            at += taken as u64;
        }
        Ok(None)
    }

    fn title(&self) -> String {
        format!("row group {}", self.number)
    }

    fn bytes(&self) -> Range<u64> {
        self.group.start()..self.group.end()
    }

    /// Releases the buffers of columns whose cells are all decoded.
    pub(super) fn finish(&self, cells: &mut [Option<ColumnCells>]) {
        for column in cells.iter_mut().filter_map(Option::take) {
            self.decoders.recycle(column.data);
        }
    }

    pub(super) fn columns(&self) -> &[ScanColumn] {
        &self.decoders.columns
    }
}
