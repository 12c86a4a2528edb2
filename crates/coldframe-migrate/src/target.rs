//! A file of the target, of any format.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coldframe::{Dest, FileWriter, Result, WriteOptions, Written};

use crate::hashed::{Hash, Hashed};
use crate::parquet_file::{ParquetFile, ParquetOptions};

/// The format of the target's files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TargetFormat {
    /// Parquet.
    Parquet(ParquetOptions),
    /// A format that coldframe writes, by name, with its options.
    Own(String, WriteOptions),
}

impl TargetFormat {
    /// The options for `count` open files that together take the memory of one file. Parquet's row groups
    /// become smaller by this factor; stripes of coldframe's formats keep their size.
    pub(crate) fn with_shared_memory(&self, count: usize) -> Self {
        match self {
            Self::Parquet(options) => {
                let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
                let row_group_bytes = (options.row_group_bytes / count).max(1);
                Self::Parquet(ParquetOptions { row_group_bytes, ..options.clone() })
            }
            own @ Self::Own(..) => own.clone(),
        }
    }
}

/// A file being written. If it is dropped before it is finished, no file appears.
pub struct TargetFile {
    writer: Writer,
    hash: Hash,
}

enum Writer {
    Parquet(Box<ParquetFile>),
    Own(FileWriter),
}

/// A completed file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The number of rows, and the length of the file.
    pub written: Written,
    /// The SHA-256 of all its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl TargetFile {
    /// Begins a file with the columns of a schema.
    pub fn create(schema: &SchemaRef, dest: &Dest, format: &TargetFormat) -> Result<Self> {
        let mut hash = Hash::default();
        let mut begin = || {
            let (upload, file_hash) = Hashed::over(dest.create()?);
            hash = file_hash;
            Ok(upload)
        };
        let writer = match format {
            TargetFormat::Parquet(options) => {
                let file = ParquetFile::begin(schema, begin()?, dest.url(), options.clone())?;
                Writer::Parquet(Box::new(file))
            }
            TargetFormat::Own(name, options) => {
                Writer::Own(FileWriter::begin(schema, begin, dest.url(), name, options)?)
            }
        };
        Ok(Self { writer, hash })
    }

    /// Adds rows of the schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.writer {
            Writer::Parquet(file) => file.write(batch),
            Writer::Own(file) => file.write(batch),
        }
    }

    /// The size of the file so far; it grows by a row group or stripe at a time.
    pub fn bytes(&self) -> u64 {
        match &self.writer {
            Writer::Parquet(file) => file.bytes(),
            Writer::Own(file) => file.bytes(),
        }
    }

    /// Completes the file, which makes it visible.
    pub fn finish(self) -> Result<Finished> {
        let written = match self.writer {
            Writer::Parquet(file) => file.finish(),
            Writer::Own(file) => file.finish(),
        }?;
        Ok(Finished { written, sha256: self.hash.text() })
    }
}
