//! Redfile (`RED1`), the ancestor of Parquet: row groups of column chunks of pages, nested by Dremel's levels.
//!
//! ```text
//! file      | RED1 | row group ... | FileMetaData (thrift) | length u32 LE | RED1 |
//! row group | [RED1] | column chunk ... |          chunk | page header | page | ...
//! ```
//!
//! Each layer uses those below it:
//!
//! | module | holds |
//! |---|---|
//! | `table` | an open file as a table |
//! | `scan` | the row groups of a split: from pages to rows to batches |
//! | `open` | the footer, the footers of many files in one; the open file as data |
//! | `recover` | row groups without a footer |
//! | `pages` | levels and values of a page |
//! | `schema` | the tree of elements, its levels, its Arrow form |
//! | `layout` | the bytes as plain structs; the dialects |
//! | [`write`](mod@write), `inspect` | the writer; which structure each byte belongs to |
//! | `format`, `options` | the entry of the format registry; the user's options |
//!
//! `docs/formats/redfile.md` describes the format as real writers write it.

mod format;
mod inspect;
mod layout;
mod open;
mod options;
mod pages;
mod recover;
mod scan;
mod schema;
mod table;
mod verify;
pub mod write;

pub use format::RedfileFormat;
pub use layout::dialect::Dialect;
pub use layout::metadata;
pub use open::groups::{Chunk, Group};
pub use options::{ByteArray, Int96, OpenDialect, OpenOptions};
pub use table::RedFile;
pub use write::{Codec, WriteOptions};
