//! Visits the first pages of a chunk without fetching all of it.

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::Result;
use coldframe_core::io::Window;
use coldframe_encoding::codec::Decompressor;

use super::chunk::ChunkContext;
use super::walk::Page;
use crate::layout::page::{DATA_PAGE, PageHeader};

/// How many bytes are read to parse a page header.
const HEADER_GUESS: u64 = 1024;
/// How many bytes are read at a time when pages are visited one after another, including the pages of many
/// short chunks.
pub(crate) const WINDOW: u64 = 64 << 10;

/// Where the pages of a chunk are.
pub(crate) struct ChunkPlace {
    /// The bytes of the chunk, from its first page on.
    pub(crate) bytes: Range<u64>,
    /// The number of values in the pages.
    pub(crate) num_values: u64,
}

/// Calls `each` with the data pages of a chunk, and with their decompressed bytes if they are intact, until it returns
/// false. Damage ends the visit.
pub(crate) fn each_page(
    context: &ChunkContext,
    chunk: &ChunkPlace,
    window: &mut Window,
    mut each: impl FnMut(&Page, Option<Bytes>) -> Result<bool>,
) -> Result<()> {
    let mut decompressor = Decompressor::new();
    let mut left = chunk.num_values;
    let end = chunk.bytes.end.min(window.len());
    let (mut at, mut number) = (chunk.bytes.start, 0);
    while left > 0 && at < end {
        let bytes = window.read(at..at.saturating_add(HEADER_GUESS).min(end))?;
        let Ok(header) = PageHeader::parse(&bytes, at, &context.limits) else { return Ok(()) };
        let body = at + header.len as u64;
        let page_end = body.saturating_add(header.compressed as u64);
        if page_end > end {
            return Ok(());
        }
        let data = header.data.unwrap_or_default();
        let place = at..page_end;
        at = page_end;
        if header.page_type != DATA_PAGE {
            continue;
        }
        left = left.saturating_sub(data.num_values as u64);
        let page = Page { number, place, header, data, stored: window.read(body..page_end)? };
        number += 1;
        let bytes = context.decompress(&page, &mut decompressor).ok();
        if !each(&page, bytes)? {
            return Ok(());
        }
    }
    Ok(())
}
