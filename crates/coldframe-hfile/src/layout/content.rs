//! Turns a block's bytes into its content and its cells.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Result};

use crate::layout::block::{BlockType, Header, MAGIC_LEN};
use crate::layout::cell::CellSink;
use crate::layout::context::BlockContext;
use crate::layout::encoding::{Decoder, Encoding, Plain};

/// The plain cells of one block, and their encoding.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The cells of one block in plain form, and how they were encoded.
    pub bytes: Bytes,
    /// The encoding of the block; `None` if it stores the cells in plain form.
    pub encoding: Option<Encoding>,
}

/// A data block, decompressed.
pub(crate) struct OpenBlock<'a> {
    block_type: BlockType,
    offset: u64,
    /// The content; `None` if it is in `scratch`.
    stored: Option<Bytes>,
    scratch: &'a mut Vec<u8>,
    context: &'a BlockContext,
    decoder: &'a mut Decoder,
}

impl OpenBlock<'_> {
    /// Passes the cells to `sink` until it is done. On failure, the caller must discard the cells that `sink`
    /// already has.
    pub(crate) fn each_cell(&mut self, sink: &mut impl CellSink) -> Result<()> {
        if sink.keeps_blocks() {
            let content = self.stored.get_or_insert_with(|| Bytes::from(std::mem::take(self.scratch)));
            sink.enter(content);
        }
        let (block_type, offset) = (self.block_type, self.offset);
        let content = self.stored.as_deref().unwrap_or(self.scratch);
        if block_type == BlockType::EncodedData {
            let encoding = self.decoder.decode(content, self.context, sink);
            return encoding.map(drop).within(|| block_type.name()).at(offset);
        }
        expect_data(block_type, offset)?;
        self.context.layout.each(content, sink).at(offset).within(|| block_type.name())
    }
}

/// Reads blocks, and reuses its buffers from block to block.
#[derive(Debug)]
pub struct BlockReader {
    context: Arc<BlockContext>,
    decompressor: Decompressor,
    decoder: Decoder,
    decrypted: Vec<u8>,
    content: Vec<u8>,
    /// The size in plain form of the last encoded block: the next block usually has a similar size.
    plain_len: usize,
}

impl BlockReader {
    /// A reader for the blocks of one file.
    pub fn new(context: Arc<BlockContext>) -> Self {
        Self {
            context,
            decompressor: Decompressor::new(),
            decoder: Decoder::default(),
            decrypted: Vec::new(),
            content: Vec::new(),
            plain_len: 0,
        }
    }

    /// The context of the file's blocks.
    pub fn context(&self) -> &Arc<BlockContext> {
        &self.context
    }

    /// The content and type of the block `block` at `offset`. `raw`: the uncompressed size, which in version
    /// 1 is only in the index.
    pub fn content(&mut self, block: &Bytes, offset: u64, raw: u32) -> Result<(BlockType, Bytes)> {
        let mut out = Vec::new();
        let (block_type, stored) = self.content_into(block, offset, raw, &mut out)?;
        Ok((block_type, stored.unwrap_or_else(|| Bytes::from(out))))
    }

    /// The cells of a data block in plain form.
    pub fn cells(&mut self, block: &Bytes, offset: u64, raw: u32) -> Result<Cells> {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        let cells = self.cells_by(block, offset, raw, &mut content);
        self.content = content;
        cells
    }

    fn cells_by(&mut self, block: &Bytes, offset: u64, raw: u32, scratch: &mut Vec<u8>) -> Result<Cells> {
        let encoded = block.starts_with(BlockType::EncodedData.magic());
        if !encoded {
            let (block_type, bytes) = self.content(block, offset, raw)?;
            expect_data(block_type, offset)?;
            return Ok(Cells { bytes, encoding: None });
        }
        let (block_type, stored) = self.content_into(block, offset, raw, scratch)?;
        let content = stored.as_deref().unwrap_or(scratch);
        let mut plain = Plain::new(self.context.layout);
        plain.bytes.reserve(self.plain_len);
        let encoding = self.decoder.decode(content, &self.context, &mut plain);
        let encoding = encoding.within(|| block_type.name()).at(offset)?;
        self.plain_len = plain.bytes.len();
        Ok(Cells { bytes: Bytes::from(plain.bytes), encoding: Some(encoding) })
    }

    /// Passes the cells of a data block to `sink`. On failure, the caller must discard the cells that `sink`
    /// already has.
    pub fn each_cell(
        &mut self,
        block: &Bytes,
        offset: u64,
        raw: u32,
        sink: &mut impl CellSink,
    ) -> Result<()> {
        self.with_block(block, offset, raw, |open| open.each_cell(sink))
    }

    /// Runs `task` with a decompressed data block: `task` may go through the cells more than once.
    pub(crate) fn with_block<T>(
        &mut self,
        block: &Bytes,
        offset: u64,
        raw: u32,
        task: impl FnOnce(&mut OpenBlock<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut scratch = std::mem::take(&mut self.content);
        scratch.clear();
        let content = self.content_into(block, offset, raw, &mut scratch);
        let result = content.and_then(|(block_type, stored)| {
            let (context, decoder) = (self.context.as_ref(), &mut self.decoder);
            task(&mut OpenBlock { block_type, offset, stored, scratch: &mut scratch, context, decoder })
        });
        self.content = scratch;
        result
    }

    /// The content, either as a slice of `block` or appended to `out`.
    fn content_into(
        &mut self,
        block: &Bytes,
        offset: u64,
        raw: u32,
        out: &mut Vec<u8>,
    ) -> Result<(BlockType, Option<Bytes>)> {
        if self.context.major == 1 {
            return self.content_v1(block, offset, raw, out);
        }
        let context = &self.context;
        let header = Header::parse(block, offset, context.with_checksums)?;
        if header.block_len() != block.len() as u64 {
            let (expected, actual) = (block.len(), header.block_len());
            let message = format!("expected a block of {expected} bytes, found one of {actual}");
            return Err(Error::corrupt(message).at(offset).within(header.block_type.name()));
        }
        context.met.note(header.checksums.is_some_and(|checksums| checksums.kind != 0));
        let stored = header.data(block, offset, context.verify)?;
        let data_at = offset.saturating_add(header.header_len as u64);
        let most = context.codec.max_expansion(stored.len());
        context
            .limits
            .unpacked("a block", header.raw as u64, most)
            .at(offset)
            .within(|| header.block_type.name())?;
        let content = match &context.key {
            None if context.codec.is_none() => {
                let start = header.header_len;
                Ok(Some(block.slice(start..start + stored.len())))
            }
            None => context.codec.decompress(&mut self.decompressor, stored, header.raw, out).map(|()| None),
            Some(key) => {
                self.decrypted.clear();
                key.decrypt(stored, &mut self.decrypted).and_then(|()| {
                    context
                        .codec
                        .decompress(&mut self.decompressor, &self.decrypted, header.raw, out)
                        .map(|()| None)
                })
            }
        };
        let name = header.block_type.name();
        let content = content.at(data_at).within(|| name)?;
        let actual = content.as_ref().map_or(out.len(), Bytes::len);
        if actual != header.raw {
            let message = format!("expected {} bytes of content, found {actual}", header.raw);
            return Err(Error::corrupt(message).at(data_at).within(name));
        }
        Ok((header.block_type, content))
    }

    fn content_v1(
        &mut self,
        block: &Bytes,
        offset: u64,
        raw: u32,
        out: &mut Vec<u8>,
    ) -> Result<(BlockType, Option<Bytes>)> {
        let context = &self.context;
        let most = context.codec.max_expansion(block.len());
        let raw = context.limits.unpacked("a block", raw.into(), most).at(offset)?;
        let content = if context.codec.is_none() {
            block.clone()
        } else {
            context
                .codec
                .decompress(&mut self.decompressor, block, raw, out)
                .within(|| "block")
                .at(offset)?;
            Bytes::from(std::mem::take(out))
        };
        let magic = content.first_chunk::<MAGIC_LEN>().and_then(BlockType::from_magic);
        let Some(block_type) = magic.filter(|_| content.len() == raw) else {
            let message = format!("expected a block's magic and {raw} bytes, found {}", content.len());
            return Err(Error::corrupt(message).at(offset).within("block"));
        };
        Ok((block_type, Some(content.slice(MAGIC_LEN..))))
    }
}

fn expect_data(block_type: BlockType, offset: u64) -> Result<()> {
    if block_type == BlockType::Data {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected a data block, found a {block_type}"))
        .at(offset)
        .within("data index"))
}
