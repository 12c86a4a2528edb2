//! From bytes to plain structs: what stands where, nothing of what it means.
//!
//! ```text
//! file    | "ORC" | stripe ..                                    | metadata | footer | postscript | length u8 |
//! stripe  | index streams | data streams | stripe footer |        a stream of a column: chunks of runs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`proto`] | the messages of `orc_proto.proto`, all fields |
//! | [`compression`] | chunks of a codec; [`compression::Compression::message`] for whole messages |
//! | [`tail`] | postscript and footer of a file: [`tail::Tail`] |
//! | [`types`] | the flat tree of types: [`types::TypeTree`], columns by number |
//! | [`stripe`] | a stripe, its footer, the places of its streams |
//! | [`index`] | positions of row groups |
//! | [`encryption`] | keys of streams |
//! | [`values`] | values as statistics and bloom filters have them |
//! | [`quirks`] | what a file's writer did otherwise than the specification says |

pub(crate) mod compression;
pub(crate) mod encryption;
pub(crate) mod index;
pub mod proto;
pub(crate) mod quirks;
pub(crate) mod stripe;
pub(crate) mod tail;
pub(crate) mod types;
pub(crate) mod values;
