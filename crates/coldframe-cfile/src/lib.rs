//! Kudu: CFiles and whole tablets from a data directory, straight into Arrow.
//!
//! ```text
//! CFile | header | data block, index block ... | index blocks | [dictionary block] | footer |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`proto`], [`mod@footer`], [`types`] | messages; what stands at both ends; types, encodings and codecs by their numbers |
//! | [`block`], [`index`] | checksum and compression of a block; the B-trees that lead to them |
//! | [`encoding`], [`reader`] | every encoding; blocks to Arrow |
//! | [`column`] | what to fetch for a range of ordinals, and how to decode it: what tablets are read by |
//! | [`mod@file`], [`plan`], [`decode`], [`mod@format`], [`options`] | a CFile as a table |
//! | [`bloom`], [`delta`], [`key`] | bloom files, delta files as they are, values as keys |
//! | [`write`](mod@write) | the writer |
//! | [`kudu`] | tables from data directories |
//!
//! `docs/formats/cfile.md` and `docs/formats/kudu.md` describe the formats as Kudu writes them.

pub mod block;
pub mod bloom;
pub mod column;
pub mod decode;
pub mod delta;
pub mod encoding;
pub mod file;
pub mod footer;
pub mod format;
pub mod index;
mod inspect;
pub mod key;
pub mod kudu;
mod metadata;
pub mod options;
pub mod plan;
pub mod proto;
pub mod reader;
pub mod types;
pub mod write;

pub use file::CFileTable;
pub use format::CFileFormat;
