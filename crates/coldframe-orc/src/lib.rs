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
//! | [`options`] | what the user says |
//! | [`bloom`], [`statistics`] | what they promise about a row group, stripe or file |
//! | [`encryption`] | keys of streams |
//! | [`acid`] | Hive's transactional tables |
//! | [`write`](mod@write) | the writer |
//!
//! `docs/formats/orc.md` describes the format as real writers write it.

pub mod acid;
pub mod bloom;
pub mod compression;
pub mod encryption;
pub mod options;
pub mod proto;
pub mod statistics;
pub mod tail;
pub mod types;
pub mod write;
