//! Files by partition: a table format may demand that all rows of a file have the same partition values.
//!
//! ```text
//! decoded rows ─▶ buffer of 128 MiB ─▶ partition 0: its rows of all batches ─▶ file
//!                   a partition          partition 1: ..                     ─▶ file
//!                   for each row                                    at most 4 stay open for the next buffer
//! ```
//!
//! One file is written at a time. Those that were filled last stay open, so that rows which come in the order of their
//! partitions make few files. Each file has a fingerprint of its own rows.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch, RecordBatchReader, UInt32Array};
use arrow_select::take::take_record_batch;
use coldframe::{Error, Result};
use coldframe_core::arrow_error;
use coldframe_core::types::conform;

use crate::convert::{Converted, Decoding, Names, Seen, Shape, WrittenFile, discard_all};
use crate::target::{TargetFile, TargetFormat};

/// Tells the partitions of rows.
pub trait Divide {
    /// The columns of the table that decide, by number.
    fn columns(&self) -> &[usize];

    /// The partition of each row, given these columns in the table's types: a number, the same for the same values in
    /// all calls.
    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array>;

    /// What may be held in memory.
    fn room(&self) -> Room {
        Room::default()
    }
}

/// Limits of what is held in memory.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Arrow bytes of the rows that wait for others of their partitions.
    pub buffer_bytes: usize,
    /// Files that stay open for the next buffer.
    pub open_files: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { buffer_bytes: 128 << 20, open_files: 4 }
    }
}

/// Converts the rows of one part of a source, each file with those of one partition. `most_bytes` and `tick` work as in
/// [`convert`](crate::convert()).
pub fn convert_divided(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    format: &TargetFormat,
    names: &dyn Names,
    most_bytes: Option<u64>,
    divide: &mut dyn Divide,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Converted> {
    let decoding = Decoding::new(rows, shape);
    let division = Division::new(decoding, shape, format, names, most_bytes, divide.room());
    division.run(divide, &mut tick)
}

/// A file that is being written.
struct Open {
    file: TargetFile,
    number: usize,
    seen: Seen,
    /// The last buffer that had rows of it.
    buffer: usize,
}

/// Rows of a buffer by partition: for each, its rows of each batch.
type Rows = BTreeMap<u32, Vec<(usize, Vec<u32>)>>;

/// Writes rows into files of one partition each.
struct Division<'a> {
    decoding: Decoding<'a>,
    shape: &'a Shape,
    format: TargetFormat,
    names: &'a dyn Names,
    most_bytes: Option<u64>,
    room: Room,
    open: BTreeMap<u32, Open>,
    done: Vec<(usize, WrittenFile)>,
    /// The number of files begun, and of buffers.
    files: usize,
    buffers: usize,
}

impl<'a> Division<'a> {
    fn new(
        decoding: Decoding<'a>,
        shape: &'a Shape,
        format: &TargetFormat,
        names: &'a dyn Names,
        most_bytes: Option<u64>,
        room: Room,
    ) -> Self {
        let format = format.for_files_side_by_side(room.open_files.saturating_add(1));
        let (open, done) = (BTreeMap::new(), Vec::new());
        Self { decoding, shape, format, names, most_bytes, room, open, done, files: 0, buffers: 0 }
    }

    /// Writes all rows. After an error no file is left.
    fn run(mut self, divide: &mut dyn Divide, tick: &mut dyn FnMut() -> Result<()>) -> Result<Converted> {
        if let Err(e) = self.write_all(divide, tick) {
            discard_all(self.names, self.done.iter().map(|(number, _)| *number));
            return Err(e);
        }
        self.done.sort_by_key(|(number, _)| *number);
        let files = self.done.into_iter().map(|(_, file)| file).collect();
        Ok(Converted { files, observed: self.decoding.observed })
    }

    fn write_all(&mut self, divide: &mut dyn Divide, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        loop {
            let (batches, rows) = self.fill(divide, tick)?;
            if batches.is_empty() {
                break;
            }
            self.buffers += 1;
            for (partition, pieces) in rows {
                self.write(partition, &batches, &pieces)?;
                tick()?;
                self.close_down_to(self.room.open_files.saturating_add(1))?;
            }
            self.close_down_to(self.room.open_files)?;
        }
        self.close_down_to(0)
    }

    /// The next rows, and whose they are.
    fn fill(
        &mut self,
        divide: &mut dyn Divide,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Vec<RecordBatch>, Rows)> {
        let (mut batches, mut rows, mut bytes) = (Vec::new(), Rows::new(), 0_usize);
        while bytes < self.room.buffer_bytes {
            let Some(source) = self.decoding.next_source()? else { break };
            let partitions = self.partitions(divide, &source)?;
            let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (row, partition) in (0_u32..).zip(partitions.values()) {
                found.entry(*partition).or_default().push(row);
            }
            for (partition, some) in found {
                rows.entry(partition).or_default().push((batches.len(), some));
            }
            bytes = bytes.saturating_add(source.get_array_memory_size());
            batches.push(source);
            tick()?;
        }
        Ok((batches, rows))
    }

    fn partitions(&self, divide: &mut dyn Divide, source: &RecordBatch) -> Result<UInt32Array> {
        let schema = self.shape.schema().project(divide.columns()).map_err(arrow_error)?;
        let columns = source.project(divide.columns()).map_err(arrow_error)?;
        let partitions = divide.partitions(&conform(&columns, &schema.into())?)?;
        if partitions.len() != source.num_rows() || partitions.null_count() > 0 {
            return Err(Error::invalid(format!(
                "partitions of rows: expected {} numbers, found {} with {} nulls",
                source.num_rows(),
                partitions.len(),
                partitions.null_count()
            )));
        }
        Ok(partitions)
    }

    /// Writes the rows of one partition.
    fn write(&mut self, partition: u32, batches: &[RecordBatch], pieces: &[(usize, Vec<u32>)]) -> Result<()> {
        for (number, rows) in pieces {
            let Some(batch) = batches.get(*number) else { continue };
            let source = if rows.len() == batch.num_rows() {
                batch.clone()
            } else {
                take_record_batch(batch, &UInt32Array::from(rows.clone())).map_err(arrow_error)?
            };
            let mut open = match self.open.remove(&partition) {
                Some(open) => open,
                None => self.begin()?,
            };
            open.seen.add(&source, self.shape)?;
            open.file.write(&conform(&source, self.shape.schema())?)?;
            open.buffer = self.buffers;
            let is_full = self.most_bytes.is_some_and(|most| open.file.bytes() >= most);
            self.open.insert(partition, open);
            if is_full {
                self.close(partition)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<Open> {
        let number = self.files;
        let file = TargetFile::create(self.shape.schema(), &self.names.dest(number)?, &self.format)?;
        self.files += 1;
        Ok(Open { file, number, seen: Seen::none(self.shape), buffer: self.buffers })
    }

    /// Closes files until no more than `most` are open: those first that have been without rows for longest, then the
    /// smallest.
    fn close_down_to(&mut self, most: usize) -> Result<()> {
        while self.open.len() > most {
            let next = self.open.iter().min_by_key(|(_, open)| (open.buffer, open.seen.rows));
            let Some(partition) = next.map(|(partition, _)| *partition) else { break };
            self.close(partition)?;
        }
        Ok(())
    }

    fn close(&mut self, partition: u32) -> Result<()> {
        if let Some(open) = self.open.remove(&partition) {
            let file =
                WrittenFile { finished: open.file.finish()?, seen: open.seen, partition: Some(partition) };
            self.done.push((open.number, file));
        }
        Ok(())
    }
}
