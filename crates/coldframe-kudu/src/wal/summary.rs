//! The summary of a log.

use std::sync::Arc;

use coldframe_core::Fault;

/// What is kept of a replayed log after the log itself is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// The number of new rows, including deleted ones, and the bytes of their cells.
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// The number of entries that change rows of rowsets.
    pub(crate) changes: u64,
    /// The number of live rows minus the number of flushed live rows, if nothing is lost.
    pub(crate) live: Option<i64>,
    /// Whether unknown new rows may be missing.
    pub(crate) lacks_rows: bool,
    pub(crate) operations: u64,
    pub(crate) uncommitted: u64,
    pub(crate) broken: Vec<Arc<Fault>>,
    /// Faults through which no row is lost.
    pub(crate) harmless: Vec<Arc<Fault>>,
}
