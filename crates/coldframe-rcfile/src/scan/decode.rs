//! Splits the fetched columns of a row group into cells and finds out what is lost.
//!
//! A column is decompressed once, as a whole; its cells are decoded a batch at a time ([`batches`]). If the SerDe
//! passes on a column's bytes without a copy (strings, binary), they live as long as the batches; otherwise the buffer
//! is reused for the next column.
//!
//! A key states the number of rows and the length of each cell of each column. A column must have as many lengths as
//! there are rows, and their sum must be the size of its bytes. Otherwise the reader keeps the
//! cells before the contradiction and loses those after it: it drops their rows, or reads them as null. It trusts the
//! key's row count if the key is as long as its header states and at least one column has that many lengths; otherwise
//! the group has as many rows as every column has cells.

mod batches;

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, OffsetBuffer};
use bytes::Bytes;
use coldframe_core::salvage::{Loss, Salvage};
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, ErrorContext, OnError, PlanRequest, Result, arrays,
};

use self::batches::Batches;
pub(super) use self::batches::take_cells;
use super::columns::{Decoders, ScanColumn};
use crate::layout::key::{CellCount, CellLengths, ColumnKey, count_cells};
use crate::layout::row_group::RowGroup;

/// Maximum number of rows that are decoded at once, whatever the batch size, and of lengths that are expanded
/// before they are counted.
const MAX_ROWS: usize = 1 << 20;

/// Arrow bytes that the empty cells of a batch may take. They take no bytes in the file, so the size of the
/// file does not limit them.
const EMPTY_BYTES: u64 = 64 << 20;

/// One row group to decode.
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
}

impl DecodeGroup {
    /// Row group `number` of the scan.
    pub(super) fn new(decoders: Arc<Decoders>, group: RowGroup, request: &PlanRequest, number: u64) -> Self {
        let on_disk: u64 = decoders
            .file_columns()
            .filter_map(|i| group.key.columns.get(i))
            .fold(0, |sum, column| sum.saturating_add(column.disk_len));
        let bounded = EMPTY_BYTES.saturating_add(on_disk.saturating_mul(4)) / decoders.row_bytes;
        let bounded = usize::try_from(bounded).unwrap_or(usize::MAX).clamp(1, MAX_ROWS);
        let batch_rows = request.scan.batch_rows.min(bounded);
        let max_rows = if decoders.at_once { bounded } else { batch_rows };
        let (on_error, damage) = (request.scan.on_error, request.damage.clone());
        Self { decoders, group, batch_rows, max_rows, on_error, damage, number }
    }
}

impl DecodeUnit for DecodeGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let decoders = self.decoders.clone();
        let mut bytes = bytes.into_iter();
        let mut cells = Vec::with_capacity(decoders.columns.len());
        let mut failed = Vec::new();
        for (i, column) in decoders.columns.iter().enumerate() {
            let Some((key, disk)) = self.key(column).zip(column.in_file.and_then(|_| bytes.next())) else {
                cells.push(None);
                continue;
            };
            match self.cells(key, &disk) {
                Ok(column_cells) => cells.push(Some(column_cells)),
                Err(e) if self.on_error == OnError::Raise || !e.is_damage() => {
                    return Err(e.within(column.title()));
                }
                Err(e) => {
                    cells.push(None);
                    failed.push((i, column, key, disk, e));
                }
            }
        }
        let nullable = decoders.columns.iter().map(|_| true);
        let mut salvage = Salvage::new(self.on_error, nullable, self.damage.clone());
        if !failed.is_empty() || (decoders.is_empty() && self.on_error != OnError::Raise) {
            let rows = self.trusted_rows(&mut salvage);
            for (i, column, key, disk, e) in failed {
                let rescued = self.rescue(key, &disk, rows);
                let lost = rescued.as_ref().map_or(0, |(_, whole)| *whole)..rows;
                let e = e.within(column.title());
                if lost.is_empty() {
                    // No row is lost, but values may be in the wrong rows. Hive returns such rows without an
                    // error.
                    self.record(e, 0);
                } else {
                    salvage.lose(i, self.loss(e, lost));
                }
                if let Some(place) = cells.get_mut(i) {
                    *place = rescued.map(|(column_cells, _)| column_cells);
                }
            }
        }
        let stretches = salvage.stretches(0..self.group.key.rows);
        Ok(Box::new(Batches::new(*self, cells, stretches)))
    }
}

/// The cells of a column.
pub(super) struct ColumnCells {
    pub(super) data: Buffer,
    pub(super) places: Places,
}

/// Where a column's cells are.
pub(super) enum Places {
    /// There are no cells: `TRUNCATE TABLE .. COLUMNS` removed them.
    Nulled,
    /// The offsets of all cells of the group, and the number of cells already taken.
    All(OffsetBuffer<i32>, usize),
    /// Lengths that are expanded a batch at a time.
    Lengths(CellLengths),
}

impl DecodeGroup {
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

    /// The usable cells of a column that contradicts its key, and the number of rows that have cells.
    fn rescue(&self, key: &ColumnKey, disk: &Bytes, rows: u64) -> Option<(ColumnCells, u64)> {
        let data = self.decoders.decompress(key, disk).ok()?;
        // If damage increased a length, the rows before it are right, and later rows whose cells exist may be
        // right.
        let whole = CellCount::new(&key.lengths, data.len() as u64).whole.min(rows);
        let places = Places::Lengths(CellLengths::new(key.lengths.clone()));
        Some((ColumnCells { data, places }, whole))
    }

    /// The number of the key's rows that are trusted; the other rows are lost.
    fn trusted_rows(&self, salvage: &mut Salvage) -> u64 {
        let key_rows = self.group.key.rows;
        let columns = || self.group.key.columns.iter().filter(|c| !c.lengths.is_empty());
        let agrees =
            |column: &ColumnKey| count_cells(&column.lengths).is_ok_and(|(cells, _)| cells == key_rows);
        // A key whose length differs from its header's may not be a key at all.
        let key_len = usize::try_from(self.group.header.key_len).ok();
        if key_len == Some(self.group.key.len) && columns().any(agrees) {
            return key_rows;
        }
        let whole = columns().map(|column| CellCount::new(&column.lengths, column.data_len).whole);
        let trusted = whole.min().map_or(key_rows, |whole| whole.min(key_rows));
        if trusted < key_rows {
            let e = Error::corrupt(format!("expected cells of {key_rows} rows, found those of {trusted}"));
            salvage.lose_rows(self.loss(e.within("key"), trusted..key_rows));
        }
        trusted
    }

    fn loss(&self, e: Error, rows: Range<u64>) -> Loss {
        Loss::from_error(&e.within(self.title()), self.bytes(), rows)
    }

    /// Records damage that costs `rows` rows of this group.
    pub(super) fn record(&self, e: Error, rows: u64) {
        self.damage.push(Damage::from_error(&e.within(self.title()), self.bytes(), Some(rows)));
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
