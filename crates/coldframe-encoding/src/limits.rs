//! Limits on what a file may make a reader allocate or visit.
//!
//! A length in a file may be wrong. Before memory is allocated for it, it is compared with the bytes that
//! exist (by [`crate::Cursor`], or by the maximum expansion of a codec) and with these bounds, which the user
//! can raise with the option of the same name.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the decoded size of a protobuf message, computed before decoding |
//! | [`walk`] | a budget for walks that follow pointers |

pub mod message;
pub mod walk;

pub use walk::Walk;

use crate::{Error, ErrorKind, Result};

/// Upper bounds on the sizes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `max_block_bytes`: largest single block, column chunk or page after decompression. Default 1 GiB.
    pub max_block_bytes: u64,
    /// `max_columns`: largest number of columns (leaves) of a file. Default 100,000.
    pub max_columns: u64,
    /// `max_depth`: deepest nesting of a type tree, an index or a message. Default 64.
    pub max_depth: u64,
    /// `max_metadata_bytes`: largest header, footer, index block or key buffer after decompression. Default
    /// 256 MiB.
    pub max_metadata_bytes: u64,
    /// `max_unit_rows`: largest number of rows of one row group, stripe or block. A run of empty values takes
    /// no bytes in the file, so nothing else limits its decoded size. Default 2^24.
    pub max_unit_rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_block_bytes: 1 << 30,
            max_columns: 100_000,
            max_depth: 64,
            max_metadata_bytes: 256 << 20,
            max_unit_rows: 1 << 24,
        }
    }
}

impl Limits {
    /// Returns `asked`, a number of decompressed bytes, as a `usize`, or an error that names the option.
    pub fn block(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_block_bytes, "max_block_bytes")
    }

    /// Returns `asked`, a number of bytes of metadata, as a `usize`, or an error that names the option.
    pub fn metadata(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_metadata_bytes, "max_metadata_bytes")
    }

    /// An error if `asked` bytes, the size of decoded metadata, are too many for a file of `file_len` bytes.
    /// A two-byte message can decode to a struct a hundred times as large. The maximum is three times
    /// the file's length, plus an eighth of `max_metadata_bytes` for short files.
    pub fn decoded(&self, what: &'static str, asked: u64, file_len: u64) -> Result<()> {
        let limit = (self.max_metadata_bytes / 8).saturating_add(file_len.saturating_mul(3));
        bounded(what, asked, limit, "max_metadata_bytes").map(drop)
    }

    /// Returns `asked`, a number of columns, as a `usize`, or an error that names the option.
    pub fn columns(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_columns, "max_columns")
    }

    /// Returns `asked`, a number of rows of one unit, as a `usize`, or an error that names the option.
    pub fn unit_rows(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_unit_rows, "max_unit_rows")
    }

    /// Returns `asked`, a number of levels of nesting, as a `usize`, or an error that names the option.
    pub fn depth(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_depth, "max_depth")
    }
}

fn bounded(what: &'static str, asked: u64, limit: u64, option: &'static str) -> Result<usize> {
    match usize::try_from(asked) {
        Ok(n) if asked <= limit => Ok(n),
        _ => Err(Error::new(ErrorKind::LimitExceeded { what, asked, limit, option })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_limit_names_its_option() {
        let limits = Limits { max_depth: 2, ..Limits::default() };
        assert_eq!(limits.depth("type tree", 2).unwrap(), 2);
        let e = limits.depth("type tree", 3).unwrap_err();
        assert_eq!(e.to_string(), "type tree asks for 3, more than the limit of 2 (option `max_depth`)");
    }
}
