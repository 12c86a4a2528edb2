//! Hive RCFile: row groups of columns, without a footer, without types.
//!
//! ```text
//! file      | header | row group ... |
//! row group | [sync marker] | record header | key buffer | column ... |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`header`] | the two headers, the metadata |
//! | [`row_group`] | the record header; the walk from group to group; the search for sync markers |
//! | `resync` | where reading goes on behind damage |
//! | [`key_buffer`] | rows, column places and run-length coded cell lengths of a group |
//! | [`plan`], [`decode`] | the groups of a byte range; their columns as Arrow |
//! | [`serde`] | cells to values and back: ColumnarSerDe and LazyBinaryColumnarSerDe |
//! | [`hive_type`] | Hive's types, their DDL and their Arrow form |
//! | [`write`] | the writer |
//! | [`file`](mod@file), [`mod@format`], [`options`] | an open file; the format for the registry; what the user says |
//!
//! `docs/formats/rcfile.md` describes the format as real writers write it.

pub mod decode;
pub mod file;
pub mod format;
pub mod header;
pub mod hive_type;
mod inspect;
pub mod key_buffer;
pub mod options;
pub mod plan;
mod resync;
pub mod row_group;
pub mod serde;
pub mod write;

pub use file::RcFile;
pub use format::RcFileFormat;
