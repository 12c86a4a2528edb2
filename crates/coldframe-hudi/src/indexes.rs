//! Queries of a metadata table: the files of the data table, the bounds of their columns, and the locations
//! of records.
//!
//! | module | partition | returns |
//! |---|---|---|
//! | `files` | `files` | the files of the data table: all of them, or only the files that a reader sees |
//! | `statistics` | `column_stats` | statistics of each file's columns; the files that may hold rows that pass a filter |
//! | `locations` | `record_index` | the file group of a record |

mod files;
mod locations;
mod statistics;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use coldframe_core::options::Strings;
use coldframe_core::{DamageLog, Error, Predicate, Result, Scan, ScanReader, TableFile as _};

use crate::table::MetadataTable;
pub use statistics::prune;

impl MetadataTable {
    /// The rows that pass `predicate`.
    fn rows(&self, columns: &[&str], predicate: Option<Predicate>) -> Result<Vec<RecordBatch>> {
        let columns = Some(columns.iter().map(|&name| name.to_owned()).collect());
        let scan = Scan { columns, predicate, strings: Some(Strings::Plain), ..Scan::default() };
        let mut batches = Vec::new();
        for split in self.splits(u64::MAX)? {
            let mut reader = ScanReader::try_new(self, &scan, &split, DamageLog::default())?;
            while let Some(batch) = reader.next_batch()? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }
}

/// A field of a struct, of any type.
fn stored(within: &StructArray, name: &str) -> Result<ArrayRef> {
    within.column_by_name(name).cloned().ok_or_else(|| missing(name))
}

/// A column of a batch, with the type that it has in all of Hudi's schemas.
fn column<'b, A: Array + 'static>(batch: &'b RecordBatch, name: &str) -> Result<&'b A> {
    typed(batch.column_by_name(name), name)
}

/// A field of a struct, with the type that it has in all of Hudi's schemas.
fn field<'s, A: Array + 'static>(within: &'s StructArray, name: &str) -> Result<&'s A> {
    typed(within.column_by_name(name), name)
}

/// A field of a struct, if the version of Hudi that wrote the table has it.
fn optional_field<'s, A: Array + 'static>(within: &'s StructArray, name: &str) -> Result<Option<&'s A>> {
    within.column_by_name(name).map(|array| typed(Some(array), name)).transpose()
}

fn typed<'a, A: Array + 'static>(array: Option<&'a ArrayRef>, name: &str) -> Result<&'a A> {
    let array = array.ok_or_else(|| missing(name))?;
    array.as_any().downcast_ref().ok_or_else(|| {
        Error::schema(format!(
            "Hudi's metadata: field `{name}` has the unexpected type {}",
            array.data_type()
        ))
    })
}

fn missing(name: &str) -> Error {
    Error::schema(format!("Hudi's metadata: field `{name}` is missing"))
}
