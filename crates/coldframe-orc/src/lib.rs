//! Reads ORC files to Arrow arrays and writes Arrow arrays to ORC files.
//!
//! ```text
//! file    | "ORC" | stripe ..                                    | metadata | footer | postscript | length u8 |
//! stripe  | index streams | data streams | stripe footer |        a stream of a column: chunks of runs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `layout` | the parser of bytes into plain structs |
//! | `schema` | the Arrow schema of a tree of types |
//! | `options`, `declared` | the user's options for reading, and declared columns |
//! | [`open`] | an open file as data |
//! | `prune` | the stripes and row groups that a filter must read |
//! | `scan` | the streams of a stripe to fetch, and their batches |
//! | `calendar` | whether days may be in another calendar |
//! | `undeclared` | the scale of decimals whose type states none |
//! | `table` | an open file as a table |
//! | `metadata`, `statistics`, `inspect`, `verify` | metadata and statistics as plain data; the structure of each byte; contradictions |
//! | `recover` | finds the stripes of files without a tail |
//! | `write` | the writer |
//! | `format` | the entry of the format registry |
//!
//! A module uses only modules above it in the table. `docs/formats/orc.md` describes the format as real
//! writers write it.

mod calendar;
mod declared;
mod dictionaries;
mod format;
mod inspect;
mod layout;
mod metadata;
mod open;
mod options;
mod prune;
mod recover;
mod scan;
mod schema;
mod statistics;
mod table;
mod undeclared;
mod verify;
mod write;

pub use declared::are_placeholders;
pub use format::{OrcFormat, open};
pub use layout::proto;
pub use layout::types::Kind;
pub use open::Front;
pub use options::{Calendar, Declares, Masked, OpenOptions, Options};
pub use table::OrcFile;
pub use write::{CodecOption as Codec, EncodingStrategy, LastSecond, WriteOptions};
