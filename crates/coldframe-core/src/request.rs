//! The request of a scan: plain data, so that it can be sent to other processes.

use crate::options::Strings;
use crate::{OnError, Predicate, threads};

/// What to read.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Names or dotted paths; `None` means all columns.
    pub columns: Option<Vec<String>>,
    /// The filter, which is applied exactly.
    pub predicate: Option<Predicate>,
    /// Maximum rows to return, counted after the filter.
    pub limit: Option<u64>,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
    /// What to do about damage.
    pub on_error: OnError,
    /// Whether to return only doubtful rows: those that `Skip` leaves out although they were decoded before
    /// the first contradiction. Only files that [have doubtful rows](crate::TableFile::has_doubtful_rows) allow
    /// it.
    pub doubtful: bool,
    /// Whether the file may skip units that statistics, indexes and bloom filters exclude. The resulting rows
    /// are the same without pruning, which tests check.
    pub prune: bool,
    /// Maximum number of busy threads, including threads that work on other units: a format may share the
    /// columns of a unit among idle threads with [`threads::share`]. By default one for each processor; 1
    /// means only the caller's thread.
    pub threads: usize,
    /// The layout of strings and binary values. `None` uses the layout that the file was opened with, which
    /// is plain by default.
    pub strings: Option<Strings>,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            columns: None,
            predicate: None,
            limit: None,
            batch_rows: 65536,
            on_error: OnError::Raise,
            doubtful: false,
            prune: true,
            threads: threads::all(),
            strings: None,
        }
    }
}
