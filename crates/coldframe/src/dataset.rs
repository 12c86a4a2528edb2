//! Many files as one table.
//!
//! ```text
//! paths, patterns, folders, URLs ──discovery──▶ files, with their partitions' values
//!                                                 │ columns: one schema for all
//! request: columns, filter, limit ──scan──────────┼──▶ plan: splits, as plain data that travels ──▶ rows
//!                                                 └──▶ rows, in the order of the files
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`table_def`] | what a table is, as plain data |
//! | [`table`] | the files, their common schema, how each file maps to the table |
//! | [`given`] | the table of given files |
//! | [`discovery`], [`file_entry`], `glob`, `folder` | listing the files |
//! | [`foreign`] | files of other kinds among the listed files |
//! | [`partition`] | the values of `key=value` folders |
//! | [`columns`] | matching a file's columns with the table's: by name, by position, by field id |
//! | [`deletes`] | deleted rows, by their numbers |
//! | [`fragment`] | one file as a part of the table: constant columns, pruning by them, casts |
//! | [`scan`] | the request and its results |
//! | [`opening`] | how files are opened |
//! | [`plan`], [`wire`] | splits, and their byte form |
//! | [`rows`] | one pass over the rows |
//! | `extremes` | counts and extremes from metadata, without reading rows |
//! | [`storage`] | access to stores and files |
//! | `openings` | opening files in parallel |

pub mod columns;
pub mod deletes;
pub mod discovery;
mod extremes;
pub mod file_entry;
mod folder;
pub mod foreign;
pub mod fragment;
pub mod given;
pub(crate) mod glob;
pub mod opening;
pub(crate) mod openings;
pub mod partition;
pub mod plan;
pub mod rows;
pub mod scan;
pub(crate) mod special;
pub mod storage;
pub mod table;
pub mod table_def;
pub mod wire;

pub use columns::ColumnsBy;
pub use deletes::Positions;
pub use discovery::discover;
pub use file_entry::FileEntry;
pub use folder::managed_by;
pub use foreign::LeftOut;
pub use fragment::Fragment;
pub use given::{Given, TableOptions};
pub use opening::Opening;
pub use plan::{Part, Plan, Split, SplitFile, pack};
pub use rows::{FileDamage, Rows};
pub use scan::{Filter, ScanBuilder};
pub use storage::{Storage, Stores};
pub use table::Dataset;
pub use table_def::{ColumnDef, Columns, Conversion, Deletes, FileDef, FileGroup, Origin, Stated, TableDef};
