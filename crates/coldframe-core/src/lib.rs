//! What all formats share: reading units, filtering and writing Arrow batches.
//!
//! ```text
//!   Format ──open──▶ TableFile ──plan(scan, split)──▶ Plan ──next_unit──▶ Unit{ranges, decode}
//!                                                                          │ fetch: this crate, one request a unit
//!                     Arrow ◀──project, filter, limit: this crate ◀──decode: pure function of bytes
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`mod@format`] | the traits that a format implements |
//! | [`io`] | byte sources and folders |
//! | `ahead` | requests units before they are needed |
//! | `request` | what to read |
//! | [`scan`] | the reader that drives any format |
//! | [`projection`] | columns and nested paths of a schema |
//! | [`predicate`] | filters: normal form, pruning, exact evaluation |
//! | [`types`] | one schema for many files; types common to several files; conversions |
//! | [`sql_tokens`] | the tokens of SQL: filters, statements that create tables |
//! | [`arrays`] | strings and offsets checked in bulk |
//! | [`salvage`] | which rows and values of a damaged unit are kept; batches that fit |
//! | [`scout`] | late materialisation: decodes a filter's columns first, and the other columns only for units in which a row passes |
//! | [`damage`], [`layout`], [`value`] | records of damage; the tree of a file's bytes; nested metadata |
//! | [`changes`] | counts of values that are not returned exactly |
//! | `notice` | what users should know about a table, although it is no error |
//! | `statistics`, `extremes` | typed statistics of columns; exact minima and maxima |
//! | [`evolved`] | a file whose columns are converted to the types of its Hive table |
//! | [`mod@filter`] | keeps the rows that pass a filter |
//! | [`proof`] | what `verify` compares |
//! | [`contents`] | everything that a source contains, whether requested or not |
//! | [`mod@options`], [`writing`] | the options of formats, each declared once; checks of all writers |
//! | [`process`] | values that exist once per process |
//! | [`threads`] | shares the columns of a unit among idle threads |

mod ahead;
pub mod arrays;
pub mod changes;
pub mod contents;
pub mod damage;
pub mod evolved;
mod extremes;
pub mod filter;
pub mod format;
pub mod io;
pub mod layout;
mod notice;
pub mod options;
pub mod predicate;
pub mod process;
pub mod projection;
pub mod proof;
mod request;
pub mod salvage;
pub mod scan;
pub mod scout;
pub mod sql_tokens;
mod statistics;
pub mod threads;
pub mod types;
pub mod value;
pub mod writing;

pub use changes::{Change, Changes};
pub use coldframe_encoding::error::ErrorContext;
pub use coldframe_encoding::{Error, ErrorKind, Limits, Result, shown, shown_in};
pub use contents::Content;
pub use damage::{Damage, DamageLog, Fault, OnError, PassedOver};
pub use extremes::{ColumnExtremes, Extremes};
pub use format::{
    BatchIter, BatchWriter, Capabilities, CommonOptions, DecodeUnit, Fetch, Format, KeySource, Matching,
    NoUnits, OpenOptions, Piece, Plan, PlanRequest, Report, SchemaSpec, Split, StoredDictionary, TableFile,
    Unit, WriteOptions,
};
pub use io::{ReadAt, Source};
pub use layout::Node;
pub use notice::Notice;
pub use options::{OptionSpec, Options};
pub use predicate::{ColumnBounds, KeyRange, Op, Predicate};
pub use projection::Projection;
pub use proof::{Checksums, Proof};
pub use request::Scan;
pub use scan::{ScanReader, UnitPlace, Work};
pub use scout::{Divided, Scouting};
pub use statistics::{Bound, ColumnSummary};
pub use value::Value;

/// Converts an Arrow error to ours. Such an error occurs only for data that violates Arrow's own rules.
pub fn arrow_error(e: arrow_schema::ArrowError) -> Error {
    match e {
        arrow_schema::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::new(ErrorKind::Foreign(other)),
        },
        arrow_schema::ArrowError::SchemaError(m) => Error::schema(m),
        e => Error::corrupt(e.to_string()),
    }
}
