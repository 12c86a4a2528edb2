//! A source that records its reads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use coldframe_core::{ReadAt, Result};

/// Bytes in memory whose reads are recorded.
#[derive(Debug)]
pub struct Logged {
    bytes: Bytes,
    gap: u64,
    reads: Mutex<Vec<Vec<Range<u64>>>>,
}

impl Logged {
    /// A source for which reading a gap is never worthwhile.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self::with_gap(bytes, 0)
    }

    /// A source that prefers reading a gap of up to `gap` bytes to a second request.
    pub fn with_gap(bytes: impl Into<Bytes>, gap: u64) -> Self {
        Self { bytes: bytes.into(), gap, reads: Mutex::default() }
    }

    /// Takes the requests so far, each with its ranges.
    pub fn take(&self) -> Vec<Vec<Range<u64>>> {
        std::mem::take(&mut self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReadAt for Logged {
    fn len(&self) -> u64 {
        ReadAt::len(&self.bytes)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(ranges.to_vec());
        self.bytes.read_ranges(ranges)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.gap
    }
}
