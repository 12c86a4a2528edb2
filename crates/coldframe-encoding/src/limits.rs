//! Limits on what a file may make a reader allocate or visit.
//!
//! A length in a file may be wrong. Before memory is allocated, the length is compared with the bytes that
//! exist (by [`crate::Cursor`], or by the maximum expansion of a codec). It is also compared with these
//! bounds, which the user can raise with the option of the same name.
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
    /// `max_depth`: deepest nesting of a type tree, an index or a message. Default 128.
    pub max_depth: u64,
    /// `max_metadata_bytes`: largest header, footer, index block or key buffer after decompression. Default
    /// 256 MiB.
    pub max_metadata_bytes: u64,
    /// `max_unit_rows`: maximum number of rows of one row group, stripe or block. The default is 2^24 for rows
    /// that take no bytes of the file, such as a run of empty values. For rows that take bytes, batches limit
    /// the memory, and the default is 2^31.
    pub max_unit_rows: Option<u64>,
    /// The share of one thread in `memory_limit`, the decoded bytes that one read may hold. Batches are cut to
    /// stay below it; nothing is refused. Default 1 GiB.
    pub memory_limit: u64,
}

/// The default maximum number of rows that take memory, but no bytes of the file.
pub const UNBACKED_ROWS: u64 = 1 << 24;

/// Most rows of no bytes that a reader decodes by default, a batch at a time.
pub const COUNTED_ROWS: u64 = 1 << 27;

/// The part of [`Limits::memory_limit`] that one batch may take. The rest is for the batch that the caller
/// still holds, for the batches that wait for it, and for the blocks from which they are decoded.
const BATCHES: u64 = 8;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_block_bytes: 1 << 30,
            max_columns: 100_000,
            max_depth: 128,
            max_metadata_bytes: 256 << 20,
            max_unit_rows: None,
            memory_limit: 1 << 30,
        }
    }
}

impl Limits {
    /// Returns `asked`, a number of decompressed bytes, as a `usize`, or an error that names the option.
    pub fn block(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_block_bytes, "max_block_bytes")
    }

    /// Like [`Self::block`] for a size that the file states. `most` is what the stored bytes can decompress
    /// to: a larger size is damage, and not a matter of limits.
    pub fn unpacked(&self, what: &'static str, asked: u64, most: u64) -> Result<usize> {
        if asked > most {
            return Err(Error::corrupt(format!("expected {what} of at most {most} bytes, found {asked}")));
        }
        self.block(what, asked)
    }

    /// The largest size of a batch of several rows in bytes, by [`Self::memory_limit`].
    pub fn batch_bytes(&self) -> u64 {
        (self.memory_limit / BATCHES).clamp(1, i32::MAX.unsigned_abs().into())
    }

    /// Fails if `rows` rows of `what` exceed [`Self::batch_bytes`], or a single row exceeds 32-bit offsets. The
    /// caller then reads fewer rows.
    pub fn check_batch(&self, what: &'static str, rows: usize, bytes: u64) -> Result<()> {
        let most = if rows > 1 { self.batch_bytes() } else { i32::MAX.unsigned_abs().into() };
        if bytes <= most { Ok(()) } else { Err(Error::batch_too_long(what, bytes)) }
    }

    /// `asked` bytes of metadata as a `usize`, or an error that names the option.
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

    /// The maximum number of rows of a unit whose length does not limit the rows, for example with cells of
    /// no bytes.
    pub fn max_unbacked_rows(&self) -> u64 {
        self.max_unit_rows.unwrap_or(UNBACKED_ROWS)
    }

    /// Returns `asked`, a number of rows that the unit's length does not bound, as a `usize`, or an error that
    /// names the option.
    pub fn unit_rows(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_unbacked_rows(), "max_unit_rows")
    }

    /// Like [`Self::unit_rows`], for rows of no bytes that the unit counts more than once, and that are decoded a
    /// batch at a time: only the time that they take is bounded.
    pub fn counted_rows(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_unit_rows.unwrap_or(COUNTED_ROWS), "max_unit_rows")
    }

    /// Like [`Self::unit_rows`], for rows each of which takes bytes of the unit.
    pub fn backed_rows(&self, what: &'static str, asked: u64) -> Result<usize> {
        bounded(what, asked, self.max_unit_rows.unwrap_or(1 << 31), "max_unit_rows")
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
        assert!(e.to_string().starts_with("type tree asks for 3, more than the limit of 2; "), "{e}");
        assert!(e.to_string().ends_with("by the option `max_depth`"), "{e}");
        assert!(e.is_limit() && e.is_confined() && !e.is_damage());
    }

    #[test]
    fn a_size_beyond_what_bytes_can_unpack_to_is_damage() {
        let limits = Limits { max_block_bytes: 100, ..Limits::default() };
        assert_eq!(limits.unpacked("a block", 100, 1000).unwrap(), 100);
        assert!(limits.unpacked("a block", 101, 1000).unwrap_err().is_limit());
        assert!(limits.unpacked("a block", 1001, 1000).unwrap_err().is_damage());
    }

    #[test]
    fn batches_shrink_with_the_memory() {
        let batch = |memory_limit| Limits { memory_limit, ..Limits::default() }.batch_bytes();
        assert_eq!([batch(1 << 30), batch(80), batch(0)], [128 << 20, 10, 1]);
    }
}
