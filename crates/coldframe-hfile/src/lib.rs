//! HFile of HBase and of Hudi: sorted cells in blocks, found by an index, a trailer at the end.
//!
//! ```text
//! file, version 2 and 3
//!   scanned   | data block ... with leaf index blocks and bloom chunks between them |
//!   not so    | meta block ... | intermediate index block ... |
//!   on open   | root data index | root meta index | file info | bloom meta ... |
//!   trailer   | "TRABLK\"$" | where all that is | version |
//!
//! data block  | header 33 | cell ... | checksums |
//! cell        | key length i32 | value length i32 | key | value | [tags length u16 | tag ...] | [sequence id VLong] |
//! key         | row length u16 | row | family length u8 | family | qualifier | timestamp i64 | type u8 |
//! tag         | length u16 | type u8 | bytes |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`trailer`], [`proto`], [`file_info`] | where everything is; what the writer says of it |
//! | [`block`], [`content`] | the header of a block, its type, its checksums; what it holds once decrypted and decompressed |
//! | [`codec`] | codecs by their ordinals; the cipher around them |
//! | [`cell`], [`encoding`] | cells in plain form; the data block encodings |
//! | [`index`], [`cursor`], [`order`], `heads` | the data index, the walk over it, the order of rows, searches in it |
//! | [`reader`], [`pairs`], [`cache`] | a file below Arrow; its pairs; blocks that look-ups keep |
//! | [`plan`], [`decode`], [`columns`], `strings`, [`pivot`] | the runs of blocks of a scan; their cells as Arrow, as they are or as a wide table |
//! | [`lookup`], [`rows`], [`bloom`], [`visible`] | cells by row; by ranges of rows; filters; what delete markers leave |
//! | [`walk`], `recover` | from block to block without an index; opening without a trailer |
//! | [`file`](mod@file), [`mod@format`], [`options`], `describe`, `inspect` | an open file; the format for the registry; what the user and the file say |
//!
//! `docs/formats/hfile.md` describes the format as real writers write it.

pub mod avro;
pub mod block;
pub mod bloom;
pub mod cache;
pub mod cell;
pub mod codec;
pub mod columns;
pub mod content;
pub mod cursor;
pub mod decode;
mod describe;
pub mod encoding;
pub mod file;
pub mod file_info;
pub mod format;
mod heads;
pub mod hudi;
pub mod index;
mod inspect;
pub mod lookup;
pub mod options;
pub mod order;
pub mod pairs;
pub mod pivot;
pub mod plan;
pub mod proto;
pub mod reader;
pub mod records;
mod recover;
pub mod rows;
mod strings;
pub mod trailer;
pub mod visible;
pub mod walk;
pub mod write;

pub use file::HFile;
pub use format::HFileFormat;
