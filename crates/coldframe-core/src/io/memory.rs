//! Bytes in memory.

use std::ops::Range;

use bytes::Bytes;
use coldframe_encoding::Result;

use super::{ReadAt, check_range};

impl ReadAt for Bytes {
    fn len(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|r| slice(self, r)).collect()
    }

    fn worthwhile_gap(&self) -> u64 {
        0
    }
}

/// `range` of `bytes`, without a copy.
pub(super) fn slice(bytes: &Bytes, range: &Range<u64>) -> Result<Bytes> {
    check_range(range, bytes.as_ref().len() as u64)?;
    // Both ends are at most `bytes.len()`, so they fit a usize.
    let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
    Ok(bytes.slice(start.unwrap_or(0)..end.unwrap_or(0)))
}
