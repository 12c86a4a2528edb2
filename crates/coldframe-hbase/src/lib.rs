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
//! | `root` | locations of files, in any store |
//! | `regions` | which regions are live, also if a description is lost; their store files |
//! | `wal` | edits that only write-ahead logs hold; their locations in the logs |
//! | `columns` | the columns of a wide table, also of tables that Phoenix wrote; decimal numbers as text |
//! | `scan` | units of rows, merging their cells, visibility |
//! | `lookup` | rows by key |
//! | `splits` | parts that are read independently; the data that travels with them |
//! | `meta`, `descriptor`, `open` | the contents of hbase:meta; a table's families; the requested table |
//! | `table`, `format`, `options` | a table of regions |
//! | `missing`, `contents`, `own_files` | what a table lacks; what a directory holds beyond the request; files that are not HBase's |
//! | `inspect`, `verify`, `describe`, `propose` | the layout; checks beyond a scan; metadata; a guess at a table's columns |
//!
//! `docs/formats/hbase.md` describes the directory as HBase writes it.

mod columns;
mod contents;
mod describe;
mod descriptor;
mod format;
mod inspect;
mod layout;
mod lookup;
mod meta;
mod missing;
mod open;
mod options;
mod own_files;
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
