//! Whole tables from the data directory of a Kudu server, without a server.
//!
//! ```text
//! folder ──▶ roots (instance) ──▶ servers ──▶ tablet-meta: super blocks ──▶ best replica of each tablet
//!                                   │                                          │ rowsets
//!                                   └─▶ block manager: number ──▶ CFile ◀──────┘ column, delta, index and bloom blocks
//!
//! rowset, ordinals a..b:  base values ──▶ REDO before the snapshot, UNDO from it on ──▶ rows that are there ──▶ Arrow
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `roots` | the directories of servers |
//! | `container`, `expansion`, `proto` | protobuf container files and what is in them |
//! | `crypt` | encryption at rest |
//! | `blocks` | file and log block manager |
//! | `tablet`, `schema` | super blocks, replicas, columns |
//! | `rowset`, `plan`, `decode` | the scan of a rowset |
//! | `delta`, `patch` | delta files, and what they do to arrays |
//! | `key` | encoded keys, and the range that a filter leaves |
//! | `inspect` | the layout of a directory |

mod blocks;
mod container;
mod crypt;
mod decode;
pub(crate) mod delta;
mod expansion;
mod format;
mod inspect;
mod key;
mod options;
mod patch;
mod plan;
mod proto;
mod roots;
mod rowset;
mod schema;
mod table;
mod tablet;

pub use format::KuduFormat;
pub use table::{KuduTable, tables};
