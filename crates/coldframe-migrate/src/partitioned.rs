//! Writes files that each have rows of one partition only, since table formats require that all rows of a
//! file have the same partition values.
//!
//! ```text
//! decoded rows ─▶ buffer of 128 MiB ─▶ partition 0: its rows of all batches ─▶ file
//!                   a partition          partition 1: ..                     ─▶ file
//!                   for each row                                    at most 4 stay open for the next buffer
//! ```
//!
//! One file is written at a time. The files that got rows most recently stay open, so that few files are
//! written if the rows are in the order of their partitions. Each file has a fingerprint of its own rows.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch, RecordBatchReader, UInt32Array};
use arrow_select::take::take_record_batch;
use coldframe::{Error, Result};
use coldframe_core::arrow_error;
use coldframe_core::types::conform;

use crate::convert::{Converted, Decoding, Names, RowSummary, Shape, WrittenFile, discard_all};
use crate::target::{TargetFile, TargetFormat};

/// Assigns partitions to rows.
pub trait Partitioner {
    /// The numbers of the table's columns that determine the partition.
    fn columns(&self) -> &[usize];

    /// The partition of each row, as a number that is the same for equal values in all calls. `batch` has
    /// these columns in the table's types.
    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array>;

    /// The limits on memory.
    fn limits(&self) -> PartitionLimits {
        PartitionLimits::default()
    }
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

/// Converts the rows of one part of a source into files of one partition each. `max_bytes` and `tick` work as in
/// [`convert`](crate::convert()).
pub fn convert_partitioned(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    format: &TargetFormat,
    names: &dyn Names,
    max_bytes: Option<u64>,
    partitioner: &mut dyn Partitioner,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Converted> {
    let decoding = Decoding::new(rows, shape);
    let writer = PartitionedWriter::new(decoding, shape, format, names, max_bytes, partitioner.limits());
    writer.run(partitioner, &mut tick)
}

/// An open file.
struct OpenFile {
    file: TargetFile,
    number: usize,
    summary: RowSummary,
    /// The number of the last buffer that had rows for this file.
    buffer: usize,
}

/// Rows of a buffer by partition: pairs of a batch and row numbers in it.
type Rows = BTreeMap<u32, Vec<(usize, Vec<u32>)>>;

/// Writes rows into files of one partition each.
struct PartitionedWriter<'a> {
    decoding: Decoding<'a>,
    shape: &'a Shape,
    format: TargetFormat,
    names: &'a dyn Names,
    max_bytes: Option<u64>,
    limits: PartitionLimits,
    open: BTreeMap<u32, OpenFile>,
    done: Vec<(usize, WrittenFile)>,
    /// The numbers of files that were started, and of buffers.
    files: usize,
    buffers: usize,
}

impl<'a> PartitionedWriter<'a> {
    fn new(
        decoding: Decoding<'a>,
        shape: &'a Shape,
        format: &TargetFormat,
        names: &'a dyn Names,
        max_bytes: Option<u64>,
        limits: PartitionLimits,
    ) -> Self {
        let format = format.with_shared_memory(limits.open_files.saturating_add(1));
        let (open, done) = (BTreeMap::new(), Vec::new());
        Self { decoding, shape, format, names, max_bytes, limits, open, done, files: 0, buffers: 0 }
    }

    /// Writes all rows. After an error no file is left.
    fn run(
        mut self,
        partitioner: &mut dyn Partitioner,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Converted> {
        if let Err(e) = self.write_all(partitioner, tick) {
            discard_all(self.names, self.done.iter().map(|(number, _)| *number));
            return Err(e);
        }
        self.done.sort_by_key(|(number, _)| *number);
        let files = self.done.into_iter().map(|(_, file)| file).collect();
        Ok(Converted { files, observed: self.decoding.observed })
    }

    fn write_all(
        &mut self,
        partitioner: &mut dyn Partitioner,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        loop {
            let (batches, rows) = self.fill(partitioner, tick)?;
            if batches.is_empty() {
                break;
            }
            self.buffers += 1;
            for (partition, pieces) in rows {
                self.write(partition, &batches, &pieces)?;
                tick()?;
                self.close_to(self.limits.open_files.saturating_add(1))?;
            }
            self.close_to(self.limits.open_files)?;
        }
        self.close_to(0)
    }

    /// Buffers the next rows, and assigns them to partitions.
    fn fill(
        &mut self,
        partitioner: &mut dyn Partitioner,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Vec<RecordBatch>, Rows)> {
        let (mut batches, mut rows, mut bytes) = (Vec::new(), Rows::new(), 0_usize);
        while bytes < self.limits.buffer_bytes {
            let Some(source) = self.decoding.next_source()? else { break };
            let partitions = self.partitions(partitioner, &source)?;
            let mut rows_by_partition: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (row, partition) in (0_u32..).zip(partitions.values()) {
                rows_by_partition.entry(*partition).or_default().push(row);
            }
            for (partition, some) in rows_by_partition {
                rows.entry(partition).or_default().push((batches.len(), some));
            }
            bytes = bytes.saturating_add(source.get_array_memory_size());
            batches.push(source);
            tick()?;
        }
        Ok((batches, rows))
    }

    fn partitions(&self, partitioner: &mut dyn Partitioner, source: &RecordBatch) -> Result<UInt32Array> {
        let schema = self.shape.schema().project(partitioner.columns()).map_err(arrow_error)?;
        let columns = source.project(partitioner.columns()).map_err(arrow_error)?;
        let partitions = partitioner.partitions(&conform(&columns, &schema.into())?)?;
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
            open.summary.add(&source, self.shape)?;
            open.file.write(&conform(&source, self.shape.schema())?)?;
            open.buffer = self.buffers;
            let is_full = self.max_bytes.is_some_and(|max| open.file.bytes() >= max);
            self.open.insert(partition, open);
            if is_full {
                self.close(partition)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<OpenFile> {
        let number = self.files;
        let file = TargetFile::create(self.shape.schema(), &self.names.dest(number)?, &self.format)?;
        self.files += 1;
        Ok(OpenFile { file, number, summary: RowSummary::none(self.shape), buffer: self.buffers })
    }

    /// Closes files until at most `max` are open. First closes the files that have not got rows for the
    /// longest time; among equals, the smallest file first.
    fn close_to(&mut self, max: usize) -> Result<()> {
        while self.open.len() > max {
            let next = self.open.iter().min_by_key(|(_, open)| (open.buffer, open.summary.rows));
            let Some(partition) = next.map(|(partition, _)| *partition) else { break };
            self.close(partition)?;
        }
        Ok(())
    }

    fn close(&mut self, partition: u32) -> Result<()> {
        if let Some(open) = self.open.remove(&partition) {
            let file = WrittenFile {
                finished: open.file.finish()?,
                summary: open.summary,
                partition: Some(partition),
            };
            self.done.push((open.number, file));
        }
        Ok(())
    }
}
