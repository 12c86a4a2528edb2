//! Writes files that each have rows of one partition only.
//!
//! ```text
//! rows ─▶ buffer of 128 MiB ─▶ partition 0: its rows of all batches ─▶ file
//!           a partition          partition 1: ..                     ─▶ file
//!           for each row                                    at most 4 stay open for the next buffer
//! ```
//!
//! One file is written at a time. The files that got rows most recently stay open, so that few files are
//! written if the rows are in the order of their partitions.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use coldframe_core::{Error, Result, arrow_error};

/// Assigns rows to partitions, and writes the files of the partitions.
pub trait PartitionSink {
    /// A file being written.
    type File;

    /// The partition of each row, as a number that is the same for equal values in all calls.
    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array>;

    /// Begins a file of a partition, which may have earlier files.
    fn begin(&mut self, partition: u32) -> Result<Self::File>;

    /// Adds rows to a file. Returns whether the file is full.
    fn write(&mut self, file: &mut Self::File, rows: &RecordBatch) -> Result<bool>;

    /// Completes a file.
    fn finish(&mut self, partition: u32, file: Self::File) -> Result<()>;
}

/// Limits on memory.
#[derive(Clone, Copy, Debug)]
pub struct PartitionLimits {
    /// Maximum Arrow bytes of buffered rows.
    pub buffer_bytes: usize,
    /// Maximum number of files that stay open for the next buffer.
    pub open_files: usize,
}

impl Default for PartitionLimits {
    fn default() -> Self {
        Self { buffer_bytes: 128 << 20, open_files: 4 }
    }
}

/// Writes all batches of `next` into files of one partition each. Calls `tick` after each batch and each partition of a
/// buffer; `tick` may stop the run by returning an error. After an error, the sink's finished files are still there.
pub fn write_partitions<S: PartitionSink>(
    mut next: impl FnMut() -> Result<Option<RecordBatch>>,
    sink: &mut S,
    limits: PartitionLimits,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut files = OpenFiles { sink, open: BTreeMap::new(), buffers: 0, last: None };
    loop {
        let (batches, rows) = files.fill(&mut next, limits.buffer_bytes, &mut tick)?;
        if batches.is_empty() {
            break;
        }
        files.buffers += 1;
        for (partition, pieces) in rows {
            files.write(partition, &batches, &pieces)?;
            tick()?;
            files.close_to(limits.open_files.saturating_add(1))?;
        }
        files.close_to(limits.open_files)?;
    }
    files.close_to(0)
}

struct OpenFile<F> {
    file: F,
    rows: usize,
    /// The number of the last buffer that had rows for this file.
    buffer: usize,
}

/// Rows of a buffer by partition: pairs of a batch and row numbers in it.
type Rows = BTreeMap<u32, Vec<(usize, Vec<u32>)>>;

struct OpenFiles<'a, S: PartitionSink> {
    sink: &'a mut S,
    open: BTreeMap<u32, OpenFile<S::File>>,
    buffers: usize,
    /// The partition of the buffer's last row.
    last: Option<u32>,
}

impl<S: PartitionSink> OpenFiles<'_, S> {
    /// Buffers the next rows, and assigns them to partitions.
    fn fill(
        &mut self,
        next: &mut impl FnMut() -> Result<Option<RecordBatch>>,
        max_bytes: usize,
        tick: &mut impl FnMut() -> Result<()>,
    ) -> Result<(Vec<RecordBatch>, Rows)> {
        let (mut batches, mut rows, mut bytes) = (Vec::new(), Rows::new(), 0_usize);
        while bytes < max_bytes {
            let Some(batch) = next()? else { break };
            let partitions = self.partitions(&batch)?;
            let mut rows_by_partition: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (row, partition) in (0_u32..).zip(partitions.values()) {
                rows_by_partition.entry(*partition).or_default().push(row);
            }
            for (partition, some) in rows_by_partition {
                rows.entry(partition).or_default().push((batches.len(), some));
            }
            self.last = partitions.values().last().copied().or(self.last);
            bytes = bytes.saturating_add(sliced_bytes(&batch));
            batches.push(batch);
            tick()?;
        }
        Ok((batches, rows))
    }

    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array> {
        let partitions = self.sink.partitions(batch)?;
        if partitions.len() != batch.num_rows() || partitions.null_count() > 0 {
            return Err(Error::invalid(format!(
                "partitions of rows: expected {} numbers, found {} with {} nulls",
                batch.num_rows(),
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
            let rows = if rows.len() == batch.num_rows() {
                batch.clone()
            } else {
                take_record_batch(batch, &UInt32Array::from(rows.clone())).map_err(arrow_error)?
            };
            let mut open = match self.open.remove(&partition) {
                Some(open) => open,
                None => OpenFile { file: self.sink.begin(partition)?, rows: 0, buffer: 0 },
            };
            let is_full = self.sink.write(&mut open.file, &rows)?;
            open.rows = open.rows.saturating_add(rows.num_rows());
            open.buffer = self.buffers;
            if is_full {
                self.sink.finish(partition, open.file)?;
            } else {
                self.open.insert(partition, open);
            }
        }
        Ok(())
    }

    /// Closes files until at most `max` are open. First closes the files that have not got rows for the
    /// longest time; among equals, the smallest file first, and last the file that got the buffer's last row.
    fn close_to(&mut self, max: usize) -> Result<()> {
        while self.open.len() > max {
            let rank = |(partition, open): &(&u32, &OpenFile<S::File>)| {
                (open.buffer, Some(**partition) == self.last, open.rows)
            };
            let Some(partition) = self.open.iter().min_by_key(rank).map(|(partition, _)| *partition) else {
                break;
            };
            if let Some(open) = self.open.remove(&partition) {
                self.sink.finish(partition, open.file)?;
            }
        }
        Ok(())
    }
}

/// The size of a batch's own values, without the rest of the buffers that it slices.
fn sliced_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns
        .map(|c| c.to_data().get_slice_memory_size().unwrap_or_else(|_| c.get_array_memory_size()))
        .fold(0, usize::saturating_add)
}
