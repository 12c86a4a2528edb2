//! Parses bytes into plain structs: positions, but not the meaning of values.
//!
//! ```text
//! file    | "ORC" | stripe ..                                    | metadata | footer | postscript | length u8 |
//! stripe  | index streams | data streams | stripe footer |        a stream of a column: chunks of runs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`proto`] | the messages of `orc_proto.proto` with all their fields |
//! | [`compression`] | chunks of a codec; [`compression::Compression::message`] for whole messages |
//! | [`tail`] | postscript and footer of a file: [`tail::Tail`] |
//! | [`types`] | the flat tree of types: [`types::TypeTree`], columns by number |
//! | [`stripe`] | a stripe, its footer, the positions of its streams |
//! | [`index`] | positions of row groups |
//! | [`encryption`] | keys of streams |
//! | [`values`] | the forms of values in statistics and bloom filters |
//! | [`quirks`] | the deviations of a file's writer from the specification |

pub(crate) mod compression;
pub(crate) mod encryption;
pub(crate) mod index;
pub mod proto;
pub(crate) mod quirks;
pub(crate) mod stripe;
pub(crate) mod tail;
pub(crate) mod types;
pub(crate) mod values;
