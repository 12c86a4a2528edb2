//! Kudu: CFiles and whole tablets from a data directory, straight into Arrow.
//!
//! ```text
//! CFile | header | data block, index block ... | index blocks | [dictionary block] | footer |
//! ```

pub mod block;
pub mod bloom;
pub mod column;
pub mod decode;
pub mod delta;
pub mod encoding;
pub mod file;
pub mod footer;
pub mod format;
pub mod index;
mod inspect;
pub mod key;
pub mod kudu;
mod metadata;
pub mod options;
pub mod plan;
pub mod proto;
pub mod reader;
pub mod types;
pub mod write;

pub use file::CFileTable;
pub use format::CFileFormat;
