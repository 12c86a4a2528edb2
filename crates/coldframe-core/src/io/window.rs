//! Buffers small sequential reads of a source in windows of a chosen size.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_encoding::Result;

use super::{ReadAt, check_range, memory::slice};

/// Answers small, roughly ascending reads from one window of the file at a time. A walk over a file's headers
/// then costs one request per window instead of one per header.
#[derive(Debug)]
pub struct Window {
    source: Arc<dyn ReadAt>,
    size: u64,
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// Windows of `size` bytes over `source`.
    pub fn new(source: Arc<dyn ReadAt>, size: u64) -> Self {
        Self { source, size, start: 0, bytes: Bytes::new() }
    }

    /// Length of the file.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Exactly the bytes of `range`.
    pub fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        check_range(&range, self.source.len())?;
        if let Some(bytes) = self.held(&range) {
            return Ok(bytes);
        }
        let end = range.start.saturating_add(self.size).max(range.end).min(self.source.len());
        self.bytes = self.source.read(range.start..end)?;
        self.start = range.start;
        slice(&self.bytes, &(0..range.end - range.start))
    }

    /// The bytes of `range` if they are available without a request.
    pub fn held(&self, range: &Range<u64>) -> Option<Bytes> {
        let end = self.start + self.bytes.len() as u64;
        let inside = self.start <= range.start && range.start <= range.end && range.end <= end;
        inside.then(|| slice(&self.bytes, &(range.start - self.start..range.end - self.start)).ok())?
    }

    /// At most `most` bytes from `start` on; fewer only if the file ends before.
    pub fn read_up_to(&mut self, start: u64, most: u64) -> Result<Bytes> {
        let start = start.min(self.source.len());
        let end = start.saturating_add(most).min(self.source.len());
        self.read(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_answers_reads_of_bytes_that_it_holds() {
        let bytes = Bytes::from((0..100u8).collect::<Vec<_>>());
        let mut w = Window::new(Arc::new(bytes), 10);
        assert_eq!(w.read(5..8).unwrap().as_ref(), [5, 6, 7]);
        assert_eq!(w.held(&(12..15)).unwrap().as_ref(), [12, 13, 14]);
        assert_eq!(w.held(&(12..16)), None);
        assert_eq!(w.read(3..30).unwrap().len(), 27);
        assert_eq!(w.read_up_to(95, 50).unwrap().len(), 5);
        assert!(w.read(95..101).is_err());
    }
}
