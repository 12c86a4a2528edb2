//! Whole tables: the timeline, the file groups that a view reads, and the records of their logs merged into the rows
//! of their base files.
//!
//! ```text
//! <table>/.hoodie/hoodie.properties                     what the table says of itself
//! <table>/.hoodie/[timeline/]<instant>.<action>         the timeline
//! <table>/<partition>/<file id>_<token>_<instant>.parquet | .orc | .hfile     base files
//! <table>/<partition>/.<file id>_<instant>.log.<n>_<token>                    logs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `properties`, `timeline`, `archive`, `commit` | what is stored in `.hoodie` |
//! | `view`, `files`, `missing` | which instants and which files a view reads; files that are gone |
//! | `table_schema`, `history`, `conform` | the table's columns; their names and types in older files |
//! | `base`, `parquet_file`, `bootstrap` | base files |
//! | `partition` | the values of partition columns |
//! | `logs`, `deletes`, `kryo`, `log_file` | the blocks of logs |
//! | `keys`, `order`, `rules`, `merged` | which of the records of a key is shown |
//! | `options`, `open`, `scan`, `table`, `contents`, `format` | the table as a `TableFile`, and as a format |

mod archive;
mod base;
mod bootstrap;
mod commit;
mod conform;
mod contents;
mod deletes;
mod files;
mod format;
mod history;
mod keys;
mod kryo;
mod log_file;
mod logs;
mod merged;
pub(crate) mod missing;
mod open;
mod options;
mod order;
mod parquet_file;
mod partition;
mod properties;
mod rules;
mod scan;
mod table;
mod table_schema;
mod timeline;
mod view;

pub(crate) use files::Named;
pub use format::HudiTableFormat;
pub(crate) use missing::Lost;
pub use options::{HudiReader, OpenOptions, TableView};
pub use table::HudiTable;
