//! HBase tables from a root directory or a snapshot, without an HBase.
//!
//! ```text
//! root ──▶ table descriptor: families, what they keep           snapshot ──▶ manifest ─┐
//!   │                                                                                   │
//!   └────▶ folders of regions, hbase:meta ──▶ regions that are alive ◀──────────────────┘
//!                                               │ families: names, lists ──▶ files, links, halves ──▶ HFiles by sequence id
//!                                               ▼
//!             rows a..b: blocks of all files ──▶ one order of cells ──▶ what a reader sees ──▶ Arrow
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `layout` | messages, names, what families keep |
//! | `root` | where things lie, in any store |
//! | `regions` | which regions are alive; their store files |
//! | `wal` | what only write-ahead logs hold |
//! | `columns` | what a wide table consists of, Phoenix's tables too |
//! | `scan` | units of rows, the merge of their cells, which of them are seen |
//! | `lookup` | rows by their keys |
//! | `splits` | parts that are read by themselves |
//! | `meta`, `open` | what hbase:meta says; the table that is asked for |
//! | `table`, `format`, `options` | a table of regions |
//! | `contents` | what a directory has beside what is asked for |
//! | `inspect`, `verify`, `describe`, `propose` | the layout; what a scan does not come by; what a table says of itself; a guess at its columns |
//!
//! `docs/formats/hbase.md` describes the directory as HBase leaves it.

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
pub use layout::names::TableName;
pub use lookup::RowScan;
pub use options::{OpenOptions, View};
pub use table::HBaseTable;
