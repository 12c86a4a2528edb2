//! Reads the head and the tail of a remote file with one request each, and keeps their bytes in memory.
//!
//! ```text
//! 0      16 KiB                             len - 64 KiB        len
//! ├── head ─┤            ...                      ├──── tail ────┤
//!   magic                                           footer, trailer
//! ```
//!
//! Opening a file reads its ends in small pieces: the magic, the trailer, then the footer. Since a request
//! takes as long as the transfer of a hundred kilobytes, reading each end with one request is faster.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_core::io::{Identity, Pending, check_range};
use coldframe_core::{Error, ReadAt, Result};

pub(crate) const HEAD: u64 = 16 << 10;
pub(crate) const TAIL: u64 = 64 << 10;

/// A file whose ends are requested once.
#[derive(Debug)]
pub(crate) struct Ends {
    file: Arc<dyn ReadAt>,
    url: Arc<str>,
    /// Bytes of the head and the tail that were read, with their offsets.
    kept: Mutex<Vec<(u64, Bytes)>>,
}

impl Ends {
    /// Wraps `file`. Errors call the file `url`. `ends`: bytes of its head and tail that are already known,
    /// with their offsets.
    pub(crate) fn new(file: Arc<dyn ReadAt>, url: &str, ends: Vec<(u64, Bytes)>) -> Self {
        Self { file, url: url.into(), kept: Mutex::new(ends) }
    }

    fn kept(&self) -> Vec<(u64, Bytes)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The head or tail that contains a range.
    fn end_of(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let len = self.file.len();
        if len <= HEAD + TAIL {
            return Some(0..len);
        }
        [0..HEAD, len - TAIL..len].into_iter().find(|end| end.start <= range.start && range.end <= end.end)
    }

    /// The ranges to request for `ranges`: for a range inside the head or tail, all of the head or tail.
    fn missing(&self, ranges: &[Range<u64>], kept: &[(u64, Bytes)]) -> Vec<Range<u64>> {
        let mut missing: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges.iter().filter(|r| r.start < r.end && find(kept, r).is_none()) {
            let wanted = self.end_of(range).unwrap_or_else(|| range.clone());
            if !missing.contains(&wanted) {
                missing.push(wanted);
            }
        }
        missing
    }

    /// Keeps those pieces that are a whole head or tail.
    fn keep(&self, read: &[(u64, Bytes)]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (start, bytes) in read {
            let range = *start..start + bytes.len() as u64;
            if self.end_of(&range) == Some(range) && kept.iter().all(|(other, _)| other != start) {
                kept.push((*start, bytes.clone()));
            }
        }
    }

    fn check(&self, ranges: &[Range<u64>]) -> Result<()> {
        ranges.iter().try_for_each(|range| check_range(range, self.file.len()))
    }
}

impl ReadAt for Ends {
    fn identity(&self) -> Identity {
        self.file.identity()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(ranges)?;
        let mut kept = self.kept();
        let missing = self.missing(ranges, &kept);
        if !missing.is_empty() {
            let bytes = self.file.read_ranges(&missing).map_err(|e| e.in_file(&*self.url))?;
            let read: Vec<_> = missing.into_iter().map(|r| r.start).zip(bytes).collect();
            self.keep(&read);
            kept.extend(read);
        }
        answer(ranges, &kept)
    }

    fn begin(&self, ranges: &[Range<u64>]) -> Option<Pending> {
        self.check(ranges).ok()?;
        let mut kept = self.kept();
        let missing = self.missing(ranges, &kept);
        let pending = if missing.is_empty() { None } else { Some(self.file.begin(&missing)?) };
        let (ranges, url) = (ranges.to_vec(), self.url.clone());
        Some(Box::new(move || {
            if let Some(pending) = pending {
                let bytes = pending().map_err(|e| e.in_file(&*url))?;
                kept.extend(missing.into_iter().map(|r| r.start).zip(bytes));
            }
            answer(&ranges, &kept)
        }))
    }

    fn worthwhile_gap(&self) -> u64 {
        self.file.worthwhile_gap()
    }
}

/// The bytes of `range`, taken from one of several pieces of the file.
fn find(pieces: &[(u64, Bytes)], range: &Range<u64>) -> Option<Bytes> {
    pieces.iter().find_map(|(start, bytes)| {
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
    })
}

fn answer(ranges: &[Range<u64>], pieces: &[(u64, Bytes)]) -> Result<Vec<Bytes>> {
    let of = |range: &Range<u64>| if range.is_empty() { Some(Bytes::new()) } else { find(pieces, range) };
    let missing = || Error::invalid("a store returned fewer ranges than requested");
    ranges.iter().map(|range| of(range).ok_or_else(missing)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts the requests that it gets.
    #[derive(Debug)]
    struct Counted(Bytes, Mutex<Vec<Range<u64>>>);

    impl ReadAt for Counted {
        fn len(&self) -> u64 {
            self.0.as_ref().len() as u64
        }

        fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
            self.1.lock().unwrap().extend_from_slice(ranges);
            self.0.read_ranges(ranges)
        }
    }

    fn file(len: u32) -> (Arc<Counted>, Bytes) {
        let bytes: Bytes = (0..len).map(|i| i.to_le_bytes()[usize::from(i % 2 == 0)]).collect();
        (Arc::new(Counted(bytes.clone(), Mutex::default())), bytes)
    }

    #[test]
    fn each_end_is_requested_once() {
        let (file, bytes) = file(300_000);
        let ends = Ends::new(file.clone(), "u", Vec::new());
        let len = u64::from(300_000u32);
        for _ in 0..2 {
            assert_eq!(ends.read_ranges(&[0..10, len - 10..len]).unwrap()[1], bytes.slice(299_990..));
            ends.read(len - 60_000..len - 50_000).unwrap();
        }
        assert_eq!(*file.1.lock().unwrap(), [0..HEAD, len - TAIL..len]);
        assert!(ends.read(len - 1..len + 1).is_err());
    }

    #[test]
    fn a_known_tail_is_not_requested() {
        let (file, bytes) = file(300_000);
        let ends = Ends::new(file.clone(), "u", vec![(299_000, bytes.slice(299_000..))]);
        assert_eq!(ends.read(299_500..299_501).unwrap(), bytes.slice(299_500..299_501));
        assert!(file.1.lock().unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn bytes_are_the_bytes_of_the_file(
            len in 0u32..200_000,
            asked in proptest::collection::vec((0u64..200_000, 0u64..90_000), 1..8),
        ) {
            let (file, bytes) = file(len);
            let ends = Ends::new(file, "u", Vec::new());
            let ranges: Vec<_> = asked
                .into_iter()
                .map(|(start, n)| (start.min(u64::from(len)), n))
                .map(|(start, n)| start..(start + n).min(u64::from(len)))
                .collect();
            prop_assert_eq!(ends.read_ranges(&ranges).unwrap(), bytes.read_ranges(&ranges).unwrap());
            for range in &ranges {
                prop_assert_eq!(ends.read(range.clone()).unwrap(), bytes.read(range.clone()).unwrap());
            }
        }
    }
}
