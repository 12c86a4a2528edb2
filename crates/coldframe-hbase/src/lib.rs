//! HBase tables read from a root directory or a snapshot, without HBase itself.
//!
//! ```text
//! root ──▶ table descriptor: families, what they keep           snapshot ──▶ manifest ─┐
//!   │                                                                                   │
//!   └────▶ folders of regions, hbase:meta ──▶ live regions ◀────────────────────────────┘
//!                                               │ families: names, lists ──▶ files, links, halves ──▶ HFiles by sequence id
//!                                               ▼
//!             rows a..b: blocks of all files ──▶ merged cells ──▶ visible cells ──▶ Arrow
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `layout` | messages, names, retention settings of families |
//! | `root` | locations of files below a root directory, in any store |
//! | `regions` | which regions are live, even if a description is lost; their store files |
//! | `wal` | edits that only write-ahead logs hold; the locations of these edits in the logs |
//! | `columns` | the columns of a wide table, including tables that Phoenix wrote; decimal numbers as text |
//! | `scan` | dividing rows into units, merging their cells, deciding which are visible |
//! | `lookup` | look-ups of rows by key |
//! | `splits` | parts that are read independently; the data that is sent with them |
//! | `meta`, `open` | the contents of hbase:meta; the requested table |
//! | `table`, `format`, `options` | a table of regions; the format; the options |
//! | `contents` | what a directory contains besides what is requested |
//! | `inspect`, `verify`, `describe`, `propose` | the layout; checks that a scan does not make; metadata; a guess at a table's columns |
//!
//! `docs/formats/hbase.md` describes the directory as HBase writes it.

mod columns;
mod contents;
mod describe;
mod format;
mod inspect;
mod layout;
mod lookup;
mod meta;
mod open;
mod options;
mod propose;
mod regions;
mod root;
mod scan;
mod splits;
mod table;
mod verify;
mod wal;

pub use format::HBaseFormat;
pub use lookup::RowScan;
pub use options::{OpenOptions, View};
pub use table::HBaseTable;
