//! Keeps the bytes read while opening a file, so that another process can open it without reading them again.
//!
//! A split travels to a Spark executor with the bytes that opening its file has read (header, footer,
//! indexes). There [`Recorded`] answers the same requests from memory. Formats are unaware of it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_encoding::Result;

use super::{Pending, ReadAt, memory::slice};

/// Maximum total of the recorded bytes that are sent with a split.
const MAX_BYTES: usize = 4 << 20;

/// Forwards requests and keeps the answers until [`Recording::stop`]. If they exceed the maximum, it drops
/// all of them.
#[derive(Debug)]
pub struct Recording {
    inner: Arc<dyn ReadAt>,
    kept: Mutex<Option<Kept>>,
}

/// Offset and bytes of each answer, and their total size.
#[derive(Debug, Default)]
struct Kept {
    answers: Vec<(u64, Bytes)>,
    bytes: usize,
}

impl Recording {
    /// Starts recording.
    pub fn new(inner: Arc<dyn ReadAt>) -> Self {
        Self { inner, kept: Mutex::new(Some(Kept::default())) }
    }

    /// Ends the recording and returns the offset and bytes of each answer; empty if the answers exceeded the
    /// maximum.
    pub fn stop(&self) -> Vec<(u64, Bytes)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.unwrap_or_default().answers
    }
}

impl ReadAt for Recording {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let answers = self.inner.read_ranges(ranges)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = kept.as_mut() {
            all.bytes = answers.iter().fold(all.bytes, |sum, bytes| sum.saturating_add(bytes.len()));
            if all.bytes > MAX_BYTES {
                *kept = None;
            } else {
                all.answers.extend(ranges.iter().map(|r| r.start).zip(answers.iter().cloned()));
            }
        }
        Ok(answers)
    }

    fn begin(&self, ranges: &[Range<u64>]) -> Option<Pending> {
        // A file is not read ahead before it is open, so there is nothing to record.
        self.inner.begin(ranges)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.inner.worthwhile_gap()
    }
}

/// Answers recorded requests from memory and forwards all other requests.
#[derive(Debug)]
pub struct Recorded {
    inner: Arc<dyn ReadAt>,
    kept: Vec<(u64, Bytes)>,
}

impl Recorded {
    /// Wraps `inner`. `kept` is what [`Recording::stop`] returned for the same file.
    pub fn new(inner: Arc<dyn ReadAt>, kept: Vec<(u64, Bytes)>) -> Self {
        Self { inner, kept }
    }

    fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        self.kept.iter().find_map(|(start, bytes)| {
            let end = start.checked_add(bytes.len() as u64)?;
            let inside = *start <= range.start && range.start <= range.end && range.end <= end;
            inside.then(|| slice(bytes, &(range.start - start..range.end - start)).ok())?
        })
    }
}

impl ReadAt for Recorded {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match ranges.iter().map(|r| self.find(r)).collect() {
            Some(all) => Ok(all),
            None => self.inner.read_ranges(ranges),
        }
    }

    fn begin(&self, ranges: &[Range<u64>]) -> Option<Pending> {
        match ranges.iter().map(|r| self.find(r)).collect::<Option<Vec<Bytes>>>() {
            Some(all) => Some(Box::new(|| Ok(all))),
            None => self.inner.begin(ranges),
        }
    }

    fn worthwhile_gap(&self) -> u64 {
        self.inner.worthwhile_gap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_bytes_are_not_read_again() {
        let bytes = Bytes::from_static(b"0123456789");
        let recording = Recording::new(Arc::new(bytes.clone()));
        recording.read(2..6).unwrap();
        let kept = recording.stop();
        recording.read(7..9).unwrap();
        assert_eq!(kept, [(2, Bytes::from_static(b"2345"))]);
        // A source with different bytes shows which answers come from the recording.
        let other = Recorded::new(Arc::new(Bytes::from_static(b"xxxxxxxxxx")), kept);
        assert_eq!(other.read(3..5).unwrap().as_ref(), b"34");
        assert_eq!(other.read(5..7).unwrap().as_ref(), b"xx");
    }

    /// A source that allocates new bytes for each answer, as a file does.
    #[derive(Debug)]
    struct Zeros(u64);

    impl ReadAt for Zeros {
        fn len(&self) -> u64 {
            self.0
        }

        fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
            Ok(ranges
                .iter()
                .map(|r| Bytes::from(vec![0; usize::try_from(r.end - r.start).unwrap()]))
                .collect())
        }
    }

    #[test]
    fn a_recording_that_grows_too_large_is_dropped() {
        let recording = Recording::new(Arc::new(Zeros(1 << 30)));
        let first = recording.read(0..1 << 20).unwrap();
        assert!(!first.is_unique());
        recording.read(0..4 << 20).unwrap();
        assert!(first.is_unique());
        assert!(recording.read(0..1).unwrap().is_unique());
        assert!(recording.stop().is_empty());
    }
}
