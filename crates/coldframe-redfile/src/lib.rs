//! Redfile (`RED1`), the ancestor of Parquet: row groups of column chunks of pages, nested by Dremel's levels.
//!
//! ```text
//! file      | RED1 | row group ... | FileMetaData (thrift) | length u32 LE | RED1 |
//! row group | [RED1] | column chunk ... |          chunk | page header | page | ...
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`thrift`] | the compact protocol |
//! | [`metadata`], [`mod@footer`], [`summary`] | what a footer says and where it stands; the footers of many files in one |
//! | [`schema`] | the tree of elements, its levels, its Arrow form |
//! | [`dialect`] | the layouts that share one magic, and how a file tells its own |
//! | [`page`], [`levels`], [`plain`], [`group_varint`] | what a page holds |
//! | [`chunk`], [`leaf`], [`assemble`] | the pages of a column; their levels and values row by row; those as arrays |
//! | [`survey`] | what of damaged pages can be read |
//! | [`rebuild`] | row groups without a footer |
//! | [`plan`], [`decode`] | the row groups of a split; their batches |
//! | [`write`](mod@write) | the writer |
//! | [`file`](mod@file), [`mod@format`], [`options`] | an open file; the format for the registry; what the user says |
//!
//! `docs/formats/redfile.md` describes the format as real writers write it.

pub mod assemble;
pub mod chunk;
pub mod decode;
pub mod dialect;
pub mod file;
pub mod footer;
pub mod format;
pub mod group_varint;
mod inspect;
pub mod leaf;
pub mod levels;
pub mod metadata;
pub mod options;
pub mod page;
pub mod plain;
pub mod plan;
pub mod rebuild;
pub mod schema;
pub mod summary;
pub mod survey;
pub mod thrift;
pub mod write;

pub use file::RedFile;
pub use format::RedfileFormat;
