//! Kudu: CFiles and whole tablets from a data directory, straight into Arrow.
//!
//! ```text
//! CFile | header | data block, index block ... | index blocks | [dictionary block] | footer |
//! ```

pub mod block;
pub mod column;
pub mod encoding;
pub mod footer;
pub mod index;
pub mod proto;
pub mod reader;
pub mod types;
