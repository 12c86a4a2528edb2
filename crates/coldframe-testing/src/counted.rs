//! A source that counts reads, and stops a reader that never ends.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coldframe_core::{ReadAt, Result};

/// Bytes in memory that count requests and bytes read.
#[derive(Debug)]
pub struct Counted {
    bytes: Bytes,
    requests: AtomicU64,
    read: AtomicU64,
}

/// A reader that reads more than this many times the file, plus `BESIDE`, is assumed never to end.
const TIMES: u64 = 256;
/// The number of bytes that a reader may read in addition.
const BESIDE: u64 = 1 << 30;

impl Counted {
    /// A source from which nothing has been read.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), requests: AtomicU64::new(0), read: AtomicU64::new(0) }
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The number of bytes returned.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        ReadAt::len(&self.bytes)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let answer = self.bytes.read_ranges(ranges)?;
        let now: u64 = answer.iter().map(|b| b.len() as u64).sum();
        let requests = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let read = self.read.fetch_add(now, Ordering::Relaxed) + now;
        let most = ReadAt::len(&self.bytes).saturating_mul(TIMES).saturating_add(BESIDE);
        assert!(
            read <= most && requests <= most / 16,
            "{read} bytes in {requests} requests of a file of {}",
            self.bytes.len()
        );
        Ok(answer)
    }
}
