//! The pages of a file, one behind the other, without a footer that says where they are.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Window;
use coldframe_core::{Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::footer::MAGIC;
use crate::layout::metadata::ColumnMetaData;
use crate::layout::page::{DATA_PAGE, DataPage, PageHeader};
use crate::layout::thrift::Reader;

/// What a page's header, or a chunk's metadata, is read from.
const GUESS: u64 = 1024;
/// How much is read at once.
const WINDOW: u64 = 256 << 10;
/// How much is searched at once.
const SEARCH: u64 = 1 << 20;

/// A data page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Header and bytes.
    pub(super) place: Range<u64>,
    /// Its header.
    pub(super) header: PageHeader,
    /// What that says of its values.
    pub(super) data: DataPage,
}

impl Found {
    /// Its bytes without the header.
    pub(super) fn body(&self) -> Range<u64> {
        self.place.start + self.header.len as u64..self.place.end
    }
}

/// Pages without a gap.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// Whether `RED1` stands before them: they are one row group then.
    pub(super) marked: bool,
    /// The pages.
    pub(super) pages: Vec<Found>,
    /// Pages behind which the metadata of their chunk stands.
    pub(super) chunk_ends: Vec<usize>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Pages.
    pub(super) segments: Vec<Segment>,
    /// What is none, and whole all the same: markers, metadata behind a chunk.
    pub(super) other: Vec<Range<u64>>,
}

/// Walks the pages from the file's start. Behind what is none, the next marker is looked for in a file that has them.
pub(super) fn walk(source: &Arc<dyn ReadAt>, limits: &Limits) -> Result<Walked> {
    let len = source.len();
    let mut window = Window::new(source.clone(), WINDOW);
    let (mut segments, mut other) = (Vec::new(), Vec::new());
    let mut segment = Segment::default();
    let mut marks = false;
    let mut at = MAGIC.len() as u64;
    while at < len {
        let bytes = window.read_up_to(at, GUESS.min(len - at))?;
        if bytes.starts_with(MAGIC) {
            segments.push(std::mem::replace(&mut segment, Segment { marked: true, ..Segment::default() }));
            marks |= at == MAGIC.len() as u64;
            other.push(at..at + MAGIC.len() as u64);
            at += MAGIC.len() as u64;
            continue;
        }
        if let Some((page, end)) = page(&bytes, at, len, limits) {
            segment.pages.extend(page);
            at = end;
            continue;
        }
        let mut reader = Reader::new(&bytes, at, limits);
        if ColumnMetaData::decode(&mut reader).is_ok() && !segment.pages.is_empty() {
            segment.chunk_ends.push(segment.pages.len());
            other.push(at..reader.offset());
            at = reader.offset();
            continue;
        }
        match if marks { next_marker(source.as_ref(), at)? } else { None } {
            Some(marker) => at = marker,
            None => break,
        }
    }
    segments.push(segment);
    segments.retain(|s| !s.pages.is_empty());
    Ok(Walked { segments, other })
}

/// A page at `at` and where it ends; `None` inside for one without values.
fn page(bytes: &[u8], at: u64, len: u64, limits: &Limits) -> Option<(Option<Found>, u64)> {
    let header = PageHeader::parse(bytes, at, limits).ok()?;
    let end = at.checked_add(header.len as u64)?.checked_add(header.compressed as u64)?;
    if end > len || (header.page_type == DATA_PAGE) != header.data.is_some() {
        return None;
    }
    let page = header.data.map(|data| Found { place: at..end, header, data });
    Some((page, end))
}

/// Where the next `RED1` behind `from` stands.
fn next_marker(source: &dyn ReadAt, from: u64) -> Result<Option<u64>> {
    let len = source.len();
    let mut at = from;
    while at < len {
        let end = at.saturating_add(SEARCH).min(len);
        let bytes = source.read(at..end)?;
        if let Some(place) = memmem::find(&bytes, MAGIC) {
            return Ok(Some(at + place as u64));
        }
        if end == len {
            break;
        }
        // One across the border is seen by the next search.
        at = end - (MAGIC.len() as u64 - 1);
    }
    Ok(None)
}
