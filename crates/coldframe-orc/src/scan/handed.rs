//! Hands out the rows that pass a filter: the values of its columns as the scout decoded them, beside the other columns.
//!
//! ```text
//! scout       | id | word  |        batches of the filter's columns; what passes of them is kept
//! others      | price | day |       decoded for the rows that pass, or for the rows between them, too
//! handed out  | id | price | word | day |
//! ```

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use coldframe_core::arrays::chosen::chosen;
use coldframe_core::{Result, arrow_error};

use super::job::ScanShared;

/// The columns that a scout hands out.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Their fields, as the scan wants them.
    schema: SchemaRef,
    /// Their places among the columns of the scout.
    places: Vec<usize>,
    /// For each column of the scan, whether the scout hands it out.
    of_scout: Vec<bool>,
    /// All columns of the scan.
    all: SchemaRef,
    /// Whether a column of the scout is decoded once more.
    twice: bool,
}

impl Handed {
    /// Divides the columns of a scan: into those that its `scout` has, which are handed out, and a scan of the others.
    pub(crate) fn divide(all: &ScanShared, scout: &ScanShared) -> Result<(Self, ScanShared)> {
        let place_of = |number: usize, field: &FieldRef| {
            let id = all.columns.get(number).map(|(id, _)| *id);
            let mut own = scout.schema.fields().iter().enumerate();
            let same = own.find(|(place, of_scout)| {
                let of_same_column = scout.columns.get(*place).map(|(id, _)| *id) == id;
                // Columns without an identity are the row numbers.
                of_same_column && of_scout.name() == field.name() && of_scout == &field
            });
            same.map(|(place, _)| place)
        };
        let fields = all.schema.fields();
        let places: Vec<Option<usize>> =
            fields.iter().enumerate().map(|(number, field)| place_of(number, field)).collect();
        let of = |is: bool| {
            let fields = fields.iter().zip(&places).filter(|(_, place)| place.is_some() == is);
            Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()))
        };
        let columns = all.columns.iter().zip(&places).filter(|(_, place)| place.is_none());
        let others = all.only(columns.map(|(column, _)| column.clone()).collect(), of(false))?;
        let handed = Self {
            schema: of(true),
            places: places.iter().copied().flatten().collect(),
            of_scout: places.iter().map(Option::is_some).collect(),
            all: all.schema.clone(),
            twice: places.iter().flatten().count() < scout.schema.fields().len(),
        };
        Ok((handed, others))
    }

    /// Whether a column of the scout is decoded once more: part of a nested column.
    pub(super) fn reads_twice(&self) -> bool {
        self.twice
    }

    /// Whether the scan has no other columns.
    pub(super) fn is_all(&self) -> bool {
        !self.of_scout.contains(&false)
    }

    /// What passes of the columns that are handed out.
    pub(super) fn kept(&self, batch: &RecordBatch, passes: BooleanBuffer) -> Result<RecordBatch> {
        let kept = chosen(&batch.project(&self.places).map_err(arrow_error)?, passes)?;
        let as_wanted = |(array, field): (&ArrayRef, &FieldRef)| {
            // Text that was tested by the entries of its dictionary.
            if array.data_type() == field.data_type() {
                return Ok(array.clone());
            }
            arrow_cast::cast(array, field.data_type()).map_err(arrow_error)
        };
        let columns =
            kept.columns().iter().zip(self.schema.fields()).map(as_wanted).collect::<Result<_>>()?;
        batch_of(&self.schema, columns, kept.num_rows())
    }

    /// All rows of some batches that [`Self::kept`] returned.
    pub(super) fn together(&self, batches: &[RecordBatch]) -> Result<RecordBatch> {
        concat_batches(&self.schema, batches).map_err(arrow_error)
    }

    /// All columns of the scan.
    pub(super) fn all(&self) -> &SchemaRef {
        &self.all
    }

    /// All columns of rows that pass.
    pub(super) fn joined(&self, of_scout: &RecordBatch, others: &RecordBatch) -> Result<RecordBatch> {
        let (mut scout, mut rest) = (of_scout.columns().iter(), others.columns().iter());
        let columns = self.of_scout.iter().filter_map(|is| if *is { scout.next() } else { rest.next() });
        batch_of(&self.all, columns.cloned().collect(), others.num_rows())
    }
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}
