//! Walks the pages of a file whose footer is lost.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Window;
use coldframe_core::{Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::footer::MAGIC;
use crate::layout::metadata::ColumnMetaData;
use crate::layout::page::{DATA_PAGE, DataPage, PageHeader};
use crate::layout::thrift::Reader;

/// How many bytes are read to parse a page header or a chunk's metadata.
const GUESS: u64 = 1024;
/// How many bytes are read at a time.
const WINDOW: u64 = 256 << 10;
/// How many bytes are searched at a time.
const SEARCH: u64 = 4096;

/// A data page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedPage {
    /// The range of the page's header and bytes.
    pub(super) place: Range<u64>,
    /// The page's header.
    pub(super) header: PageHeader,
    /// What the header states about the page's values.
    pub(super) data: DataPage,
}

impl LocatedPage {
    /// The range of the page's bytes without the header.
    pub(super) fn body(&self) -> Range<u64> {
        self.place.start + self.header.len as u64..self.place.end
    }
}

/// Pages that follow each other without a gap.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// Whether the pages are preceded by `RED1`. If so, the pages are one row group.
    pub(super) marked: bool,
    /// The pages.
    pub(super) pages: Vec<LocatedPage>,
    /// The pages after which there is the metadata of their chunk.
    pub(super) chunk_ends: Vec<usize>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The pages.
    pub(super) segments: Vec<Segment>,
    /// Intact bytes other than pages: markers, metadata after a chunk.
    pub(super) other: Vec<Range<u64>>,
}

/// Walks the pages from the file's start. After bytes that are no page, continues at the next marker, if the
/// file has markers.
pub(super) fn walk(source: &Arc<dyn ReadAt>, limits: &Limits) -> Result<Walked> {
    let len = source.len();
    let mut window = Window::new(source.clone(), WINDOW);
    let mut walked = Walked::default();
    let mut segment = Segment::default();
    // The maximum number of bytes that failed attempts to parse a page or metadata may read in total.
    let mut budget = len.saturating_mul(4).saturating_add(1 << 20);
    let mut marks = false;
    let mut at = MAGIC.len() as u64;
    while at < len && budget > 0 {
        let bytes = window.read_up_to(at, GUESS.min(len - at))?;
        if bytes.starts_with(MAGIC) {
            walked.end_segment(&mut segment);
            segment.marked = true;
            marks |= at == MAGIC.len() as u64;
            walked.add_other(at..at + MAGIC.len() as u64);
            at += MAGIC.len() as u64;
            continue;
        }
        let mut reader = Reader::new(&bytes, at, limits);
        if let Some((page, end)) = page(&mut reader, at, len) {
            segment.pages.extend(page);
            at = end;
            continue;
        }
        budget = budget.saturating_sub(reader.offset() - at);
        if !segment.pages.is_empty() {
            let mut reader = Reader::new(&bytes, at, limits);
            if ColumnMetaData::decode(&mut reader).is_ok() {
                segment.chunk_ends.push(segment.pages.len());
                walked.add_other(at..reader.offset());
                at = reader.offset();
                continue;
            }
            budget = budget.saturating_sub(reader.offset() - at);
        }
        match if marks { next_marker(&mut window, at)? } else { None } {
            Some(marker) => at = marker,
            None => break,
        }
    }
    walked.end_segment(&mut segment);
    Ok(walked)
}

impl Walked {
    fn end_segment(&mut self, segment: &mut Segment) {
        let ended = std::mem::take(segment);
        if !ended.pages.is_empty() {
            self.segments.push(ended);
        }
    }

    /// Adds intact bytes; adjacent ranges become one range.
    fn add_other(&mut self, range: Range<u64>) {
        match self.other.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.other.push(range),
        }
    }
}

/// Reads a page at `at`; returns it and its end. The inner `None` means a page without values.
fn page(reader: &mut Reader<'_>, at: u64, len: u64) -> Option<(Option<LocatedPage>, u64)> {
    let header = PageHeader::decode(reader).ok()?;
    let end = at.checked_add(header.len as u64)?.checked_add(header.compressed as u64)?;
    if end > len || (header.page_type == DATA_PAGE) != header.data.is_some() {
        return None;
    }
    let page = header.data.map(|data| LocatedPage { place: at..end, header, data });
    Some((page, end))
}

/// The offset of the next `RED1` after `from`.
fn next_marker(window: &mut Window, from: u64) -> Result<Option<u64>> {
    let len = window.len();
    let mut at = from;
    while at + MAGIC.len() as u64 <= len {
        // Few bytes are searched at a time, from what has already been read, because markers may be close
        // together.
        let end = at.saturating_add(SEARCH).min(len);
        let bytes = window.read(at..end)?;
        if let Some(place) = memmem::find(&bytes, MAGIC) {
            return Ok(Some(at + place as u64));
        }
        if end == len {
            break;
        }
        // A marker that lies across the border is detected by the next search.
        at = end - (MAGIC.len() as u64 - 1);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use coldframe_testing::Logged;

    use super::*;

    fn bytes_read(bytes: Vec<u8>) -> (Walked, u64) {
        let log = Arc::new(Logged::new(bytes));
        let source: Arc<dyn ReadAt> = log.clone();
        let walked = walk(&source, &Limits::default()).unwrap();
        (walked, log.take().into_iter().flatten().map(|r| r.end - r.start).sum())
    }

    #[test]
    fn adjacent_markers_are_one_range() {
        let (walked, read) = bytes_read(b"RED1".repeat(1 << 20));
        let [other] = walked.other.as_slice() else { panic!("{:?}", walked.other) };
        assert_eq!((walked.segments.len(), other), (0, &(4..4 << 20)));
        assert!(read < 6 << 20, "{read}");
    }

    /// The byte after each marker is not a page: so each time the next marker is searched for.
    #[test]
    fn a_search_for_each_marker_reads_the_file_once() {
        let (walked, read) = bytes_read([&b"RED1"[..], &b"RED1\xff".repeat(1 << 18)].concat());
        assert!(walked.segments.is_empty());
        assert!(read < 3 << 20, "{read}");
    }
}
