//! The unit of a migration's work: the rows of a part of a source become files of the target.
//!
//! ```text
//! part of a source ─decode─▶ batch ─arrange─▶ columns of the table ─conform─▶ target's types ─▶ file, file, ..
//!                              │                       │
//!                              ▼                       ▼
//!                   held against what the        fingerprint, of the values
//!                   source states of itself      as they were decoded
//! ```
//!
//! A file is read back by another implementation than the one that wrote it: Parquet by Arrow's C++ library, from Python.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use coldframe::writing::stream_error;
use coldframe::{Dest, Result};
use coldframe_core::types::{Arrangement, conform};

use crate::target::{Finished, TargetFile, TargetFormat};
use crate::{Fingerprint, Observed};

/// What the rows of a source become, and what is to be known of them.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table's columns, and where they come from.
    pub arrangement: Arrangement,
    /// Whether fingerprints are taken.
    pub verify: bool,
    /// Columns of the source that are looked at for what it states of them.
    pub stated: Vec<String>,
}

impl Shape {
    fn schema(&self) -> &SchemaRef {
        &self.arrangement.target
    }
}

/// What is known of rows that were decoded.
#[derive(Clone, Debug)]
pub struct Seen {
    /// How many.
    pub rows: u64,
    /// Of their values as they were decoded; empty where none is taken.
    pub print: Fingerprint,
}

impl Seen {
    fn none(shape: &Shape) -> Self {
        Self { rows: 0, print: Fingerprint::new(shape.schema().clone()) }
    }
}

/// Rows as they are decoded.
struct Decoding<'a> {
    rows: &'a mut dyn RecordBatchReader,
    shape: &'a Shape,
    observed: Observed,
    /// Rows of the file that is being written.
    seen: Seen,
}

impl<'a> Decoding<'a> {
    fn new(rows: &'a mut dyn RecordBatchReader, shape: &'a Shape) -> Self {
        let observed = Observed::new(shape.stated.iter().cloned());
        Self { rows, shape, observed, seen: Seen::none(shape) }
    }

    /// The next rows in the target's types; `None` behind the last.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        for batch in &mut *self.rows {
            let batch = batch.map_err(stream_error)?;
            self.observed.add(&batch)?;
            if batch.num_rows() == 0 {
                continue;
            }
            let source = self.shape.arrangement.arrange(&batch)?;
            // The fingerprint is that of the decoded values, before they are made into the target's types.
            if self.shape.verify {
                self.seen.print.add(&source)?;
            }
            self.seen.rows += batch.num_rows() as u64;
            return conform(&source, self.shape.schema()).map(Some);
        }
        Ok(None)
    }

    /// What was seen since the last time.
    fn take_seen(&mut self) -> Seen {
        std::mem::replace(&mut self.seen, Seen::none(self.shape))
    }
}

/// Where the files of one part go, one after the other.
pub trait Names {
    /// The place of the file with a number.
    fn dest(&self, number: usize) -> Result<Dest>;

    /// Takes the file with a number back, which is there.
    fn discard(&self, number: usize) -> Result<()>;
}

/// What became of a part.
#[derive(Debug)]
pub struct Converted {
    /// The files in the order of their rows.
    pub files: Vec<(Finished, Seen)>,
    /// What its columns were like.
    pub observed: Observed,
}

/// Converts the rows of one part of a source. A file ends behind the batch with which it has `most_bytes`, where they are given;
/// where there are no rows, there is no file. `tick` is called after each batch, and may stop the run by an error; behind an error no
/// file is left.
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
    let mut next_file = |number| -> Result<Option<(Finished, Seen)>> {
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
        Ok(Some((file.finish()?, decoding.take_seen())))
    };
    loop {
        match next_file(files.len()) {
            Ok(Some(file)) => files.push(file),
            Ok(None) => break,
            Err(e) => {
                // Where one cannot be taken back, what went wrong first is told; nobody reads the file, as nobody names it.
                (0..files.len()).filter_map(|number| names.discard(number).err()).for_each(drop);
                return Err(e);
            }
        }
    }
    Ok(Converted { files, observed: decoding.observed })
}

/// The rows of a small source, all of them in memory: nothing of it is written before it is known to be whole.
#[derive(Debug)]
pub struct Decoded {
    /// In the target's types.
    pub batches: Vec<RecordBatch>,
    /// What is known of them.
    pub seen: Seen,
    /// What its columns were like.
    pub observed: Observed,
}

/// Decodes all rows. `tick` as for [`convert`].
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
