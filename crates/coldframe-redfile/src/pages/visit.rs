//! Looks at the first pages of a chunk, without fetching all of it.

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{ReadAt, Result};
use coldframe_encoding::codec::Decompressor;

use super::chunk::ChunkContext;
use super::walk::Page;
use crate::layout::page::{DATA_PAGE, PageHeader};

/// How much is read to get at a page's header.
const HEADER_GUESS: u64 = 1024;
/// How much is read at once when pages are visited one after the other.
const WINDOW: u64 = 64 << 10;

/// Where the pages of a chunk are.
pub(crate) struct ChunkPlace {
    /// From the first page on.
    pub(crate) bytes: Range<u64>,
    /// How many values they have.
    pub(crate) num_values: u64,
}

/// Calls `each` with the data pages of a chunk, and with their decompressed bytes where they are whole, until
/// it says that it has enough. Damage ends the visit.
pub(crate) fn each_page(
    context: &ChunkContext,
    chunk: &ChunkPlace,
    source: &dyn ReadAt,
    mut each: impl FnMut(&Page, Option<Bytes>) -> Result<bool>,
) -> Result<()> {
    let mut decompressor = Decompressor::new();
    let mut left = chunk.num_values;
    let end = chunk.bytes.end.min(source.len());
    let (mut at, mut held, mut held_at) = (chunk.bytes.start, Bytes::new(), 0u64);
    let mut number = 0;
    while left > 0 && at < end {
        let mut need = HEADER_GUESS;
        // The header first; then, if the page is longer than what is at hand, all of it.
        let page = loop {
            let upto = at.saturating_add(need).min(end);
            if at < held_at || upto > held_at + held.len() as u64 {
                held_at = at;
                held = source.read(at..at.saturating_add(need.max(WINDOW)).min(end))?;
            }
            let skip = usize::try_from(at - held_at).unwrap_or(usize::MAX);
            let bytes = held.slice(skip.min(held.len())..);
            let Ok(header) = PageHeader::parse(&bytes, at, &context.limits) else { return Ok(()) };
            let len = header.len.saturating_add(header.compressed);
            if len <= bytes.len() {
                break Page {
                    number,
                    place: at..at + len as u64,
                    header,
                    data: header.data.unwrap_or_default(),
                    stored: bytes.slice(header.len..len),
                };
            }
            if upto == end || need >= len as u64 {
                return Ok(());
            }
            need = len as u64;
        };
        at = page.place.end;
        if page.header.page_type != DATA_PAGE {
            continue;
        }
        number += 1;
        left = left.saturating_sub(page.data.num_values as u64);
        let bytes = context.decompress(&page, &mut decompressor).ok();
        if !each(&page, bytes)? {
            return Ok(());
        }
    }
    Ok(())
}
