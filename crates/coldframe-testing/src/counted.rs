//! A source that counts what is read, and stops who reads without end.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coldframe_core::{ReadAt, Result};

/// Bytes in memory; requests and bytes handed out are counted.
#[derive(Debug)]
pub struct Counted {
    bytes: Bytes,
    requests: AtomicU64,
    read: AtomicU64,
}

/// No reader of a file needs as many of its bytes, times this,
const TIMES: u64 = 256;
/// and this many more: beyond, it is taken for one that never ends.
const BESIDE: u64 = 1 << 30;

impl Counted {
    /// Nothing is read yet.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), requests: AtomicU64::new(0), read: AtomicU64::new(0) }
    }

    /// How often bytes were asked for.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many bytes were handed out.
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
