//! Parses the bytes of a file's parts into plain structs.
//!
//! | module | holds |
//! |---|---|
//! | [`trailer`], [`proto`], [`file_info`] | the trailer; protobuf messages; the writer's metadata |
//! | [`block`], [`context`], [`content`] | the header of a block, its type, its checksums; its content once decrypted and decompressed |
//! | [`codec`] | codecs by their ordinals; decryption of compressed data |
//! | [`cell`], [`kinds`], [`encoding`] | cells in plain form and their types; the data block encodings |
//! | [`index`], [`order`], [`key_prefixes`] | index blocks; the order of rows; searches in sorted rows |

pub(crate) mod block;
pub(crate) mod cell;
pub(crate) mod codec;
pub(crate) mod content;
pub(crate) mod context;
pub(crate) mod encoding;
pub mod file_info;
pub(crate) mod index;
pub(crate) mod key_prefixes;
pub mod kinds;
pub(crate) mod order;
pub(crate) mod proto;
pub(crate) mod trailer;
