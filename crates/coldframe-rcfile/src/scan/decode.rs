//! Turns the fetched columns of a row group into batches.
//!
//! A column is decompressed once, whole; its cells are decoded a batch at a time. The bytes of a column that the SerDe
//! hands on without a copy (strings, binary) stay alive with the batches; those of all others are used again for the
//! next column.

mod unchecked;

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat;
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, ErrorContext, ErrorKind, Limits, OnError, PlanRequest,
    Result, arrow_error,
};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use crate::layout::key::{CellLengths, ColumnKey, count_cells};
use crate::layout::row_group::RowGroup;
use crate::serde::{Cells, ColumnDecoder};

/// Most rows decoded at once: however many a batch may have, no more lengths than this are expanded before the file
/// has shown that it has them.
const MOST_ROWS: usize = 1 << 20;

/// How one wanted column is made.
pub(crate) struct Column {
    /// Its place in the file; `None` for one that the file does not have, which is null.
    pub(crate) in_file: Option<usize>,
    /// Its name, for errors.
    pub(crate) name: String,
    /// Its type.
    pub(crate) data_type: DataType,
    /// The SerDe.
    pub(crate) decoder: Arc<dyn ColumnDecoder>,
}

/// How the wanted columns are made: what all row groups of a scan share.
pub(crate) struct Decoders {
    columns: Vec<Column>,
    schema: SchemaRef,
    codec: Option<HadoopCodec>,
    limits: Limits,
    at_once: bool,
    scratch: Mutex<Scratch>,
}

/// Buffers and codec state that one row group leaves to the next.
#[derive(Default)]
struct Scratch {
    decompressor: Decompressor,
    buffers: Vec<Vec<u8>>,
}

impl Decoders {
    /// For the columns of `schema`, in its order. `at_once`: whether a row group has to be decoded at once, however
    /// many rows a batch may have.
    pub(crate) fn new(
        columns: Vec<Column>,
        schema: SchemaRef,
        codec: Option<HadoopCodec>,
        limits: Limits,
        at_once: bool,
    ) -> Self {
        Self { columns, schema, codec, limits, at_once, scratch: Mutex::default() }
    }

    /// Whether no column is decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The places in the file of the columns to fetch, in the order in which [`DecodeGroup`] wants their bytes.
    pub(crate) fn file_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().filter_map(|c| c.in_file)
    }

    /// A column's bytes as they were before compression.
    fn decompress(&self, key: &ColumnKey, disk: &Bytes) -> Result<Buffer> {
        let Some(codec) = &self.codec else { return Ok(Buffer::from(disk.clone())) };
        let len = self.limits.block("a column of a row group", key.data_len)?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = scratch.buffers.pop().unwrap_or_default();
        out.clear();
        codec.decompress_exact(&mut scratch.decompressor, disk, len, &mut out)?;
        Ok(Buffer::from_vec(out))
    }

    /// Takes a buffer back that no array holds.
    fn recycle(&self, buffer: Buffer) {
        if self.codec.is_some()
            && let Ok(bytes) = buffer.into_vec::<u8>()
        {
            self.scratch.lock().unwrap_or_else(PoisonError::into_inner).buffers.push(bytes);
        }
    }
}

/// The cells of a file without a SerDe, as they are.
pub(crate) struct RawCells;

impl ColumnDecoder for RawCells {
    fn decode(&self, cells: &Cells) -> Result<ArrayRef> {
        let nulls = cells.nulled.then(|| NullBuffer::new_null(cells.offsets.len() - 1));
        let array = BinaryArray::try_new(cells.offsets.clone(), cells.data.clone(), nulls);
        Ok(Arc::new(array.map_err(arrow_error)?))
    }
}

/// One row group to decode.
pub(crate) struct DecodeGroup {
    decoders: Arc<Decoders>,
    group: RowGroup,
    batch_rows: usize,
    on_error: OnError,
    damage: DamageLog,
    number: u64,
}

impl DecodeGroup {
    /// Row group `number` of the scan.
    pub(crate) fn new(decoders: Arc<Decoders>, group: RowGroup, request: &PlanRequest, number: u64) -> Self {
        let batch_rows = request.scan.batch_rows.min(MOST_ROWS);
        let (on_error, damage) = (request.scan.on_error, request.damage.clone());
        Self { decoders, group, batch_rows, on_error, damage, number }
    }
}

impl DecodeUnit for DecodeGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut bytes = bytes.into_iter();
        let mut states = Vec::with_capacity(self.decoders.columns.len());
        let mut left = self.group.key.rows;
        for column in &self.decoders.columns {
            let key = column.in_file.and_then(|i| self.group.key.columns.get(i));
            let Some((key, disk)) = key.zip(column.in_file.and_then(|_| bytes.next())) else {
                states.push(State::Absent);
                continue;
            };
            match self.start_column(column, key, &disk) {
                Ok((state, rows)) => {
                    states.push(state);
                    left = left.min(rows);
                }
                // Only a key that agrees with itself says how many nulls to put in the column's place.
                Err(e) if self.on_error == OnError::Null && e.is_damage() && self.agrees(key) => {
                    self.record(e.within(name(column)), 0);
                    states.push(State::Absent);
                }
                Err(e) => return Err(e.within(name(column))),
            }
        }
        if left < self.group.key.rows {
            let message = format!("expected cells of {} rows, found those of {left}", self.group.key.rows);
            self.record(Error::corrupt(message).within("key"), self.group.key.rows - left);
        }
        Ok(Box::new(Batches { unit: *self, states, left, done: 0, ready: None }))
    }
}

/// Where a column stands.
enum State {
    /// All null: the file does not have it, or it is lost and asked for as null.
    Absent,
    /// Cells to decode.
    Present { data: Buffer, places: Places },
}

/// Where the cells of a column are.
enum Places {
    /// Nowhere: `TRUNCATE TABLE .. COLUMNS` took them away.
    Nulled,
    /// The offsets of the whole group, and how many cells of it are done.
    All(OffsetBuffer<i32>, usize),
    /// Lengths that are expanded a batch at a time.
    Lengths(CellLengths),
}

impl DecodeGroup {
    /// The column, and of how many rows of the group it has the cells.
    fn start_column(&self, column: &Column, key: &ColumnKey, disk: &Bytes) -> Result<(State, u64)> {
        let all = self.group.key.rows;
        if key.lengths.is_empty() {
            return Ok((
                State::Present { data: Buffer::from(Vec::<u8>::new()), places: Places::Nulled },
                all,
            ));
        }
        let data = self.decoders.decompress(key, disk)?;
        let mut lengths = CellLengths::new(key.lengths.clone());
        // Run-length coded cells without bytes could be any number: they are not expanded all at once unless wanted.
        let rows = usize::try_from(self.rows_with_lengths(key)?).unwrap_or(usize::MAX);
        let at_once =
            rows <= self.batch_rows.max(data.len().saturating_add(key.lengths.len()).min(MOST_ROWS));
        let places = if at_once {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(0);
            lengths.read(rows, &mut ends)?;
            let (cells, more) = lengths.rest()?;
            self.check_cells(column, cells.saturating_add(rows as u64))?;
            let bytes = u64::try_from(lengths.end()).unwrap_or(0).saturating_add(more);
            if self.on_error == OnError::Skip && bytes > data.len() as u64 {
                // A length that grew: the rows before it are right, and those whose cells exist may be.
                let len = i32::try_from(data.len()).unwrap_or(i32::MAX);
                ends.truncate(ends.partition_point(|end| *end <= len));
            } else {
                self.check_bytes(column, bytes, &data)?;
            }
            Places::All(unchecked::offsets(ends)?, 0)
        } else {
            let (cells, bytes) = count_cells(&key.lengths)?;
            self.check_cells(column, cells)?;
            self.check_bytes(column, bytes, &data)?;
            Places::Lengths(lengths)
        };
        let found = match &places {
            Places::All(offsets, _) if offsets.len() <= rows => offsets.len() as u64 - 1,
            _ => rows as u64,
        };
        Ok((State::Present { data, places }, found))
    }

    /// How many rows to expect of a column: all, or, where damage is skipped, as many as it has lengths for.
    fn rows_with_lengths(&self, key: &ColumnKey) -> Result<u64> {
        let all = self.group.key.rows;
        Ok(if self.on_error == OnError::Skip { count_cells(&key.lengths)?.0.min(all) } else { all })
    }

    /// Whether a column has more cells than the group has rows: Hive drops them and says nothing.
    fn check_cells(&self, column: &Column, cells: u64) -> Result<()> {
        let rows = self.group.key.rows;
        if cells <= rows {
            return Ok(());
        }
        let e = Error::corrupt(format!("expected lengths of {rows} cells, found {cells}"));
        if self.on_error == OnError::Raise {
            return Err(e);
        }
        self.record(e.within(name(column)), 0);
        Ok(())
    }

    /// Compares the cells' bytes together with those that there are.
    fn check_bytes(&self, column: &Column, bytes: u64, data: &Buffer) -> Result<()> {
        if bytes == data.len() as u64 {
            return Ok(());
        }
        let e = Error::corrupt(format!("expected cells of {} bytes together, found {bytes}", data.len()));
        if self.on_error == OnError::Raise || bytes > data.len() as u64 {
            return Err(e);
        }
        // Hive hands such rows out. They are kept where damage is tolerated, and reported.
        self.record(e.within(name(column)), 0);
        Ok(())
    }

    /// Whether a column's key has a cell for each row and their lengths are those of its bytes.
    fn agrees(&self, key: &ColumnKey) -> bool {
        count_cells(&key.lengths)
            .is_ok_and(|(cells, bytes)| cells == self.group.key.rows && bytes == key.data_len)
    }

    /// Damage that costs `rows` rows of this group.
    fn record(&self, e: Error, rows: u64) {
        let bytes = self.group.start()..self.group.end();
        let e = e.within(format!("row group {}", self.number));
        self.damage.push(Damage::from_error(&e, bytes, Some(rows)));
    }
}

/// Whether a row without the cell that gave this error can be read: damage, or a value that its Arrow type does not
/// hold (damaged digits make years that nanoseconds do not reach).
fn is_of_a_cell(e: &Error) -> bool {
    !matches!(e.kind(), ErrorKind::Io(_) | ErrorKind::Foreign(_))
}

fn name(column: &Column) -> String {
    match column.in_file {
        Some(i) => format!("column {i} (`{}`)", column.name),
        None => format!("column `{}`", column.name),
    }
}

/// The batches of one row group.
struct Batches {
    unit: DecodeGroup,
    states: Vec<State>,
    /// Rows to decode.
    left: u64,
    /// Rows decoded.
    done: u64,
    /// Rows decoded at once that are handed out a batch at a time.
    ready: Option<RecordBatch>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.take_ready() {
            return Some(Ok(batch));
        }
        if self.left == 0 {
            return None;
        }
        let most = if self.unit.decoders.at_once { MOST_ROWS } else { self.unit.batch_rows };
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        let batch = self.cells(rows).and_then(|cells| {
            let decoded = self.unit.decode_rows(&cells, 0, rows);
            if decoded.is_err() && self.unit.on_error != OnError::Raise {
                return self.unit.salvage_rows(&cells, 0, rows);
            }
            decoded
        });
        self.left = if batch.is_ok() { self.left - rows as u64 } else { 0 };
        self.done += rows as u64;
        if self.left == 0 {
            self.finish();
        }
        match batch {
            Ok(batch) if batch.num_rows() > self.unit.batch_rows => {
                self.ready = Some(batch);
                self.take_ready().map(Ok)
            }
            batch => Some(batch),
        }
    }
}

impl Batches {
    /// The next batch of what was decoded at once.
    fn take_ready(&mut self) -> Option<RecordBatch> {
        let ready = self.ready.take()?;
        let rows = ready.num_rows().min(self.unit.batch_rows);
        if rows < ready.num_rows() {
            self.ready = Some(ready.slice(rows, ready.num_rows() - rows));
        }
        Some(ready.slice(0, rows))
    }

    /// The next `rows` cells of each column.
    fn cells(&mut self, rows: usize) -> Result<Vec<Option<Cells>>> {
        let first_row = self.done;
        let columns = &self.unit.decoders.columns;
        self.states
            .iter_mut()
            .zip(columns)
            .map(|(state, column)| match state {
                State::Absent => Ok(None),
                State::Present { data, places } => {
                    let offsets = match places {
                        Places::Nulled => OffsetBuffer::new_zeroed(rows),
                        Places::All(offsets, done) => {
                            *done += rows;
                            offsets.slice(*done - rows, rows)
                        }
                        Places::Lengths(lengths) => {
                            let mut ends = Vec::with_capacity(rows + 1);
                            ends.push(lengths.end());
                            lengths.read(rows, &mut ends).within(|| name(column))?;
                            unchecked::offsets(ends)?
                        }
                    };
                    // The cells' bytes were compared with the data when the column was started: see `start_column`.
                    let nulled = matches!(places, Places::Nulled);
                    Ok(Some(Cells { data: data.clone(), offsets, nulled, first_row }))
                }
            })
            .collect()
    }

    fn finish(&mut self) {
        for state in self.states.drain(..) {
            if let State::Present { data, .. } = state {
                self.unit.decoders.recycle(data);
            }
        }
    }
}

impl DecodeGroup {
    /// Rows `start..start + rows` of a batch's cells.
    fn decode_rows(&self, cells: &[Option<Cells>], start: usize, rows: usize) -> Result<RecordBatch> {
        let arrays = cells
            .iter()
            .zip(&self.decoders.columns)
            .map(|(cells, column)| match cells {
                None => Ok(new_null_array(&column.data_type, rows)),
                Some(cells) => {
                    let offsets = cells.offsets.slice(start, rows);
                    let first_row = cells.first_row + start as u64;
                    let part = Cells { data: cells.data.clone(), offsets, nulled: cells.nulled, first_row };
                    column.decoder.decode(&part).within(|| name(column))
                }
            })
            .collect::<Result<Vec<_>>>()?;
        self.batch(arrays, rows)
    }

    fn batch(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.decoders.schema.clone(), arrays, &options).map_err(arrow_error)
    }

    /// The rows that decode: cells are independent, so a row is the smallest unit that a bad cell can cost.
    /// Halves until the bad rows stand alone.
    fn salvage_rows(&self, cells: &[Option<Cells>], start: usize, rows: usize) -> Result<RecordBatch> {
        match self.decode_rows(cells, start, rows) {
            Ok(batch) => Ok(batch),
            Err(e) if !is_of_a_cell(&e) => Err(e),
            Err(e) if rows == 1 && self.on_error == OnError::Null => self.null_cells(cells, start, e),
            Err(e) if rows == 1 => {
                self.record(e, 1);
                Ok(RecordBatch::new_empty(self.decoders.schema.clone()))
            }
            Err(_) => {
                let first = self.salvage_rows(cells, start, rows / 2)?;
                let second = self.salvage_rows(cells, start + rows / 2, rows - rows / 2)?;
                let arrays = first
                    .columns()
                    .iter()
                    .zip(second.columns())
                    .map(|(a, b)| concat(&[a.as_ref() as &dyn Array, b.as_ref()]).map_err(arrow_error))
                    .collect::<Result<Vec<_>>>()?;
                self.batch(arrays, first.num_rows() + second.num_rows())
            }
        }
    }

    /// One row whose undecodable cells are null.
    fn null_cells(&self, cells: &[Option<Cells>], row: usize, e: Error) -> Result<RecordBatch> {
        self.record(e, 0);
        let arrays = cells
            .iter()
            .zip(&self.decoders.columns)
            .map(|(cells, column)| {
                let decoded = cells.as_ref().map(|c| {
                    let offsets = c.offsets.slice(row, 1);
                    let first_row = c.first_row + row as u64;
                    let cell = Cells { data: c.data.clone(), offsets, nulled: c.nulled, first_row };
                    column.decoder.decode(&cell)
                });
                match decoded {
                    Some(Ok(array)) => array,
                    _ => new_null_array(&column.data_type, 1),
                }
            })
            .collect();
        self.batch(arrays, 1)
    }
}
