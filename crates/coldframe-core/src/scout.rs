//! Late materialisation: decodes a filter's columns first, and the other columns only for rows that pass. This
//! module is the part that all formats share.
//!
//! ```text
//! rows           | . . . . | . . x . | . . . . | x x x . |     x passes the filter
//! filter's       | v v v v | v v v v | v v v v | v v v v |     decoded
//! others         |         |     v   |         | v v v v |     decoded, as selectively as the format can
//! ```
//!
//! A scan detects damage only in the columns that it decodes. A scan with `skip` or `null` must report all
//! losses, so it decodes all columns of all rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};

use crate::projection::outermost;
use crate::{OnError, PlanRequest, Predicate, Result};

/// The filter of a scan that decodes the filter's columns first.
#[derive(Debug)]
pub struct Scouting(Predicate);

impl Scouting {
    /// The filter of a request; `None` without a filter, or with `skip` or `null`.
    pub fn new(request: &PlanRequest) -> Option<Self> {
        request.scan.predicate.clone().filter(|_| request.scan.on_error == OnError::Raise).map(Self)
    }

    /// The columns and dotted paths that the filter reads.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.0.columns(&mut paths);
        paths
    }

    /// Which of the top-level columns of `decode` the filter reads; `None` if all or none of them.
    pub fn columns(&self, decode: &SchemaRef) -> Result<Option<Vec<bool>>> {
        let mut read = vec![false; decode.fields().len()];
        for place in outermost(decode, &self.paths())? {
            if let Some(read) = read.get_mut(place) {
                *read = true;
            }
        }
        Ok(Some(read).filter(|read| read.contains(&true) && read.contains(&false)))
    }

    /// Which rows of a batch pass; the batch must have at least the filter's columns.
    pub fn passing(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        self.0.passing(batch)
    }
}

/// The top-level columns of a scan, divided into the columns of its filter and the other columns.
#[derive(Debug)]
pub struct Divided {
    scouting: Scouting,
    of_filter: Vec<bool>,
    schema: SchemaRef,
}

impl Divided {
    /// Divides the columns of `decode` for a filtered scan; `None` if the filter reads all of them, or none
    /// of them.
    pub fn new(request: &PlanRequest, decode: &SchemaRef) -> Result<Option<Self>> {
        let Some(scouting) = Scouting::new(request) else { return Ok(None) };
        let Some(of_filter) = scouting.columns(decode)? else { return Ok(None) };
        let fields = decode.fields().iter().zip(&of_filter).filter(|(_, read)| **read);
        let schema = Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()));
        Ok(Some(Self { scouting, of_filter, schema }))
    }

    /// The filter's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the filter reads the column with this number.
    pub fn is_of_filter(&self, column: usize) -> bool {
        self.of_filter.get(column) == Some(&true)
    }

    /// Which rows pass, in a batch with only the filter's columns.
    pub fn passing(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        self.scouting.passing(batch)
    }

    /// All columns in their original order.
    pub fn joined(&self, of_filter: Vec<ArrayRef>, others: Vec<ArrayRef>) -> Vec<ArrayRef> {
        let (mut of_filter, mut others) = (of_filter.into_iter(), others.into_iter());
        self.of_filter
            .iter()
            .filter_map(|read| if *read { of_filter.next() } else { others.next() })
            .collect()
    }
}
