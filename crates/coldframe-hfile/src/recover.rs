//! Opens files without a trailer or an index: locates blocks by walking, and finds the properties that the
//! trailer would state by trial.
//!
//! Each guess is verified: a codec must produce exactly the size in the block's header, and a cell layout must
//! parse a block to its end.

mod copies;
pub(crate) mod restore;
pub(crate) mod walk;

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Damage, Error, ReadAt, Result};

use crate::layout::block::{BlockType, HEADER_LEN, Header};
use crate::layout::cell::{CellLayout, read_all};
use crate::layout::codec::{Codec, DataKey};
use crate::layout::content::BlockReader;
use crate::layout::context::BlockContext;
use crate::layout::file_info::FileInfo;
use crate::layout::index::{BlockRef, IndexBlock};
use crate::layout::trailer::{MAX_LEN, Trailer};
use crate::open::{OpenParts, RawFile};
use crate::options::Options;
use copies::Copies;
use walk::{BlockWalk, Step};

/// The result of a walk over the file.
#[derive(Default)]
struct WalkedBlocks {
    data: Vec<BlockRef>,
    info: Option<BlockRef>,
}

/// Reads trailer, root indexes and file info. If the trailer or the indexes are damaged but the file begins
/// with a block, walks from block to block instead. Reading cells then fails with the original error, if
/// `on_error` is `raise`.
pub fn open(source: Arc<dyn ReadAt>, options: &Options) -> Result<RawFile> {
    match RawFile::open(source.clone(), options) {
        Err(e) if e.is_damage() => {
            let parts = without_trailer(&source, options, e)?;
            Ok(RawFile::new(source, parts, options))
        }
        opened => opened,
    }
}

/// Opens the file by its blocks. If it finds no blocks, fails with `e`, the error of opening it by its
/// trailer.
fn without_trailer(source: &Arc<dyn ReadAt>, options: &Options, e: Error) -> Result<OpenParts> {
    let len = source.len();
    let tail = source.read(len.saturating_sub(MAX_LEN)..len)?;
    let trailer = Trailer::parse(&tail, len).ok().filter(|t| t.major > 1);
    let head = source.read(0..len.min(HEADER_LEN as u64))?;
    let parse = |with| Header::parse(&head, 0, with).is_ok();
    let Some(with_checksums) = [true, false].into_iter().find(|with| parse(*with)) else { return Err(e) };
    let blocks = find_blocks(source, with_checksums, options)?;
    let Some(first) = blocks.data.first().copied() else { return Err(e) };
    let mut context = BlockContext {
        major: trailer.as_ref().map_or(if with_checksums { 3 } else { 2 }, |t| t.major),
        with_checksums,
        codec: Codec::NONE,
        key: None,
        verify: options.verify,
        file_len: len,
        limits: options.limits,
        layout: CellLayout::default(),
        compressed_tags: false,
        met: Arc::default(),
    };
    let sample = source.read(first.offset..first.end())?;
    let info = match guess_codec(&mut context, trailer.as_ref(), options, &sample, first, &blocks, source) {
        Some(info) => info,
        None => return Err(e),
    };
    match &info {
        Some(info) => {
            context.layout = CellLayout { tags: info.has_tags(), sequence_ids: info.has_sequence_ids() };
            context.compressed_tags = info.has_compressed_tags();
        }
        None => guess_layout(&mut context, &sample, first),
    }
    let pairs = info.is_none() && begins_with_pair(&context, &sample, first);
    let at = e.offset().unwrap_or(len).min(len);
    Ok(OpenParts {
        trailer: Trailer { index_levels: 1, ..trailer.unwrap_or_default() },
        info: info.unwrap_or_default(),
        context,
        root: IndexBlock::without_keys(blocks.data),
        meta: IndexBlock::default(),
        load_on_open: Vec::new(),
        ends: Vec::new(),
        damage: Some(Damage::from_error(&e, at..len, None)),
        pairs,
    })
}

fn find_blocks(source: &Arc<dyn ReadAt>, with_checksums: bool, options: &Options) -> Result<WalkedBlocks> {
    let mut walk = BlockWalk::new(source.clone(), with_checksums, options.limits, 0..source.len());
    let (mut blocks, mut copies) = (WalkedBlocks::default(), Copies::default());
    while let Some(step) = walk.step()? {
        let Step::Block(offset, header) = step else { continue };
        let Ok(size) = u32::try_from(header.block_len()) else { continue };
        let block = BlockRef { offset, size };
        match header.block_type {
            BlockType::Data | BlockType::EncodedData if copies.has(source.as_ref(), block, &header)? => {}
            BlockType::Data | BlockType::EncodedData => blocks.data.push(block),
            BlockType::FileInfo => blocks.info = Some(block),
            _ => {}
        }
    }
    Ok(blocks)
}

/// Sets the codec and the key: the trailer's codec and key, or else the first codec that decodes the first
/// data block and the file info (if the file has one). Returns the file info; `None` if no codec fits.
fn guess_codec(
    context: &mut BlockContext,
    trailer: Option<&Trailer>,
    options: &Options,
    sample: &Bytes,
    first: BlockRef,
    blocks: &WalkedBlocks,
    source: &Arc<dyn ReadAt>,
) -> Option<Option<FileInfo>> {
    let wrapped = trailer.and_then(|t| t.encryption_key.as_deref());
    let keys: Vec<Option<DataKey>> = match wrapped {
        Some(wrapped) => DataKey::candidates(wrapped, &options.keys).ok()?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    // The trailer may be damaged, so the codec that it states is only the first codec that is tried.
    let codec_of_trailer = trailer.and_then(|t| Codec::from_ordinal(t.codec).ok());
    let codecs: Vec<Codec> = codec_of_trailer.into_iter().chain(Codec::all()).collect();
    let info_block =
        blocks.info.and_then(|block| Some((block, source.read(block.offset..block.end()).ok()?)));
    // The checksums of the sample are not verified, because damage to the sample must not decide; the
    // checksums of the file info are verified.
    let mut without_info = None;
    for key in keys {
        for codec in &codecs {
            (context.codec, context.key) = (*codec, key.clone());
            let unchecked = BlockContext { verify: false, ..context.clone() };
            let sample = BlockReader::new(Arc::new(unchecked)).content(sample, first.offset, 0);
            let info = info_block.as_ref().and_then(|(block, bytes)| {
                let (_, content) =
                    BlockReader::new(Arc::new(context.clone())).content(bytes, block.offset, 0).ok()?;
                FileInfo::parse(&content, block.offset, &context.limits, context.file_len).ok()
            });
            match (info, sample) {
                (Some(info), _) => return Some(Some(info)),
                (None, Ok(_)) if without_info.is_none() => without_info = Some((*codec, key.clone())),
                _ => {}
            }
        }
    }
    (context.codec, context.key) = without_info?;
    Some(None)
}

/// Sets the first layout with which all of the sample can be parsed.
fn guess_layout(context: &mut BlockContext, sample: &Bytes, block: BlockRef) {
    let mut cells = Vec::new();
    for (sequence_ids, tags, compressed) in [
        (true, false, false),
        (false, false, false),
        (true, true, false),
        (true, true, true),
        (false, true, false),
        (false, true, true),
    ] {
        context.layout = CellLayout { tags, sequence_ids };
        context.compressed_tags = compressed;
        let unchecked = BlockContext { verify: false, ..context.clone() };
        let read = BlockReader::new(Arc::new(unchecked)).cells(sample, block.offset, 0);
        if read.and_then(|read| read_all(context.layout, &read.bytes, &mut cells)).is_ok() {
            return;
        }
    }
    context.layout = CellLayout { tags: false, sequence_ids: true };
    context.compressed_tags = false;
}

/// Whether the first cell has neither a family nor a qualifier, as in Hudi's pairs.
fn begins_with_pair(context: &BlockContext, sample: &Bytes, block: BlockRef) -> bool {
    let unchecked = BlockContext { verify: false, ..context.clone() };
    let Ok(read) = BlockReader::new(Arc::new(unchecked)).cells(sample, block.offset, 0) else { return false };
    let first = context.layout.read(&read.bytes, 0).map(|(cell, _)| cell.cell(&read.bytes));
    first.is_ok_and(|cell| cell.family.is_empty() && cell.qualifier.is_empty())
}
