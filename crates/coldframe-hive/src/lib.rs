//! Hive's ACID tables: directories of base and delta ORC files, read as their live rows.
//!
//! | module | holds |
//! |---|---|
//! | `format` | registering ORC as a format: single files, and directories with the option `acid` |
//! | `table` | a directory as one table |
//! | `names` | the names of bases and deltas |
//! | `state` | which directories and files are current |
//! | `part` | one open file of the table |
//! | `events` | deletes and updates, and which rows are live after them |
//! | `write_ids` | which writes are visible, if the user lists them |
//! | `lost` | lost files, and the rows that they may have deleted |
//! | `missing` | rows that events refer to and that no file has |
//! | `scan` | reading the units of one file, with only the live rows and the table's columns |
//!
//! With `acid=True` (the default) a directory is opened as a table. If a single file of the table is opened
//! alone, its rows are returned as stored.

mod events;
mod format;
mod lost;
mod missing;
mod names;
mod part;
mod scan;
mod state;
mod table;
mod unstated;
mod write_ids;

pub use coldframe_orc::{Codec, Declares, EncodingStrategy, LastSecond, Masked, OpenOptions, WriteOptions};
pub use format::{HiveFormat, TableOptions};
