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
//! | `layout` | protobuf container files and what is in them |
//! | `store` | the directories of servers, encryption at rest, file and log block manager |
//! | `schema`, `tablet`, `rowset`, `replicas`, `open` | columns; super blocks; a rowset's files; the best replica of each tablet; the table that was asked for |
//! | `prune` | the range of keys that a filter leaves, and the rows that have them |
//! | `scan` | the scan of a rowset, and what delta files do to arrays |
//! | `wal` | the rows that only the write-ahead log holds |
//! | `table`, `format`, `options` | a table of tablets |
//! | `inspect`, `verify`, `metadata` | the layout of a directory; what a scan does not come by; what files say |
//!
//! `docs/formats/kudu.md` describes the directory as Kudu writes it.

mod contents;
mod format;
mod inspect;
mod layout;
mod metadata;
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
