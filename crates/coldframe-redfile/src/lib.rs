//! Redfile (`RED1`), the ancestor of Parquet: its row groups consist of column chunks, and these of pages;
//! nesting is expressed by Dremel's levels.
//!
//! ```text
//! file      | RED1 | row group ... | FileMetaData (thrift) | length u32 LE | RED1 |
//! row group | [RED1] | column chunk ... |          chunk | page header | page | ...
//! ```
//!
//! Each layer uses only the layers below it:
//!
//! | module | holds |
//! |---|---|
//! | `table` | an open file as a table |
//! | `scan` | the row groups of a split: from pages to rows to batches |
//! | `open` | the footer, and files with the footers of many files; an open file |
//! | `recover` | reconstructing row groups without a footer |
//! | `pages` | the levels and values of a page |
//! | `schema` | the tree of elements, its levels, its Arrow form |
//! | `layout` | parsing bytes into plain structs; the dialects |
//! | [`write`](mod@write), `inspect` | the writer; which structure each byte belongs to |
//! | `format`, `options` | the entry of the format registry; the user's options |
//!
//! `docs/formats/redfile.md` describes the format as its writers produced it.

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
