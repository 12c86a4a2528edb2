//! ORC: reader and writer, straight from and into Arrow.
//!
//! ```text
//! file    | "ORC" | stripe ..                                    | metadata | footer | postscript | length u8 |
//! stripe  | index streams | data streams | stripe footer |        a stream of a column: chunks of runs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`proto`] | the messages of `orc_proto.proto`, all fields |
//! | [`tail`] | postscript, footer, metadata of a file: [`tail::Tail`] |
//! | [`types`] | the flat tree of types: [`types::TypeTree`], columns by number |
//! | [`compression`] | chunks of a codec; [`compression::Compression::message`] for whole messages |
//! | [`arrow`](mod@arrow) | the Arrow schema of the tree |
//! | [`stripe`] | a stripe, its footer, the places of its streams |
//! | [`index`] | row indexes: positions of row groups; [`index::IndexReader`] reads index and bloom streams |
//! | [`stream`], [`rle`] | bytes of a stream, chunk by chunk; runs of bits, bytes and integers |
//! | [`column`](mod@column) | from streams to arrays |
//! | [`calendar`], [`zone`] | hybrid days; the writer's wall clock |
//! | [`plan`], [`decode`] | stripes of a split, row groups of a stripe, ranges to fetch ([`plan::Prune`] chooses); their batches |
//! | [`file`](mod@file), [`mod@format`], [`options`] | an open file; the format for the registry; what the user says |
//! | [`helpers`] | threads that decode columns |
//! | [`bloom`], [`statistics`] | what they promise about a row group, stripe or file |
//! | [`prune`], [`groups`] | which stripes and row groups a filter leaves |
//! | [`recover`] | files without a tail |
//! | [`encryption`] | keys of streams |
//! | [`acid`] | Hive's transactional tables |
//! | [`write`](mod@write) | the writer |
//!
//! `docs/formats/orc.md` describes the format as real writers write it.

mod inspect;

pub mod acid;
pub mod arrow;
pub mod bloom;
pub mod calendar;
pub mod column;
pub mod compression;
pub mod decode;
pub mod encryption;
pub mod file;
pub mod format;
pub mod groups;
pub mod helpers;
pub mod index;
pub mod options;
pub mod plan;
pub mod proto;
pub mod prune;
pub mod recover;
pub mod rle;
pub mod statistics;
pub mod stream;
pub mod stripe;
pub mod tail;
pub mod types;
pub mod varint;
pub mod write;
pub mod zone;

pub use file::OrcFile;
pub use format::OrcFormat;
