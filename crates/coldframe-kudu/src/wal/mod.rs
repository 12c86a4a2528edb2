//! Recovers the rows that exist only in the write-ahead log.
//!
//! ```text
//! segments ──▶ entries ──▶ operations by index ──▶ rows of memory, changes to rowsets ──▶ scans
//!  records      replicate    committed, and          new rows by key
//!  holes        commit       not flushed              ordinals by key
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `read` | the segments of a tablet, their operations, and the holes |
//! | `rows` | the rows of a write |
//! | `memory` | entries in the form of delta files, in memory |
//! | `replay` | the contents of the server's memory after the operations |
//! | `find` | finding rows of rowsets by key |
//! | `loss` | which rows are unknown because of a hole in the log |
//! | `lazy`, `summary` | the log of a tablet, replayed on first use, and its summary |
//! the last operations in the log of another replica

mod find;
mod lazy;
mod loss;
mod memory;
mod read;
mod replay;
mod rows;
mod summary;
mod tail;

pub(crate) use lazy::{ReplayCache, TabletLog};
pub(crate) use loss::LogLoss;
pub(crate) use replay::Replayed;
pub(crate) use rows::{is_set, value};
pub(crate) use summary::Summary;
pub(crate) use tail::{Tail, tail};
