//! Whole tables, read from the data directory of a Kudu server without the server.
//!
//! ```text
//! folder ──▶ roots (instance) ──▶ servers ──▶ tablet-meta: super blocks ──▶ best replica of each tablet
//!                                   │                                          │ rowsets
//!                                   └─▶ block manager: number ──▶ CFile ◀──────┘ column, delta, index and bloom blocks
//!
//! rowset, ordinals a..b:  base values ──▶ REDO before the snapshot, UNDO from it on ──▶ rows that exist ──▶ Arrow
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `layout` | protobuf container files and their messages |
//! | `store` | the directories of servers, encryption at rest, file and log block manager |
//! | `schema`, `tablet`, `rowset`, `replicas`, `open` | columns; super blocks; a rowset's files; the best replica of each tablet; the requested table |
//! | `missing` | what a copy lacks: partitions, logs, super blocks |
//! | `prune` | the rows of a filter's key range |
//! | `scan` | the scan of a rowset; applying delta files to arrays |
//! | `wal` | the rows that only the write-ahead log holds |
//! | `table`, `format`, `options` | a table of tablets |
//! | `inspect`, `verify`, `metadata` | the layout of a directory; checks that a scan does not make; statistics of files |
//!
//! `docs/formats/kudu.md` describes the directory as Kudu writes it.

mod contents;
mod format;
mod inspect;
mod layout;
mod metadata;
mod missing;
mod open;
mod options;
mod prune;
mod replicas;
mod rowset;
mod scan;
mod schema;
mod store;
mod table;
mod tablet;
mod verify;
mod wal;

pub use format::KuduFormat;
pub use options::OpenOptions;
pub use table::KuduTable;
