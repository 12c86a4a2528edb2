//! HFile of HBase and of Hudi: sorted cells in blocks, found by an index, a trailer at the end.
//!
//! ```text
//! file, version 2 and 3
//!   scanned   | data block ... with leaf index blocks and bloom chunks between them |
//!   not so    | meta block ... | intermediate index block ... |
//!   on open   | root data index | root meta index | file info | bloom meta ... |
//!   trailer   | "TRABLK\"$" | where all that is | version |
//!
//! data block  | header 33 | cell ... | checksums |
//! cell        | key length i32 | value length i32 | key | value | [tags length u16 | tag ...] | [sequence id VLong] |
//! key         | row length u16 | row | family length u8 | family | qualifier | timestamp i64 | type u8 |
//! tag         | length u16 | type u8 | bytes |
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`trailer`], [`proto`], [`file_info`] | where everything is; what the writer says of it |
//! | [`block`] | the header of a block, its type, its checksums |
//! | [`options`] | what the user says |
//!
//! `docs/formats/hfile.md` describes the format as real writers write it.

pub mod avro;
pub mod block;
pub mod file_info;
pub mod options;
pub mod proto;
pub mod trailer;
