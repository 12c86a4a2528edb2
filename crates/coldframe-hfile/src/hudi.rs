//! Hudi's metadata table: HFiles and logs of changes to them, merged to the latest committed state.
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
//! | [`log`] | the framing of log files |
//! | [`timeline`] | instants and their states |
//! | [`slice`] | names of files; which of them make the latest state of a group |
//! | [`merge`] | which blocks of the logs count, and what becomes of two records with one key |
//! | [`table`], [`decode`] | the partition, or the whole metadata table, as a table |
//!
//! Facts are those of Hudi's classes `HoodieLogFileReader`, `BaseHoodieLogRecordReader`, `HoodieFileGroup`,
//! `HoodieTableMetadataUtil` and `HoodieMetadataPayload` (0.11 to 1.1) and of the tables that they wrote;
//! `docs/formats/hudi-metadata.md` says more.

pub mod decode;
pub mod log;
pub mod merge;
pub mod slice;
pub mod table;
pub mod timeline;

pub use table::MetadataTable;
