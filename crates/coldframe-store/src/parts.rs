//! Reads long ranges in parallel parts: a single connection seldom uses all of the bandwidth, and the blocks
//! of a file are on several machines.

use std::future::Future;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use coldframe_core::{Error, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};

/// Reads all `ranges` with `read`, in requests of at most `part` bytes; `at_once` requests are in flight at a
/// time.
pub(crate) async fn gather<F: Future<Output = Result<Bytes>> + Send>(
    ranges: Vec<Range<u64>>,
    part: u64,
    at_once: usize,
    read: impl FnMut(Range<u64>) -> F + Send,
) -> Result<Vec<Bytes>> {
    let parts: Vec<Vec<Range<u64>>> = ranges.iter().map(|range| divide(range, part)).collect();
    let requests: Vec<F> = parts.iter().flatten().cloned().map(read).collect();
    let mut answers = stream::iter(requests).buffered(at_once);
    let mut all = Vec::with_capacity(ranges.len());
    for parts in &parts {
        let mut whole = Vec::with_capacity(parts.len());
        for _ in parts {
            whole.push(
                answers.try_next().await?.ok_or_else(|| Error::invalid("fewer answers than requests"))?,
            );
        }
        all.push(joined(whole));
    }
    Ok(all)
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() < 2 {
        return parts.pop().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    whole.freeze()
}

fn divide(range: &Range<u64>, part: u64) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start.saturating_add(part));
        parts.push(start..end);
        start = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::wait;

    #[test]
    fn ranges_are_returned_whole_and_in_order() {
        let bytes: Bytes = (0..100u8).collect();
        let longest = std::sync::Mutex::new(0);
        let read = |range: Range<u64>| {
            let (start, end) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
            let mut longest = longest.lock().unwrap();
            *longest = (*longest).max(end - start);
            let part = bytes.slice(start..end);
            async move { Ok(part) }
        };
        let ranges = vec![90..100, 5..5, 0..35, 40..50];
        let blocks = wait(gather(ranges, 10, 3, read)).unwrap().unwrap();
        assert_eq!(blocks, [bytes.slice(90..), Bytes::new(), bytes.slice(..35), bytes.slice(40..50)]);
        assert_eq!(*longest.lock().unwrap(), 10);
    }
}
