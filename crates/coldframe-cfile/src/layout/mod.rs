//! Parses bytes into plain structs: header and footer, blocks, index blocks, bloom blocks, entries of delta
//! files.

pub mod block;
pub mod bloom;
pub mod delta;
pub mod footer;
pub(crate) mod index;
pub mod proto;
pub mod types;
