//! Walks the pages of a column chunk.
//!
//! ```text
//! chunk | page header | page | page header | page | ...
//! ```
//!
//! The chunk ends when its pages have as many values as its metadata states; the lengths in the metadata are
//! not reliable.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use coldframe_core::ReadAt;
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Limits, Result};

use crate::layout::page::{DATA_PAGE, DataPage, PageHeader};

/// A data page of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The number of the page among the chunk's data pages.
    pub(crate) number: usize,
    /// The range of the page's header and bytes in the file.
    pub(crate) place: Range<u64>,
    /// The page's header.
    pub(crate) header: PageHeader,
    /// What the header states about the page's values.
    pub(crate) data: DataPage,
    /// The page's bytes as stored.
    pub(crate) stored: Bytes,
}

/// More bytes than the header of a page takes.
const HEADER: usize = 1 << 16;

/// The part of a chunk that is read later.
#[derive(Clone, Debug)]
struct Unread {
    source: Arc<dyn ReadAt>,
    range: Range<u64>,
    /// How many bytes are read at once.
    window: u64,
}

/// Goes from page to page.
#[derive(Clone, Debug)]
pub(crate) struct PageWalk {
    bytes: Bytes,
    /// The bytes after `bytes`; `None` if all are there.
    unread: Option<Unread>,
    offset: u64,
    values_left: u64,
    number: usize,
    limits: Limits,
}

impl PageWalk {
    /// Walks the pages at the start of `bytes`, until they have `values` values in total. The bytes are at
    /// `offset` in the file.
    pub(crate) fn new(bytes: Bytes, offset: u64, values: u64, limits: Limits) -> Self {
        Self { bytes, unread: None, offset, values_left: values, number: 0, limits }
    }

    /// Walks the pages of a chunk at `range` of a file, and reads about `window` bytes at a time.
    pub(crate) fn windowed(
        source: Arc<dyn ReadAt>,
        range: Range<u64>,
        window: u64,
        values: u64,
        limits: Limits,
    ) -> Self {
        let offset = range.start;
        let end = range.end.min(source.len()).max(offset);
        let unread = Some(Unread { source, range: offset..end, window: window.max(1) });
        Self { bytes: Bytes::new(), unread, offset, values_left: values, number: 0, limits }
    }

    /// Reads until `bytes` has `len` bytes, or all that are left.
    fn fill(&mut self, len: usize) -> Result<()> {
        let Some(Unread { source, range, window }) = &mut self.unread else { return Ok(()) };
        let missing = len.saturating_sub(self.bytes.len()) as u64;
        let left = range.end - range.start;
        if missing == 0 || left == 0 {
            return Ok(());
        }
        let at = range.start;
        range.start += missing.max(*window).min(left);
        let more = source.read(at..range.start)?;
        self.bytes = if self.bytes.is_empty() {
            more
        } else {
            let mut joined = BytesMut::with_capacity(self.bytes.len().saturating_add(more.len()));
            joined.extend_from_slice(&self.bytes);
            joined.extend_from_slice(&more);
            joined.freeze()
        };
        Ok(())
    }

    /// The offset at which the header of the next page is expected.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The header of the next page of any type; does not advance.
    pub(crate) fn peek(&self) -> Result<PageHeader> {
        PageHeader::parse(&self.bytes, self.offset, &self.limits).within(|| format!("page {}", self.number))
    }

    /// The next data page; `None` after the last page.
    pub(crate) fn next_page(&mut self) -> Result<Option<Page>> {
        while self.values_left > 0 {
            self.fill(HEADER)?;
            let header = self.peek()?;
            let (start, number) = (self.offset, self.number);
            let end = header.len.saturating_add(header.compressed);
            self.fill(end)?;
            if end > self.bytes.len() {
                let left = self.bytes.len() - header.len;
                let message = format!("expected a page of {} bytes, found {left}", header.compressed);
                return Err(Error::corrupt(message).at(start).within(format!("page {number}")));
            }
            if header.page_type != DATA_PAGE && header.data.is_some() {
                let message =
                    format!("expected a data page, found one of type {} with values", header.page_type);
                return Err(Error::corrupt(message).at(start).within(format!("page {number}")));
            }
            let data = header.data;
            if let Some(data) = data {
                let n = data.num_values as u64;
                self.values_left = self.values_left.checked_sub(n).ok_or_else(|| {
                    let message =
                        format!("expected a page of at most {} values, found {n}", self.values_left);
                    Error::corrupt(message).at(start).within(format!("page {number}"))
                })?;
            }
            let stored = self.bytes.split_to(end).slice(header.len..);
            self.offset += end as u64;
            if let Some(data) = data {
                self.number += 1;
                let place = start..self.offset;
                return Ok(Some(Page { number, place, header, data, stored }));
            }
        }
        Ok(None)
    }
}
