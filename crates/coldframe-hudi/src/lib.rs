//! What Hudi makes of HFiles: its metadata table, HFiles and logs of changes to them, merged to the latest committed
//! state; and the Avro records in the values of single files.
//!
//! ```text
//! <table>/.hoodie/                                  the timeline of the table: what was done to it, instant by instant
//! <table>/.hoodie/timeline/                         the same since Hudi 1.0
//! <table>/.hoodie/metadata/.hoodie/[timeline/]      the timeline of the metadata table
//! <table>/.hoodie/metadata/<partition>/             files, column_stats, partition_stats, bloom_filters, record_index, ..
//!     <file group>_<write token>_<instant>.hfile            base file: all records of the group as of the instant
//!     .<file group>_<instant>.log.<n>_<write token>         log file: records that changed since, and keys that went
//! ```
//!
//! A partition consists of file groups, among which its keys are spread by hash. The rows of a group are those of its
//! latest committed base file, under what the log files say that belong to it, as far as their instants are committed.
//!
//! | module | holds |
//! |---|---|
//! | `avro` | Avro's schemas and datums, straight into Arrow or as trees |
//! | `log` | the framing of log files |
//! | `timeline` | instants and their states |
//! | `slice` | names of files; which of them make the latest state of a group |
//! | `merge` | which blocks of the logs count, and what becomes of two records with one key |
//! | `changes`, `decode` | what the logs of a group say of each key; that over its base file, into batches |
//! | `table` | the partition, or the whole metadata table, as a table |
//! | `records` | a single file whose values are also shown as records |
//! | `format` | HFile as the registry knows it, files and folders |
//!
//! Facts are those of Hudi's classes `HoodieLogFileReader`, `BaseHoodieLogRecordReader`, `HoodieFileGroup`,
//! `HoodieTableMetadataUtil` and `HoodieMetadataPayload` (0.11 to 1.1) and of the tables that they wrote;
//! `docs/formats/hudi-metadata.md` says more.

mod avro;
mod changes;
mod decode;
mod format;
mod log;
mod merge;
mod records;
mod slice;
mod table;
mod timeline;

pub use format::HudiFormat;
pub use records::RecordFile;
pub use table::MetadataTable;
