//! Hive RCFile: row groups of columns, without a footer and without types.
//!
//! ```text
//! file      | header | row group ... |
//! row group | [sync marker] | record header | key buffer | column ... |
//! ```
//!
//! Bottom up; a module uses only those above it in this table.
//!
//! | module | holds |
//! |---|---|
//! | [`hive_type`], `serde` | Hive's types; cells to values and back: ColumnarSerDe and LazyBinaryColumnarSerDe |
//! | `layout` | the bytes as plain structs: header, record header, key with its run-length coded cell lengths |
//! | `options` | what the user must state because files do not |
//! | `walk` | from row group to row group; sync markers; resynchronisation after damage |
//! | `open` | an open file as data |
//! | `scan` | the groups of a byte range; their columns as Arrow |
//! | `inspect`, `verify` | which structure each byte belongs to; contradictions between redundant fields |
//! | `propose` | a guess which SerDe wrote the file |
//! | `table`, `write` | the file as a table; the writer |
//! | `format` | the entry of the format registry |
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
