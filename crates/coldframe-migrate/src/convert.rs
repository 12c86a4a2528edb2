//! Converts the rows of one part of a source into files of the target.
//!
//! ```text
//! part of a source ─decode─▶ batch ─arrange─▶ columns of the table ─conform─▶ target's types ─▶ file, file, ..
//!                              │                       │
//!                              ▼                       ▼
//!                   compared with the            fingerprint of the values
//!                   source's statistics          as they were decoded
//! ```
//!
//! This is the unit of a migration's work. Python reads the files back with an independent implementation:
//! Parquet files with Arrow's C++ library.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use coldframe::writing::stream_error;
use coldframe::{Dest, Result};
use coldframe_core::types::{Arrangement, conform};

use crate::parquet_file::sliced_bytes;
use crate::target::{Finished, TargetFile, TargetFormat};
use crate::{Fingerprint, Observed};

/// How to convert the rows of a source, and what to record about them.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table's columns, and which of the source's columns they come from.
    pub arrangement: Arrangement,
    /// Whether fingerprints are taken.
    pub verify: bool,
    /// Columns to compare with the source's own statistics.
    pub compared: Vec<String>,
}

impl Shape {
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.arrangement.target
    }
}

/// The number and the fingerprint of decoded rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowSummary {
    /// The number of rows.
    pub rows: u64,
    /// The fingerprint of their values as decoded; empty if none is taken.
    pub fingerprint: Fingerprint,
}

impl RowSummary {
    pub(crate) fn none(shape: &Shape) -> Self {
        Self { rows: 0, fingerprint: Fingerprint::new(shape.schema().clone()) }
    }

    /// Adds rows as they were decoded, before they are converted to the target's types.
    pub(crate) fn add(&mut self, source: &RecordBatch, shape: &Shape) -> Result<()> {
        if shape.verify {
            self.fingerprint.add(source)?;
        }
        self.rows += source.num_rows() as u64;
        Ok(())
    }
}

/// Decodes and converts rows.
pub(crate) struct Decoding<'a> {
    rows: &'a mut dyn RecordBatchReader,
    shape: &'a Shape,
    pub(crate) observed: Observed,
    /// The summary of the rows of the file that is being written.
    summary: RowSummary,
}

impl<'a> Decoding<'a> {
    pub(crate) fn new(rows: &'a mut dyn RecordBatchReader, shape: &'a Shape) -> Self {
        let observed = Observed::new(shape.compared.iter().cloned());
        Self { rows, shape, observed, summary: RowSummary::none(shape) }
    }

    /// The next rows in the target's types; `None` after the last.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(source) = self.next_source()? else { return Ok(None) };
        self.summary.add(&source, self.shape)?;
        conform(&source, self.shape.schema()).map(Some)
    }

    /// The next rows as columns of the table, in the types to which they were decoded; `None` after the last.
    pub(crate) fn next_source(&mut self) -> Result<Option<RecordBatch>> {
        for batch in &mut *self.rows {
            let batch = batch.map_err(stream_error)?;
            self.observed.add(&batch)?;
            if batch.num_rows() == 0 {
                continue;
            }
            return self.shape.arrangement.arrange(&batch).map(Some);
        }
        Ok(None)
    }

    /// Takes the summary of the rows since the last call.
    fn take_summary(&mut self) -> RowSummary {
        std::mem::replace(&mut self.summary, RowSummary::none(self.shape))
    }
}

/// Names the files of one part, in order.
pub trait Names {
    /// The destination of file `number`.
    fn dest(&self, number: usize) -> Result<Dest>;

    /// Deletes file `number`, which exists.
    fn discard(&self, number: usize) -> Result<()>;
}

/// A file and a summary of its rows.
#[derive(Debug)]
#[non_exhaustive]
pub struct WrittenFile {
    /// The file.
    pub finished: Finished,
    /// Its rows.
    pub summary: RowSummary,
    /// The partition of all its rows, if rows are partitioned.
    pub partition: Option<u32>,
}

/// The result of converting a part.
#[derive(Debug)]
pub struct Converted {
    /// The files in the order in which they were created. That is the order of the rows if the rows are not
    /// partitioned.
    pub files: Vec<WrittenFile>,
    /// Statistics of the source's columns.
    pub observed: Observed,
}

/// Converts the rows of one part of a source. With `max_bytes`, a file ends once it has that size. If there
/// are no rows, creates no file. Calls `tick` after each batch; `tick` may stop the run by returning an
/// error. After an error no file is left.
pub fn convert(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    format: &TargetFormat,
    names: &dyn Names,
    max_bytes: Option<u64>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Converted> {
    let mut decoding = Decoding::new(rows, shape);
    let mut files = Vec::new();
    let mut next_file = |number| -> Result<Option<WrittenFile>> {
        let Some(mut batch) = decoding.next()? else { return Ok(None) };
        let mut file = TargetFile::create(shape.schema(), &names.dest(number)?, format)?;
        loop {
            file.write(&batch)?;
            tick()?;
            if max_bytes.is_some_and(|max| file.bytes() >= max) {
                break;
            }
            match decoding.next()? {
                Some(next) => batch = next,
                None => break,
            }
        }
        Ok(Some(WrittenFile { finished: file.finish()?, summary: decoding.take_summary(), partition: None }))
    };
    loop {
        match next_file(files.len()) {
            Ok(Some(file)) => files.push(file),
            Ok(None) => break,
            Err(e) => {
                discard_all(names, 0..files.len());
                return Err(e);
            }
        }
    }
    Ok(Converted { files, observed: decoding.observed })
}

/// Deletes files after an error. Further errors are ignored, so that the caller returns the first error. A
/// file that cannot be deleted is never read, since no manifest lists it.
pub(crate) fn discard_all(names: &dyn Names, numbers: impl Iterator<Item = usize>) {
    numbers.filter_map(|number| names.discard(number).err()).for_each(drop);
}

/// A small source that was decoded to its end, so that nothing is written before it is known to be intact.
#[derive(Debug)]
#[non_exhaustive]
pub struct Decoded {
    /// The rows in the target's types; `None` if they take more memory than a small source may hold. A few
    /// kilobytes of repeated values may decode to gigabytes. Such rows are decoded once more to be written.
    pub batches: Option<Vec<RecordBatch>>,
    /// The summary of the rows.
    pub summary: RowSummary,
    /// Statistics of the source's columns.
    pub observed: Observed,
}

/// Decodes all rows, and holds them if they take at most `most_bytes`. `tick` works as in [`convert`].
pub fn decode(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    most_bytes: u64,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Decoded> {
    let mut decoding = Decoding::new(rows, shape);
    let (mut batches, mut bytes) = (Some(Vec::new()), 0_u64);
    while let Some(batch) = decoding.next()? {
        let more = batch.columns().iter().map(|column| sliced_bytes(column)).sum();
        bytes = bytes.saturating_add(more);
        match &mut batches {
            Some(held) if bytes <= most_bytes => held.push(batch),
            _ => batches = None,
        }
        tick()?;
    }
    Ok(Decoded { batches, summary: decoding.take_summary(), observed: decoding.observed })
}

/// Decodes rows and adds them to a file. Returns the summary of the rows. It differs from the summary of
/// [`decode`] only if the source has changed. `tick` works as in [`convert`].
pub fn append(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    file: &mut TargetFile,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<RowSummary> {
    let mut decoding = Decoding::new(rows, shape);
    while let Some(batch) = decoding.next()? {
        file.write(&batch)?;
        tick()?;
    }
    Ok(decoding.take_summary())
}
