//! Converts rows into files that each have rows of one partition only, since table formats require that all rows of a
//! file have the same partition values. [`write_partitions`] divides the rows. Each file has a fingerprint of its own rows.

use arrow_array::{RecordBatch, RecordBatchReader, UInt32Array};
use coldframe::{PartitionLimits, PartitionSink, Result, write_partitions};
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

/// Converts the rows of one part of a source into files of one partition each. `max_bytes` and `tick` work as in
/// [`convert`](crate::convert()). After an error no file is left.
pub fn convert_partitioned(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    format: &TargetFormat,
    names: &dyn Names,
    max_bytes: Option<u64>,
    partitioner: &mut dyn Partitioner,
    tick: impl FnMut() -> Result<()>,
) -> Result<Converted> {
    let limits = partitioner.limits();
    let format = format.with_shared_memory(limits.open_files.saturating_add(1));
    let mut decoding = Decoding::new(rows, shape);
    let mut files = Files { partitioner, shape, format, names, max_bytes, begun: 0, done: Vec::new() };
    if let Err(e) = write_partitions(|| decoding.next_source(), &mut files, limits, tick) {
        discard_all(names, files.done.iter().map(|(number, _)| *number));
        return Err(e);
    }
    files.done.sort_by_key(|(number, _)| *number);
    let files = files.done.into_iter().map(|(_, file)| file).collect();
    Ok(Converted { files, observed: decoding.observed })
}

struct Files<'a> {
    partitioner: &'a mut dyn Partitioner,
    shape: &'a Shape,
    format: TargetFormat,
    names: &'a dyn Names,
    max_bytes: Option<u64>,
    /// The number of files that were begun.
    begun: usize,
    /// Completed files, with the numbers of their names.
    done: Vec<(usize, WrittenFile)>,
}

/// An open file.
struct OpenFile {
    file: TargetFile,
    number: usize,
    summary: RowSummary,
}

impl PartitionSink for Files<'_> {
    type File = OpenFile;

    fn partitions(&mut self, source: &RecordBatch) -> Result<UInt32Array> {
        let schema = self.shape.schema().project(self.partitioner.columns()).map_err(arrow_error)?;
        let columns = source.project(self.partitioner.columns()).map_err(arrow_error)?;
        self.partitioner.partitions(&conform(&columns, &schema.into())?)
    }

    fn begin(&mut self, _: u32) -> Result<OpenFile> {
        let number = self.begun;
        let file = TargetFile::create(self.shape.schema(), &self.names.dest(number)?, &self.format)?;
        self.begun += 1;
        Ok(OpenFile { file, number, summary: RowSummary::none(self.shape) })
    }

    fn write(&mut self, open: &mut OpenFile, rows: &RecordBatch) -> Result<bool> {
        open.summary.add(rows, self.shape)?;
        open.file.write(&conform(rows, self.shape.schema())?)?;
        Ok(self.max_bytes.is_some_and(|max| open.file.bytes() >= max))
    }

    fn finish(&mut self, partition: u32, open: OpenFile) -> Result<()> {
        let (finished, partition) = (open.file.finish()?, Some(partition));
        self.done.push((open.number, WrittenFile { finished, summary: open.summary, partition }));
        Ok(())
    }
}
