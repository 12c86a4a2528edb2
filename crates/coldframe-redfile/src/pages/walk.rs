//! Walks the pages of a column chunk.
//!
//! ```text
//! chunk | page header | page | page header | page | ...
//! ```
//!
//! The chunk ends when its pages have as many values as its metadata states; the lengths in the metadata are
//! not reliable.

use std::ops::Range;

use bytes::Bytes;
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

/// Goes from page to page.
#[derive(Clone, Debug)]
pub(crate) struct PageWalk {
    bytes: Bytes,
    offset: u64,
    values_left: u64,
    number: usize,
    limits: Limits,
}

impl PageWalk {
    /// Walks the pages at the start of `bytes`, until they have `values` values in total. The bytes are at
    /// `offset` in the file.
    pub(crate) fn new(bytes: Bytes, offset: u64, values: u64, limits: Limits) -> Self {
        Self { bytes, offset, values_left: values, number: 0, limits }
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
            let header = self.peek()?;
            let (start, number) = (self.offset, self.number);
            let end = header.len.saturating_add(header.compressed);
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
