//! Kudu's CFiles: one column of a rowset each, straight into Arrow.
//!
//! ```text
//! CFile | header | data block, index block ... | index blocks | [dictionary block] | footer |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | bytes to plain structs: footer, blocks, index blocks, bloom blocks, entries of delta files, messages, types |
//! | `encoding` | the values of a block, one file for each encoding |
//! | [`mod@open`] | an open file: what it says of itself and what it is for |
//! | [`prune`] | which blocks hold a range of ordinals or keys; values as keys; what a bloom filter knows |
//! | [`scan`] | what to fetch, and how to decode it: what tablets are read by |
//! | [`table`], [`mod@format`], [`options`] | a CFile as a table |
//! | `inspect`, `verify`, `metadata` | where each byte belongs; what a file says twice; what it says of itself |
//! | [`write`](mod@write) | the writer |
//!
//! `docs/formats/cfile.md` describes the format as Kudu writes it. Tables made of CFiles are `coldframe-kudu`.

mod arrow;
pub(crate) mod encoding;
pub mod format;
mod inspect;
pub mod layout;
mod metadata;
pub mod open;
pub mod options;
pub mod prune;
pub mod scan;
pub mod table;
mod verify;
pub mod write;

pub use format::CFileFormat;
pub use table::CFileTable;
