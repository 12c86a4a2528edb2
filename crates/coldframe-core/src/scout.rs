//! Decodes a filter's columns first and the others only where a row passes: what the scouts of all formats share.
//!
//! ```text
//! rows           | . . . . | . . x . | . . . . | x x x . |     x passes the filter
//! filter's       | v v v v | v v v v | v v v v | v v v v |     decoded
//! others         |         |     v   |         | v v v v |     decoded; how finely is the format's affair
//! ```
//!
//! Damage is found only in what is decoded, so a scan with `skip` or `null`, which must report losses, has no
//! scout.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use crate::projection::outermost;
use crate::{OnError, PlanRequest, Predicate, Result};

/// The filter of a scan that decodes its columns first.
#[derive(Debug)]
pub struct Scouting(Predicate);

impl Scouting {
    /// For a request; `None` if there is no filter, or with `skip` or `null`.
    pub fn new(request: &PlanRequest) -> Option<Self> {
        request.scan.predicate.clone().filter(|_| request.scan.on_error == OnError::Raise).map(Self)
    }

    /// The columns and dotted paths that the filter reads.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.0.columns(&mut paths);
        paths
    }

    /// Which of the outermost columns of `decode` the filter reads; `None` if all or none of them.
    pub fn columns(&self, decode: &SchemaRef) -> Result<Option<Vec<bool>>> {
        let mut read = vec![false; decode.fields().len()];
        for place in outermost(decode, &self.paths())? {
            if let Some(read) = read.get_mut(place) {
                *read = true;
            }
        }
        Ok(Some(read).filter(|read| read.contains(&true) && read.contains(&false)))
    }

    /// Which rows of a batch pass; it needs at least the filter's columns.
    pub fn passing(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        self.0.passing(batch)
    }
}
