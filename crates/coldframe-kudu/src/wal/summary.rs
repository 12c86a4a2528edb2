//! What is said of a log.

use std::sync::Arc;

use coldframe_core::Fault;

/// What is said of a log once it was replayed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// New rows, deleted ones too, and the bytes of their cells.
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Entries that change rows of rowsets.
    pub(crate) changes: u64,
    /// How many live rows more than were flushed there are, if nothing is lost.
    pub(crate) live: Option<i64>,
    /// Whether new rows may be missing that are nowhere else.
    pub(crate) lacks_rows: bool,
    pub(crate) operations: u64,
    pub(crate) uncommitted: u64,
    pub(crate) broken: Vec<Arc<Fault>>,
    /// Those that cost no row.
    pub(crate) harmless: Vec<Arc<Fault>>,
}
