//! What is asked of a table: plain data, so that it travels.

use crate::{OnError, Predicate, threads};

/// What to read.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Names or dotted paths; `None` is all.
    pub columns: Option<Vec<String>>,
    /// Rows to keep; exact.
    pub predicate: Option<Predicate>,
    /// Most rows to hand out, counted after the filter.
    pub limit: Option<u64>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// What to do about damage.
    pub on_error: OnError,
    /// Whether the file may leave out what its statistics, indexes and bloom filters say has no row that passes. The rows
    /// are the same without, which a test can see.
    pub prune: bool,
    /// Most threads at work, those of other units counted: a format may share the columns of a unit among the idle
    /// ones by [`threads::share`]. By default all processors; 1 is none but the caller's.
    pub threads: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            columns: None,
            predicate: None,
            limit: None,
            batch_rows: 65536,
            on_error: OnError::Raise,
            prune: true,
            threads: threads::all(),
        }
    }
}
