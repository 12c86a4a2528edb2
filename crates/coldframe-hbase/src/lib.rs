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
//! | `alive`, `doubt` | which regions are alive; which may be, where a description is lost |
//! | `files` | the store files of a region: which count, where they are, their order |
//! | `edits`, `log_index` | what only write-ahead logs hold; where it stands in them |
//! | `phoenix` | row keys, qualifiers and values of tables that Phoenix wrote |
//! | `wide`, `decimal` | what a wide table consists of; decimal numbers as text |
//! | `scan` | units of rows, the merge of their cells, which of them are seen |
//! | `lookup` | rows by their keys |
//! | `splits`, `packed` | parts that are read by themselves; what travels with them |
//! | `meta`, `open` | what hbase:meta says; the table that is asked for |
//! | `table`, `format`, `options` | a table of regions |
//! | `contents` | what a directory has beside what is asked for |
//! | `inspect`, `verify`, `describe`, `propose` | the layout; what a scan does not come by; what a table says of itself; a guess at its columns |
//!
//! `docs/formats/hbase.md` describes the directory as HBase leaves it.

mod alive;
mod contents;
mod decimal;
mod describe;
mod doubt;
mod edits;
mod files;
mod format;
mod found;
mod inspect;
mod layout;
mod log_index;
mod lookup;
mod meta;
mod open;
mod options;
mod packed;
mod phoenix;
mod propose;
mod root;
mod scan;
mod side_by_side;
mod splits;
mod table;
mod verify;
mod wide;

pub use format::HBaseFormat;
pub use layout::names::TableName;
pub use lookup::RowScan;
pub use table::HBaseTable;
