//! Hive's ACID tables: base and delta directories of ORC files, read as their live rows.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | ORC for the registry: single files, and directories with the option `acid` |
//! | [`table`] | a directory as one table |
//! | `state` | which directories and files are current |
//! | `part` | one file of them, opened |
//! | `events` | deletes and updates, and which rows survive them |
//! | `write_ids` | which writes count, if somebody says so |
//! | `lost` | what damage leaves in doubt |
//! | `scan` | the units of one file, stripped to the live rows' own columns |
//!
//! A table is opened like this by `acid=True` only; a single file of it is read as the rows it holds.

mod events;
mod format;
mod lost;
mod part;
mod scan;
mod state;
mod table;
mod write_ids;

pub use format::HiveFormat;
