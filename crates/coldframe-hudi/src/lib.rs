//! Hudi's tables ([`HudiTable`]; module `data`), their metadata tables, which consist of HFiles and of logs with changes to
//! them, merged into the latest committed state, and the Avro records in the values of single HFiles.
//!
//! A metadata table:
//!
//! ```text
//! <table>/.hoodie/                                  the timeline of the table: its actions, instant by instant
//! <table>/.hoodie/timeline/                         the same since Hudi 1.0
//! <table>/.hoodie/metadata/.hoodie/[timeline/]      the timeline of the metadata table
//! <table>/.hoodie/metadata/<partition>/             files, column_stats, partition_stats, bloom_filters, record_index, ..
//!     <file group>_<write token>_<instant>.hfile            base file: all records of the group as of the instant
//!     .<file group>_<instant>.log.<n>_<write token>         log file: records changed since, and keys deleted since
//! ```
//!
//! A partition consists of file groups; a hash distributes its keys among them. The rows of a group are those of
//! its latest committed base file, with the changes of committed instants in its log files.
//!
//! | module | holds |
//! |---|---|
//! | `data` | whole tables |
//! | `avro` | Avro schemas, and datums decoded into Arrow or as trees |
//! | `log` | the framing of log files |
//! | `timeline` | instants and their states |
//! | `slice` | file names; selecting the files of a group's latest state |
//! | `merge` | selects the valid log blocks; merges records with equal keys |
//! | `changes`, `decode` | the changes of a group's logs by key; applying them to its base file |
//! | `table` | the partition, or the whole metadata table, as a table |
//! | `indexes` | queries: the data table's files, the bounds of their columns, the locations of records |
//! | `records` | a single file with its values decoded as records |
//! | `format` | registering HFile as a format: files and folders |
//!
//! Sources: Hudi's classes `HoodieLogFileReader`, `BaseHoodieLogRecordReader`, `HoodieFileGroup`,
//! `HoodieTableMetadataUtil` and `HoodieMetadataPayload` (0.11 to 1.1), and tables that they wrote;
//! see `docs/formats/hudi-metadata.md`.

mod avro;
mod changes;
mod data;
mod decode;
mod format;
mod indexes;
mod log;
mod merge;
mod records;
mod slice;
mod table;
mod timeline;

pub use coldframe_hfile::{
    BloomKind, CellEncoding, CellTypes, Checksum, Codec, OpenOptions, View, WriteOptions,
};
pub use data::{HudiReader, HudiTable, HudiTableFormat, OpenOptions as TableOptions, TableView};
pub use format::{Decode, HudiFormat, RecordOptions};
pub use indexes::prune;
pub use records::RecordFile;
pub use table::{MetadataTable, partitions};
