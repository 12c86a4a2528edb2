//! Parses bytes into plain structs: container files and the messages in them.

pub(crate) mod container;
pub(crate) mod log;
pub(crate) mod operations;
pub(crate) mod proto;
mod shapes;
