//! A file of the target, whatever its format.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coldframe::{Dest, FileWriter, Result, WriteOptions, Written};

use crate::parquet_file::{ParquetFile, ParquetOptions};

/// What files of the target are.
#[derive(Clone, Debug)]
pub enum TargetFormat {
    /// Parquet.
    Parquet(ParquetOptions),
    /// A format of ours, by its name, with its options.
    Own(String, WriteOptions),
}

/// A file on its way. Dropped before it is finished, nothing of it appears.
pub enum TargetFile {
    /// Parquet.
    Parquet(Box<ParquetFile>),
    /// A format of ours.
    Own(FileWriter),
}

impl TargetFile {
    /// Begins a file with the columns of a schema.
    pub fn create(schema: &SchemaRef, dest: &Dest, format: &TargetFormat) -> Result<Self> {
        match format {
            TargetFormat::Parquet(options) => {
                ParquetFile::create(schema, dest, *options).map(|file| Self::Parquet(Box::new(file)))
            }
            TargetFormat::Own(name, options) => {
                FileWriter::create(schema, dest, name, options).map(Self::Own)
            }
        }
    }

    /// Adds rows, of the schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Parquet(file) => file.write(batch),
            Self::Own(file) => file.write(batch),
        }
    }

    /// The bytes of the file so far, as they grow by row groups and stripes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Parquet(file) => file.bytes(),
            Self::Own(file) => file.bytes(),
        }
    }

    /// Makes the file appear.
    pub fn finish(self) -> Result<Written> {
        match self {
            Self::Parquet(file) => file.finish(),
            Self::Own(file) => file.finish(),
        }
    }
}
