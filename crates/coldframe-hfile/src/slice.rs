//! A part of a source as a source: HFiles lie inside Hudi's log files.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::check_range;
use coldframe_core::{ReadAt, Result};

/// The bytes `range` of a source. Offsets count from its start.
#[derive(Debug)]
pub struct Slice {
    source: Arc<dyn ReadAt>,
    range: Range<u64>,
}

impl Slice {
    /// The part `range` of `source`, which must lie inside.
    pub fn new(source: Arc<dyn ReadAt>, range: Range<u64>) -> Result<Arc<dyn ReadAt>> {
        check_range(&range, source.len())?;
        Ok(Arc::new(Self { source, range }))
    }
}

impl ReadAt for Slice {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut outer = Vec::with_capacity(ranges.len());
        for range in ranges {
            check_range(range, self.len())?;
            outer.push(self.range.start + range.start..self.range.start + range.end);
        }
        self.source.read_ranges(&outer)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.source.worthwhile_gap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_from_the_start_of_the_part() {
        let part = Slice::new(Arc::new(Bytes::from_static(b"0123456789")), 3..7).unwrap();
        assert_eq!((part.len(), part.read(1..3).unwrap().as_ref()), (4, b"45".as_slice()));
        assert!(part.read(2..5).is_err());
        assert!(Slice::new(Arc::new(Bytes::from_static(b"0123")), 3..7).is_err());
    }
}
