//! Kudu's CFiles, each with one column of a rowset, decoded straight into Arrow.
//!
//! ```text
//! CFile | header | data block, index block ... | index blocks | [dictionary block] | footer |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | parsing bytes into plain structs: footer, blocks, index blocks, bloom blocks, entries of delta files, messages, types |
//! | `encoding` | decoding the values of a block, with one file for each encoding |
//! | [`mod@open`] | an open file: its metadata and its purpose |
//! | [`prune`] | finding the blocks of ordinals or keys; values as keys; bloom filters |
//! | [`scan`] | planning and decoding, also for reading tablets |
//! | [`table`], [`mod@format`], [`options`] | a CFile as a table |
//! | `inspect`, `verify`, `metadata` | the layout tree; checks that a scan does not make; its metadata |
//! | [`write`](mod@write) | the writer |
//!
//! `docs/formats/cfile.md` describes the format as Kudu writes it. `coldframe-kudu` reads tables made of CFiles.

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
pub use layout::types::{Compression, Encoding, KuduType};
pub use options::OpenOptions;
pub use table::CFileTable;
pub use write::Options as WriteOptions;
