//! One open file of a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};
use arrow_schema::{DataType, Field, FieldRef};
use coldframe_core::{DamageLog, Error, OnError, Op, Predicate, Result, Scan, ScanReader, TableFile};

use crate::events::{Events, IDENTITY, INSERT};
use crate::state::{DataFile, Role};

/// One open file of the table.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    /// The file's path and role.
    pub(crate) data: DataFile,
    /// The open file.
    pub(crate) file: Arc<dyn TableFile>,
    /// Whether the file's `hive.acid.stats` state that it has only inserts.
    pub(crate) inserts_only: bool,
    /// Whether the file's `hive.acid.version` states that an update is stored as a delete (in a file of
    /// deletes) and an insert, as Hive 3 and later do.
    pub(crate) splits_updates: bool,
}

impl OpenFile {
    /// Whether the file has the identity columns.
    pub(crate) fn is_acid(&self) -> bool {
        let schema = self.file.schema();
        IDENTITY.iter().chain(["row"].iter()).all(|name| schema.column_with_name(name).is_some())
    }

    /// Fails if the columns do not fit the kind of file. `of_acid`: the writer states that the file has
    /// identity columns.
    pub(crate) fn check_identities(&self, of_acid: bool) -> Result<()> {
        let schema = self.file.schema();
        if !self.is_acid() {
            let names =
                schema.fields().iter().take(6).map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
            let expected = IDENTITY.join(", ");
            return match of_acid {
                true => {
                    Err(Error::corrupt(format!("expected the columns {expected} and row, found {names}")))
                }
                false => Ok(()),
            };
        }
        for name in IDENTITY {
            let expected =
                if matches!(name, "operation" | "bucket") { DataType::Int32 } else { DataType::Int64 };
            let actual = schema.field_with_name(name).map(Field::data_type).ok();
            if let Some(actual) = actual.filter(|actual| **actual != expected) {
                return Err(Error::corrupt(format!(
                    "expected {expected} in the column `{name}` of an ACID file, found {actual}"
                )));
            }
        }
        Ok(())
    }

    /// The columns of the file's rows, without the identity columns.
    pub(crate) fn row_fields(&self) -> Result<Vec<FieldRef>> {
        if !self.is_acid() {
            return Ok(self.file.schema().fields().iter().cloned().collect());
        }
        match self.file.schema().field_with_name("row").map(Field::data_type) {
            Ok(DataType::Struct(fields)) => Ok(fields.iter().cloned().collect()),
            Ok(other) => {
                Err(Error::schema(format!("expected the column `row` to be a struct, found {other}")))
            }
            Err(e) => Err(Error::schema(e.to_string())),
        }
    }

    /// Whether the file may have events of rows in other files.
    pub(crate) fn has_events(&self) -> bool {
        self.data.role == Role::Deletes || (self.is_acid() && !self.inserts_only)
    }

    /// Adds the file's updates and deletes to `events`.
    pub(crate) fn read_events(&self, on_error: OnError, events: &mut Events) -> Result<()> {
        if !self.is_acid() {
            let columns = self.file.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>();
            return Err(Error::corrupt(format!(
                "expected the columns {} and row of a file of deletes, found {}",
                IDENTITY.join(", "),
                columns.join(", ")
            )));
        }
        let insert: ArrayRef = Arc::new(Int32Array::from(vec![INSERT]));
        let scan = Scan {
            columns: Some(IDENTITY.iter().map(|name| (*name).to_owned()).collect()),
            predicate: Some(Predicate::compare("operation", Op::Ne, insert)),
            on_error,
            ..Scan::default()
        };
        for split in self.file.splits(u64::MAX)? {
            let mut reader = ScanReader::try_new(self.file.as_ref(), &scan, &split, DamageLog::default())?;
            while let Some(batch) = reader.next_batch()? {
                events.add(&batch, self.data.statement)?;
            }
        }
        Ok(())
    }
}
