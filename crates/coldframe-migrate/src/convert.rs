//! The unit of a migration's work: converts the rows of one part of a source into files of the target.
//!
//! ```text
//! part of a source ─decode─▶ batch ─arrange─▶ columns of the table ─conform─▶ target's types ─▶ file, file, ..
//!                              │                       │
//!                              ▼                       ▼
//!                   compared with what the       fingerprint of the values
//!                   source states of itself      as they were decoded
//! ```
//!
//! A file is read back by a different implementation than the one that wrote it: Parquet by Arrow's C++ library, from Python.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use coldframe::writing::stream_error;
use coldframe::{Dest, Result};
use coldframe_core::types::{Arrangement, conform};

use crate::target::{Finished, TargetFile, TargetFormat};
use crate::{Fingerprint, Observed};

/// How the rows of a source are converted, and what is recorded about them.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table's columns and where they come from.
    pub arrangement: Arrangement,
    /// Whether fingerprints are taken.
    pub verify: bool,
    /// Columns whose values are compared with what the source states of them.
    pub stated: Vec<String>,
}

impl Shape {
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.arrangement.target
    }
}

/// What is known of the decoded rows.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Their number.
    pub rows: u64,
    /// The fingerprint of their values as decoded; empty if none is taken.
    pub print: Fingerprint,
}

impl Seen {
    pub(crate) fn none(shape: &Shape) -> Self {
        Self { rows: 0, print: Fingerprint::new(shape.schema().clone()) }
    }

    /// Adds rows as they were decoded, before they are converted to the target's types.
    pub(crate) fn add(&mut self, source: &RecordBatch, shape: &Shape) -> Result<()> {
        if shape.verify {
            self.print.add(source)?;
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
    /// The rows of the file being written.
    seen: Seen,
}

impl<'a> Decoding<'a> {
    pub(crate) fn new(rows: &'a mut dyn RecordBatchReader, shape: &'a Shape) -> Self {
        let observed = Observed::new(shape.stated.iter().cloned());
        Self { rows, shape, observed, seen: Seen::none(shape) }
    }

    /// The next rows in the target's types; `None` after the last.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(source) = self.next_source()? else { return Ok(None) };
        self.seen.add(&source, self.shape)?;
        conform(&source, self.shape.schema()).map(Some)
    }

    /// The next rows as columns of the table, in the types that were decoded; `None` after the last.
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

    /// Takes what was seen since the last call.
    fn take_seen(&mut self) -> Seen {
        std::mem::replace(&mut self.seen, Seen::none(self.shape))
    }
}

/// Names the files of one part, in order.
pub trait Names {
    /// The destination of file `number`.
    fn dest(&self, number: usize) -> Result<Dest>;

    /// Deletes file `number`, which exists.
    fn discard(&self, number: usize) -> Result<()>;
}

/// A file and what is known of its rows.
#[derive(Debug)]
pub struct WrittenFile {
    /// The file.
    pub finished: Finished,
    /// Its rows.
    pub seen: Seen,
    /// The partition that all of them are in, where rows were divided.
    pub partition: Option<u32>,
}

/// The result of a part.
#[derive(Debug)]
pub struct Converted {
    /// The files in the order in which they were begun: that of the rows, where these were not divided.
    pub files: Vec<WrittenFile>,
    /// Statistics of its columns.
    pub observed: Observed,
}

/// Converts the rows of one part of a source. With `most_bytes`, a file ends after the batch with which it reaches that
/// size. Without rows there is no file. `tick` is called after each batch and may stop the run by returning an error;
/// after an error no file is left.
pub fn convert(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    format: &TargetFormat,
    names: &dyn Names,
    most_bytes: Option<u64>,
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
            if most_bytes.is_some_and(|most| file.bytes() >= most) {
                break;
            }
            match decoding.next()? {
                Some(next) => batch = next,
                None => break,
            }
        }
        Ok(Some(WrittenFile { finished: file.finish()?, seen: decoding.take_seen(), partition: None }))
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

/// Deletes files after an error. If one cannot be deleted, the first error is still the one returned. No manifest names
/// the file, so it is never read.
pub(crate) fn discard_all(names: &dyn Names, numbers: impl Iterator<Item = usize>) {
    numbers.filter_map(|number| names.discard(number).err()).for_each(drop);
}

/// The rows of a small source, all in memory: nothing is written before the source is known to be intact.
#[derive(Debug)]
pub struct Decoded {
    /// The batches in the target's types.
    pub batches: Vec<RecordBatch>,
    /// What is known of them.
    pub seen: Seen,
    /// Statistics of its columns.
    pub observed: Observed,
}

/// Decodes all rows. `tick` works as in [`convert`].
pub fn decode(
    rows: &mut dyn RecordBatchReader,
    shape: &Shape,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Decoded> {
    let mut decoding = Decoding::new(rows, shape);
    let mut batches = Vec::new();
    while let Some(batch) = decoding.next()? {
        batches.push(batch);
        tick()?;
    }
    Ok(Decoded { batches, seen: decoding.take_seen(), observed: decoding.observed })
}
