//! Hive RCFile: row groups of columns, without a footer and without types.
//!
//! ```text
//! file      | header | row group ... |
//! row group | [sync marker] | record header | key buffer | column ... |
//! ```
//!
//! A module uses only the modules above it in this table.
//!
//! | module | holds |
//! |---|---|
//! | [`hive_type`], `serde` | Hive's types; cells to values and back: ColumnarSerDe and LazyBinaryColumnarSerDe |
//! | `layout` | the parser of the bytes into plain structs: header, record header, key with its run-length coded cell lengths |
//! | `options` | what the user must state because files do not |
//! | `walk` | goes from row group to row group, finds sync markers, and continues after damage |
//! | `open` | the header and options of an open file |
//! | `scan` | reads the groups of a byte range and decodes their columns to Arrow |
//! | `inspect`, `verify` | the structure to which each byte belongs; contradictions between fields that are stored twice |
//! | `propose` | guesses which SerDe wrote the file |
//! | `table`, `write` | an open file as a table; the writer |
//! | `format` | registers RCFile as a format |
//!
//! `docs/formats/rcfile.md` describes the format as real writers write it.

mod format;
pub mod hive_type;
mod inspect;
mod layout;
mod open;
mod options;
mod propose;
mod scan;
mod serde;
mod table;
mod verify;
mod walk;
mod write;

pub use coldframe_encoding::codec::Algorithm;
pub use format::RcFileFormat;
pub use layout::header::{Header as FileHeader, Magic, SYNC_LEN};
pub use options::{OpenOptions, TableOptions};
pub use serde::{HiveVersion, Serde, TimestampUnit};
pub use table::RcFile;
pub use write::{Codec, Header, WriteOptions};
