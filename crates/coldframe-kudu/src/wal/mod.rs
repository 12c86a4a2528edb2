//! The rows that only the write-ahead log holds.
//!
//! ```text
//! segments ──▶ entries ──▶ operations by index ──▶ rows of memory, changes to rowsets ──▶ scans
//!  records      replicate    committed, and          new rows by key
//!  holes        commit       not flushed              ordinals by key
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `read` | the segments of a tablet, the operations in them, and where some are missing |
//! | `rows` | the rows of a write |
//! | `memory` | entries as delta files have them, in memory |
//! | `replay` | what the operations make of memory |
//! | `find` | rows of rowsets by their keys |
//! | `loss` | what is not known after a hole in the log |
//! | `lazy`, `summary` | the log of a tablet, replayed when it is asked for, and what is said of it |
//! | `tail` | how far the log of another replica reaches |

mod find;
mod lazy;
mod loss;
mod memory;
mod read;
mod replay;
mod rows;
mod summary;
mod tail;

pub(crate) use lazy::{Kept, TabletLog};
pub(crate) use loss::LogLoss;
pub(crate) use replay::Replayed;
pub(crate) use summary::Summary;
pub(crate) use tail::{Tail, tail};
