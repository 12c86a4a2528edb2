//! Writes blocks: compresses them and adds header and checksums.
//!
//! The layout is in [`crate::layout::block`]. Every block is compressed, even if that enlarges it. A checksum of kind 0
//! still takes four bytes, as in HBase.

use std::io::Write;

use coldframe_core::{Error, Result};
use coldframe_encoding::checksum::{crc32, crc32c};
use coldframe_encoding::codec::Compressor;

use super::options::{Checksum, Settings};
use crate::layout::block::{BlockType, HEADER_LEN};

/// The location of a written block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLocation {
    /// The block's offset.
    pub(super) offset: u64,
    /// The block's size, including header and checksums.
    pub(super) size: u32,
}

/// Writes consecutive blocks.
pub(super) struct Blocks<W> {
    sink: W,
    position: u64,
    options: Settings,
    compressor: Compressor,
    /// The bytes of the block being assembled.
    block: Vec<u8>,
    /// The offset of the last block of each type.
    previous: Vec<(BlockType, u64)>,
    /// The total size of headers and uncompressed contents.
    raw_bytes: u64,
}

impl<W: Write> Blocks<W> {
    pub(super) fn new(sink: W, options: Settings) -> Self {
        Self {
            sink,
            position: 0,
            options,
            compressor: Compressor::new(),
            block: Vec::new(),
            previous: Vec::new(),
            raw_bytes: 0,
        }
    }

    pub(super) fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Writes a block of this type with this content.
    pub(super) fn write(&mut self, block_type: BlockType, content: &[u8]) -> Result<BlockLocation> {
        self.block.clear();
        self.block.resize(HEADER_LEN, 0);
        match &self.options.codec {
            Some(codec) => {
                let level = self.options.compression_level;
                codec.compress(&mut self.compressor, level, content, &mut self.block)?;
            }
            None => self.block.extend_from_slice(content),
        }
        let covered = self.block.len();
        let chunks = covered.div_ceil(self.options.bytes_per_checksum);
        let size = covered.saturating_add(chunks.saturating_mul(4));
        let header = self.header(block_type, content.len(), size, covered)?;
        if let Some(front) = self.block.first_chunk_mut::<HEADER_LEN>() {
            *front = header;
        }
        self.block.reserve(chunks * 4);
        for at in (0..covered).step_by(self.options.bytes_per_checksum) {
            let end = covered.min(at.saturating_add(self.options.bytes_per_checksum));
            let chunk = self.block.get(at..end).unwrap_or_default();
            let sum = match self.options.checksum {
                Checksum::Null => 0,
                Checksum::Crc32 => crc32(chunk),
                Checksum::Crc32c => crc32c(chunk),
            };
            self.block.extend_from_slice(&sum.to_be_bytes());
        }
        let offset = self.position;
        self.sink.write_all(&self.block)?;
        self.position = self.position.saturating_add(size as u64);
        self.raw_bytes = self.raw_bytes.saturating_add((HEADER_LEN + content.len()) as u64);
        match self.previous.iter_mut().find(|(t, _)| *t == block_type) {
            Some((_, last)) => *last = offset,
            None => self.previous.push((block_type, offset)),
        }
        Ok(BlockLocation { offset, size: u32::try_from(size).unwrap_or(u32::MAX) }) // the length was checked for the header
    }

    fn header(&self, of: BlockType, raw: usize, size: usize, covered: usize) -> Result<[u8; HEADER_LEN]> {
        let int = |n: usize| {
            let n = i32::try_from(n)
                .map_err(|_| Error::invalid(format!("a {of} of {n} bytes: the maximum is 2 GiB")));
            n.map(i32::to_be_bytes)
        };
        let previous = self.previous.iter().find(|(t, _)| *t == of).map_or(-1, |(_, at)| at.cast_signed());
        let mut header = [0; HEADER_LEN];
        let mut rest = header.as_mut_slice();
        rest.write_all(of.magic())?;
        rest.write_all(&int(size.saturating_sub(HEADER_LEN))?)?;
        rest.write_all(&int(raw)?)?;
        rest.write_all(&previous.to_be_bytes())?;
        rest.write_all(&[self.options.checksum.id()])?;
        rest.write_all(&int(self.options.bytes_per_checksum)?)?;
        rest.write_all(&int(covered)?)?;
        Ok(header)
    }

    /// Writes the trailer as it is, and flushes. Returns the sink and the file's length.
    pub(super) fn finish(mut self, trailer: &[u8]) -> Result<(W, u64)> {
        self.sink.write_all(trailer)?;
        self.sink.flush()?;
        Ok((self.sink, self.position.saturating_add(trailer.len() as u64)))
    }
}
