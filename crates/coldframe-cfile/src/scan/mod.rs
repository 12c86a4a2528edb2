//! Decodes blocks to Arrow: a column, a table of its values, and the entries of delta files and the keys of
//! indexes.

pub mod column;
pub(crate) mod context;
pub(crate) mod decode;
pub(crate) mod delta;
pub(crate) mod plan;
pub mod reader;
