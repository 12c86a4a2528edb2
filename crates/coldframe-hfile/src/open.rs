//! An open HFile, without Arrow: its trailer, its load-on-open section and its blocks.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::read_coalesced;
use coldframe_core::{Damage, Error, ErrorContext, ErrorKind, Limits, ReadAt, Result};
use coldframe_encoding::Cursor;

use crate::cache::{BlockCache, Cached, SearchBlock};
use crate::layout::block::{BlockType, Header, MAGIC_LEN, SHORT_HEADER_LEN};
use crate::layout::cell::CellLayout;
use crate::layout::codec::{Codec, DataKey};
use crate::layout::content::{BlockReader, Cells};
use crate::layout::context::BlockContext;
use crate::layout::file_info::{self, FileInfo};
use crate::layout::index::{BlockRef, IndexBlock};
use crate::layout::order::RowOrder;
use crate::layout::trailer::{self, Trailer};
use crate::options::Options;

/// How many bytes at the end of a file are read first.
const TAIL: u64 = 64 << 10;

/// An open HFile.
#[derive(Debug)]
pub struct RawFile {
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) trailer: Trailer,
    pub(crate) info: FileInfo,
    pub(crate) context: Arc<BlockContext>,
    pub(crate) order: RowOrder,
    pub(crate) root: Arc<IndexBlock>,
    pub(crate) meta: IndexBlock,
    /// The blocks of the load-on-open section that follow the indexes.
    pub(crate) load_on_open: Vec<(BlockType, BlockRef)>,
    /// For version 1, which stores no block sizes: the offsets at which a block may end, that is, the offsets
    /// of everything that may follow a block.
    ends: Vec<u64>,
    /// The damage to the trailer or the index, if the blocks had to be located by walking through the file.
    pub(crate) damage: Option<Damage>,
    /// Whether the first cell looks like one of Hudi's key-value pairs. Only set if the file info is lost.
    pub(crate) pairs: bool,
    pub(crate) cache: BlockCache,
}

/// The parts of a file that opening reads.
pub(crate) struct OpenParts {
    pub(crate) trailer: Trailer,
    pub(crate) info: FileInfo,
    pub(crate) context: BlockContext,
    pub(crate) root: IndexBlock,
    pub(crate) meta: IndexBlock,
    pub(crate) load_on_open: Vec<(BlockType, BlockRef)>,
    pub(crate) ends: Vec<u64>,
    pub(crate) damage: Option<Damage>,
    pub(crate) pairs: bool,
}

impl RawFile {
    /// Reads trailer, root indexes and file info.
    pub(crate) fn open(source: Arc<dyn ReadAt>, options: &Options) -> Result<Self> {
        let parts = open_parts(&source, options)?;
        Ok(Self::new(source, parts, options))
    }

    /// Creates an open file from these parts.
    pub(crate) fn new(source: Arc<dyn ReadAt>, parts: OpenParts, options: &Options) -> Self {
        let comparator = match parts.trailer.comparator.as_str() {
            "" => parts.info.text(file_info::COMPARATOR).unwrap_or_default(),
            class => class,
        };
        Self {
            order: RowOrder::of_comparator(comparator),
            source,
            trailer: parts.trailer,
            info: parts.info,
            context: Arc::new(parts.context),
            root: Arc::new(parts.root),
            meta: parts.meta,
            load_on_open: parts.load_on_open,
            ends: parts.ends,
            damage: parts.damage,
            pairs: parts.pairs,
            cache: BlockCache::new(options.cache_bytes),
        }
    }

    /// The trailer.
    pub fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// The file info.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Fails if the trailer or the index is damaged.
    pub fn check(&self) -> Result<()> {
        self.damage.as_ref().map_or(Ok(()), |damage| Err(damage.to_error()))
    }

    /// The source of the file's bytes.
    pub fn source(&self) -> &Arc<dyn ReadAt> {
        &self.source
    }

    /// Which parts follow the values of the file's cells.
    pub fn layout(&self) -> CellLayout {
        self.context.layout
    }

    /// The order of the file's rows.
    pub fn order(&self) -> RowOrder {
        self.order
    }

    /// The limits on memory.
    pub fn limits(&self) -> &Limits {
        &self.context.limits
    }

    /// The rows of the root index's entries. They divide the file into parts of roughly equal size.
    pub fn root_rows(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.root.len()).map(|i| self.root.row(i))
    }

    /// A reader of the file's blocks.
    pub fn block_reader(&self) -> BlockReader {
        BlockReader::new(self.context.clone())
    }

    /// The range of bytes that a block takes on disk.
    pub fn range_of(&self, block: BlockRef) -> Range<u64> {
        if self.context.major > 1 {
            return block.offset..block.end();
        }
        let end = self.ends.get(self.ends.partition_point(|end| *end <= block.offset));
        block.offset..end.copied().unwrap_or(block.offset)
    }

    /// The content of the meta block with this name.
    pub fn meta_block(&self, name: &[u8]) -> Result<Option<Bytes>> {
        self.check()?;
        // The names are searched one by one, because Hudi's writer does not sort them.
        let Some(entry) = (0..self.meta.len()).find(|i| self.meta.key(*i) == name) else { return Ok(None) };
        let Some(block) = self.meta.block(entry) else { return Ok(None) };
        let bytes = self.read(block)?;
        self.block_reader().content(&bytes, block.offset, block.size).map(|(_, content)| Some(content))
    }

    /// The names of the meta blocks, in index order.
    pub fn meta_names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.meta.len()).map(|i| self.meta.key(i))
    }

    /// The offset of the trailer; if the file has no trailer, the end of the file.
    pub(crate) fn trailer_start(&self) -> u64 {
        let len = self.source.len();
        len - trailer::len_of(self.trailer.major).unwrap_or(0).min(len)
    }

    /// What holds for all blocks.
    pub fn context(&self) -> &BlockContext {
        &self.context
    }

    /// The bytes of one block.
    pub fn read(&self, block: BlockRef) -> Result<Bytes> {
        let range = self.range_of(block);
        self.context.limits.block("a block", range.end - range.start).at(block.offset)?;
        self.source.read(range)
    }

    /// An index block below the root, from the cache if it is there.
    pub(crate) fn index_block(&self, block: BlockRef) -> Result<Arc<IndexBlock>> {
        if let Some(Cached::Index(index)) = self.cache.get(block.offset) {
            return Ok(index);
        }
        self.context.limits.metadata("an index block", block.size.into()).at(block.offset)?;
        let bytes = self.read(block)?;
        let context = &self.context;
        let header = Header::parse(&bytes, block.offset, context.with_checksums)?;
        context.check_index(&header).at(block.offset)?;
        let (block_type, content) = self.block_reader().content(&bytes, block.offset, block.size)?;
        if !matches!(block_type, BlockType::LeafIndex | BlockType::IntermediateIndex) {
            let message = format!("expected an index block, found a {block_type}");
            return Err(Error::corrupt(message).at(block.offset));
        }
        let index = IndexBlock::parse_child(content, block.offset).within(|| block_type.name())?;
        let index = Arc::new(index);
        self.cache.insert(block.offset, Cached::Index(index.clone()));
        Ok(index)
    }

    /// Data blocks prepared for searching: from the cache, or read with as few requests as possible.
    pub(crate) fn search_blocks(
        &self,
        reader: &mut BlockReader,
        blocks: &[BlockRef],
    ) -> Result<Vec<Arc<SearchBlock>>> {
        let cached: Vec<Option<Arc<SearchBlock>>> = blocks.iter().map(|b| self.cached_block(*b)).collect();
        let missing = || blocks.iter().zip(&cached).filter(|(_, c)| c.is_none()).map(|(b, _)| *b);
        let ranges: Vec<Range<u64>> = missing().map(|b| self.range_of(b)).collect();
        for range in &ranges {
            self.context.limits.block("a block", range.end - range.start).at(range.start)?;
        }
        let mut read = missing().zip(read_coalesced(self.source.as_ref(), &ranges)?);
        let mut prepared = Vec::with_capacity(blocks.len());
        for cached in &cached {
            prepared.push(match cached {
                Some(block) => block.clone(),
                None => match read.next() {
                    Some((block, bytes)) => self.parse_search_block(reader, block, &bytes)?,
                    None => {
                        return Err(Error::invalid("the source returned fewer ranges than requested"));
                    }
                },
            });
        }
        Ok(prepared)
    }

    /// A data block, if it is in the cache.
    fn cached_block(&self, block: BlockRef) -> Option<Arc<SearchBlock>> {
        match self.cache.get(block.offset) {
            Some(Cached::Cells(prepared)) => {
                prepared.prepare();
                Some(prepared)
            }
            _ => None,
        }
    }

    /// A data block prepared for searching.
    pub(crate) fn search_block(&self, reader: &mut BlockReader, block: BlockRef) -> Result<Arc<SearchBlock>> {
        if let Some(prepared) = self.cached_block(block) {
            return Ok(prepared);
        }
        let bytes = self.read(block)?;
        self.parse_search_block(reader, block, &bytes)
    }

    fn parse_search_block(
        &self,
        reader: &mut BlockReader,
        block: BlockRef,
        bytes: &Bytes,
    ) -> Result<Arc<SearchBlock>> {
        let Cells { bytes, .. } = reader.cells(bytes, block.offset, block.size)?;
        let prepared = SearchBlock::new(bytes, self.context.layout, self.order)
            .at(block.offset)
            .within(|| "data block")?;
        let prepared = Arc::new(prepared);
        self.cache.insert(block.offset, Cached::Cells(prepared.clone()));
        Ok(prepared)
    }
}

/// Reads the parts of a file, with at most two requests.
fn open_parts(source: &Arc<dyn ReadAt>, options: &Options) -> Result<OpenParts> {
    let len = source.len();
    let tail_at = len.saturating_sub(TAIL);
    let tail = source.read(tail_at..len)?;
    let from = tail.len().saturating_sub(trailer::MAX_LEN.try_into().unwrap_or(usize::MAX));
    let trailer = Trailer::parse(tail.get(from..).unwrap_or_default(), len)?;
    let trailer_at = len - trailer::len_of(trailer.major).unwrap_or(0);
    let start = trailer.load_on_open_offset.min(trailer.file_info_offset).min(trailer_at);
    options.limits.metadata("the load-on-open section", trailer_at - start).at(start).within(|| "trailer")?;
    let section = if start >= tail_at {
        slice(&tail, tail_at, start..trailer_at)
    } else {
        source.read(start..trailer_at)?
    };
    let codec = Codec::from_ordinal(trailer.codec).within(|| "trailer")?;
    let mut context = BlockContext {
        major: trailer.major,
        with_checksums: trailer.has_checksums(),
        codec,
        key: None,
        verify: options.verify,
        file_len: len,
        limits: options.limits,
        layout: CellLayout::default(),
        compressed_tags: false,
        met: Arc::default(),
    };
    if trailer.major == 1 {
        return open_v1(trailer, context, &section, start, source.as_ref());
    }
    let info = read_info(&trailer, &mut context, &section, start, options)?;
    context.layout =
        CellLayout { tags: trailer.major > 2 && info.has_tags(), sequence_ids: info.has_sequence_ids() };
    context.compressed_tags = info.has_compressed_tags();
    let mut parts = OpenParts {
        info,
        root: IndexBlock::default(),
        meta: IndexBlock::default(),
        load_on_open: Vec::new(),
        ends: Vec::new(),
        damage: None,
        pairs: false,
        trailer,
        context,
    };
    read_load_on_open(&mut parts, &section, start)?;
    Ok(parts)
}

/// The part of `bytes` for the file range `range`; `bytes` begin at offset `at` of the file.
fn slice(bytes: &Bytes, at: u64, range: Range<u64>) -> Bytes {
    let place = |n: u64| usize::try_from(n.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(place(range.start)..place(range.end).max(place(range.start)))
}

/// The block at `offset`, in a section of the file that begins at `start`.
fn block_at(section: &Bytes, start: u64, offset: u64, context: &BlockContext) -> Result<(Bytes, Header)> {
    let rest = slice(section, start, offset..u64::MAX);
    let header = Header::parse(&rest, offset, context.with_checksums)?;
    let len = usize::try_from(header.block_len()).unwrap_or(usize::MAX);
    if len > rest.len() {
        let message = format!("expected a block of at most {} bytes, found one of {len}", rest.len());
        return Err(Error::corrupt(message).at(offset).within(header.block_type.name()));
    }
    Ok((rest.slice(..len), header))
}

/// The file info. In an encrypted file, the right master key is the first key with which the file info is
/// valid.
fn read_info(
    trailer: &Trailer,
    context: &mut BlockContext,
    section: &Bytes,
    start: u64,
    options: &Options,
) -> Result<FileInfo> {
    let offset = trailer.file_info_offset;
    let read = |context: &BlockContext| -> Result<FileInfo> {
        let (block, header) = block_at(section, start, offset, context)?;
        if header.block_type != BlockType::FileInfo {
            let message = format!("expected a file info block, found a {}", header.block_type);
            return Err(Error::corrupt(message).at(offset));
        }
        context.check_raw(&header).at(offset)?;
        context.limits.decoded("a file info", header.raw as u64, context.file_len).at(offset)?;
        let (_, content) = BlockReader::new(Arc::new(context.clone())).content(&block, offset, 0)?;
        let protobuf = trailer.has_protobuf_info();
        if protobuf && !content.starts_with(file_info::PROTOBUF_MAGIC) {
            return Err(Error::corrupt("expected a protobuf message").at(offset));
        }
        FileInfo::parse(&content, offset, &context.limits, context.file_len)
    };
    let Some(wrapped) = &trailer.encryption_key else {
        return read(context).within(|| "file info");
    };
    for key in DataKey::candidates(wrapped, &options.keys)? {
        context.key = Some(key);
        match read(context) {
            Ok(info) => return Ok(info),
            Err(e) if matches!(e.kind(), ErrorKind::Checksum { .. }) => return Err(e.within("file info")),
            Err(_) => {}
        }
    }
    let names: Vec<&str> = options.keys.keys().map(String::as_str).collect();
    let message = format!("none of the given master keys ({}) decrypts the file info", names.join(", "));
    Err(Error::new(ErrorKind::KeyUnavailable(message)))
}

/// Reads the root indexes, and locates the other blocks of the load-on-open section.
fn read_load_on_open(parts: &mut OpenParts, section: &Bytes, start: u64) -> Result<()> {
    let mut reader = BlockReader::new(Arc::new(parts.context.clone()));
    let end = start.saturating_add(section.len() as u64);
    let mut at = parts.trailer.load_on_open_offset;
    let mut roots = 0;
    while at < end {
        let (block, header) =
            block_at(section, start, at, &parts.context).within(|| "load-on-open section")?;
        if header.block_type == BlockType::RootIndex {
            let name = if roots == 0 { "root data index" } else { "root meta index" };
            parts.context.check_index(&header).at(at).within(|| name)?;
            let (_, content) = reader.content(&block, at, 0).within(|| name)?;
            if roots == 0 {
                let deep = parts.trailer.index_levels > 1;
                let count = parts.trailer.data_index_count;
                parts.root = IndexBlock::parse_root(content, count, deep, at).within(|| name)?;
            } else if roots == 1 {
                let count = parts.trailer.meta_index_count;
                parts.meta = IndexBlock::parse_root(content, count, false, at).within(|| name)?;
            }
            roots += 1;
        } else if roots == 0 {
            let message = format!("expected the root data index, found a {}", header.block_type);
            return Err(Error::corrupt(message).at(at).within("load-on-open section"));
        }
        let size = u32::try_from(block.len()).unwrap_or(u32::MAX);
        parts.load_on_open.push((header.block_type, BlockRef { offset: at, size }));
        at = at.saturating_add(header.block_len());
    }
    if roots == 0 {
        return Err(Error::corrupt("expected the root data index, found the trailer").at(end));
    }
    let levels = u64::from(parts.trailer.index_levels);
    // Each level has a block.
    let most = parts.context.file_len / SHORT_HEADER_LEN as u64;
    if levels > most {
        let e = Error::corrupt(format!("expected at most {most} levels of the data index, found {levels}"));
        return Err(e.within("trailer"));
    }
    parts.context.limits.depth("the data index", levels).within(|| "trailer")?;
    Ok(())
}

/// Opens a file of version 1, in which indexes have no block headers and the file info has no frame.
fn open_v1(
    trailer: Trailer,
    context: BlockContext,
    section: &Bytes,
    start: u64,
    source: &dyn ReadAt,
) -> Result<OpenParts> {
    let end = start.saturating_add(section.len() as u64);
    let info_bytes = slice(section, start, trailer.file_info_offset..u64::MAX);
    let mut c = Cursor::new(&info_bytes, trailer.file_info_offset);
    let info = FileInfo::parse_writable(&mut c, &context.limits).within(|| "file info")?;
    let index = |offset: u64, until: u64, count: u32, what: &str| {
        if count == 0 {
            return Ok(IndexBlock::default());
        }
        let bytes = slice(section, start, offset..until);
        let bytes = if bytes.starts_with(BlockType::IndexV1.magic()) {
            bytes.slice(MAGIC_LEN..)
        } else {
            return Err(Error::corrupt("expected an index's magic").at(offset).within(what));
        };
        IndexBlock::parse_root(bytes, count, false, offset).within(|| what)
    };
    let meta_at = trailer.meta_index_offset.filter(|_| trailer.meta_index_count > 0);
    let root =
        index(trailer.load_on_open_offset, meta_at.unwrap_or(end), trailer.data_index_count, "data index")?;
    let meta = match meta_at {
        Some(at) => index(at, end, trailer.meta_index_count, "meta index")?,
        None => IndexBlock::default(),
    };
    let mut ends: Vec<u64> = root.blocks().chain(meta.blocks()).map(|b| b.offset).collect();
    ends.extend([trailer.file_info_offset, trailer.load_on_open_offset, source.len()]);
    ends.sort_unstable();
    let mut context = context;
    context.layout.sequence_ids = info.has_sequence_ids();
    Ok(OpenParts {
        trailer,
        info,
        context,
        root,
        meta,
        load_on_open: Vec::new(),
        ends,
        damage: None,
        pairs: false,
    })
}
