//! Bytes to plain structs: container files and the messages in them.

pub(crate) mod container;
pub(crate) mod proto;
mod shapes;
