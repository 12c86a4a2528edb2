//! A CFile as a column: what to fetch for a range of ordinals, and arrays of what was fetched.
//!
//! ```text
//!  CFile ── scan(rows, type) ──▶ ColumnScan ── part(rows) ──▶ ColumnPart ── fetch() ──▶ byte ranges
//!  footer      index walked         blocks        cheap            │
//!              dictionary read                                     └ open(bytes) ──▶ ColumnReader ── read(n) ──▶ Arrow
//! ```
//!
//! Only `open` and `scan` read from the source; a [`ColumnPart`] plans and a [`ColumnReader`] decodes bytes it was given.
//! The source may be a window of a larger file, decrypted on the way: a CFile sees offsets of its own.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;
use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Fetch, Limits, ReadAt, Result};

use crate::block::{BlockFormat, BlockPointer};
use crate::encoding::dict::Dictionary;
use crate::footer::Footer;
use crate::index::{IndexWalk, Step};
use crate::reader::ColumnReader;
use crate::types::Encoding;

/// An open CFile.
#[derive(Debug)]
pub struct CFile {
    source: Arc<dyn ReadAt>,
    footer: Footer,
    format: BlockFormat,
    dictionary: OnceLock<Arc<Dictionary>>,
}

/// A data block and the ordinals it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// Where it stands.
    pub pointer: BlockPointer,
    /// Its ordinals.
    pub rows: Range<u64>,
}

impl DataBlock {
    /// Its name in errors.
    pub fn name(&self) -> String {
        format!("data block of ordinals {}..{}", self.rows.start, self.rows.end)
    }
}

/// Ordinals that no block gives.
#[derive(Clone, Debug)]
pub struct Lost {
    /// The ordinals.
    pub rows: Range<u64>,
    /// The bytes given up.
    pub bytes: Range<u64>,
    /// What was being read.
    pub structure: String,
    /// Why it cannot be.
    pub reason: String,
}

impl CFile {
    /// Reads header and footer.
    pub fn open(source: Arc<dyn ReadAt>, verify: bool, limits: Limits) -> Result<Self> {
        let footer = Footer::read(source.as_ref(), verify, &limits)?;
        let format = BlockFormat::new(&footer, verify, limits);
        Ok(Self { source, footer, format, dictionary: OnceLock::new() })
    }

    /// What the file says of itself.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// How its blocks are stored.
    pub fn format(&self) -> &BlockFormat {
        &self.format
    }

    /// Its bytes.
    pub fn source(&self) -> &Arc<dyn ReadAt> {
        &self.source
    }

    /// Where blocks must end.
    pub fn blocks_end(&self) -> u64 {
        self.footer.range.start
    }

    /// A walk over an index.
    pub fn walk(&self, root: BlockPointer) -> Result<IndexWalk<'_>> {
        IndexWalk::new(self.source.as_ref(), self.format, root, self.blocks_end())
    }

    /// The blocks that hold `rows`, by the positional index.
    pub fn blocks(&self, rows: Range<u64>) -> Result<Vec<DataBlock>> {
        self.find_blocks(rows, None)
    }

    /// The blocks that hold `rows` and can be found; what cannot goes to `lost`.
    pub fn blocks_lossy(&self, rows: Range<u64>, lost: &mut Vec<Lost>) -> Result<Vec<DataBlock>> {
        match self.find_blocks(rows.clone(), Some(lost)) {
            Err(e) if e.is_damage() => {
                let whole = 0..self.blocks_end();
                let (structure, reason) = (e.structure(), e.reason());
                lost.push(Lost { rows, bytes: whole, structure, reason });
                Ok(Vec::new())
            }
            other => other,
        }
    }

    fn find_blocks(&self, rows: Range<u64>, mut lost: Option<&mut Vec<Lost>>) -> Result<Vec<DataBlock>> {
        let all = self.footer.num_values;
        let rows = rows.start..rows.end.min(all);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let root = self.footer.positional.ok_or_else(|| {
            Error::unsupported(
                "ordinals of a CFile without a positional index (an index, bloom or delta file)",
            )
        })?;
        let name = || "positional index";
        let mut walk = self.walk(root).within(name)?;
        if lost.is_some() {
            walk = walk.lossy();
        }
        if rows.start > 0 {
            let key = u32::try_from(rows.start).unwrap_or(u32::MAX).to_be_bytes();
            walk.seek(&key).within(name)?;
        }
        let mut steps: Vec<(u64, Step)> = Vec::new();
        let mut end = all;
        while let Some(step) = walk.step().within(name)? {
            let (Step::Block(key, _) | Step::Lost { key, .. }) = &step;
            let first = ordinal(key).within(name)?;
            let expected = match steps.last() {
                Some((previous, _)) => *previous + 1..all,
                None => 0..rows.start + 1,
            };
            if !expected.contains(&first) {
                let e = format!("expected an ordinal of {}..{}, found {first}", expected.start, expected.end);
                return Err(Error::corrupt(e).at(root.offset).within("positional index"));
            }
            if first >= rows.end {
                end = first;
                break;
            }
            steps.push((first, step));
        }
        let ends: Vec<u64> = steps.iter().skip(1).map(|(first, _)| *first).chain([end]).collect();
        let mut blocks = Vec::with_capacity(steps.len());
        for ((first, step), end) in steps.into_iter().zip(ends) {
            match step {
                Step::Block(_, pointer) => {
                    self.format.limits.unit_rows("data block", end - first)?;
                    blocks.push(DataBlock { pointer, rows: first..end });
                }
                Step::Lost { bytes, error, .. } => {
                    if let Some(lost) = lost.as_deref_mut() {
                        let rows = first.max(rows.start)..end.min(rows.end);
                        let structure = "positional index".to_owned();
                        lost.push(Lost { rows, bytes, structure, reason: error });
                    }
                }
            }
        }
        Ok(blocks)
    }

    /// All data blocks by the value index, for files without a positional one: delta files, indexes, blooms.
    pub fn blocks_by_value(&self) -> Result<Vec<BlockPointer>> {
        let name = || "value index";
        let root = self.footer.value.ok_or_else(|| Error::unsupported("a CFile without an index"))?;
        let mut walk = self.walk(root).within(name)?;
        let mut blocks = Vec::new();
        while let Some(step) = walk.step().within(name)? {
            if let Step::Block(_, pointer) = step {
                blocks.push(pointer);
            }
        }
        Ok(blocks)
    }

    /// The ordinals of the blocks that may hold values whose keys are `lower` or more and less than `upper`, by the
    /// value index; all ordinals where the file has none.
    pub fn rows_between(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Range<u64>> {
        let all = 0..self.footer.num_values;
        let Some(root) = self.footer.value.filter(|_| self.footer.positional.is_some()) else {
            return Ok(all);
        };
        let name = || "value index";
        let mut walk = self.walk(root).within(name)?;
        if let Some(lower) = lower {
            // Equal values may begin in the block before the separator that equals them: there is no such block, since
            // a separator is more than all values before it.
            walk.seek(lower).within(name)?;
        }
        let (mut first, mut behind) = (None, None);
        while let Some(step) = walk.step().within(name)? {
            let Step::Block(key, pointer) = step else { continue };
            if first.is_some() && upper.is_some_and(|upper| key.as_slice() >= upper) {
                behind = Some(pointer.offset);
                break;
            }
            first.get_or_insert(pointer.offset);
            if upper.is_none() {
                break;
            }
        }
        let Some(first) = first else { return Ok(0..0) };
        let blocks = self.blocks(all.clone())?;
        let at = |offset: u64| blocks.iter().find(|b| b.pointer.offset >= offset).map(|b| b.rows.start);
        let start = at(first).unwrap_or(all.end);
        let end = behind.and_then(at).unwrap_or(all.end);
        Ok(start..end.max(start))
    }

    /// The dictionary, read at the first call.
    pub fn dictionary(&self) -> Result<Option<Arc<Dictionary>>> {
        if self.footer.encoding != Encoding::Dict {
            return Ok(None);
        }
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(Some(dictionary.clone()));
        }
        // A file without values may have none.
        let Some(pointer) = self.footer.dictionary else { return Ok(None) };
        let read = || -> Result<Dictionary> {
            self.format.limits.block("dictionary", pointer.size.into())?;
            let stored = self.source.read(pointer.range())?;
            let bytes = self.format.open_owned(&stored, pointer.offset)?;
            Dictionary::parse(bytes, pointer.offset, self.footer.data_type)
        };
        let dictionary = Arc::new(read().within(|| "dictionary")?);
        Ok(Some(self.dictionary.get_or_init(|| dictionary).clone()))
    }

    /// A scan of `rows` whose values come out as `to`: walks the index and reads the dictionary.
    pub fn scan(&self, rows: Range<u64>, to: &DataType) -> Result<ColumnScan> {
        let blocks = self.blocks(rows)?;
        self.scan_blocks(blocks, to)
    }

    /// A scan of some blocks.
    pub fn scan_blocks(&self, blocks: Vec<DataBlock>, to: &DataType) -> Result<ColumnScan> {
        let dictionary = if blocks.is_empty() { None } else { self.dictionary()? };
        self.scan_with(blocks, to, dictionary)
    }

    /// A scan of some blocks with a dictionary that was read, or without the one that cannot be.
    pub fn scan_with(
        &self,
        blocks: Vec<DataBlock>,
        to: &DataType,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Result<ColumnScan> {
        self.footer.data_type.check_arrow(to)?;
        let context = Arc::new(ColumnContext {
            source: self.source.clone(),
            format: self.format,
            data_type: self.footer.data_type,
            encoding: self.footer.encoding,
            nullable: self.footer.nullable,
            to: to.clone(),
            dictionary,
        });
        Ok(ColumnScan { context, blocks })
    }
}

/// The ordinal that a key of the positional index is.
fn ordinal(key: &[u8]) -> Result<u64> {
    let bytes = <[u8; 4]>::try_from(key)
        .map_err(|_| Error::corrupt(format!("expected an ordinal of 4 bytes, found {}", key.len())))?;
    Ok(u32::from_be_bytes(bytes).into())
}

/// What all parts of a scan have in common.
#[derive(Debug)]
pub struct ColumnContext {
    /// Where the bytes come from.
    pub source: Arc<dyn ReadAt>,
    /// How blocks are stored.
    pub format: BlockFormat,
    /// The values' type.
    pub data_type: crate::types::KuduType,
    /// How they are encoded.
    pub encoding: Encoding,
    /// Whether blocks begin with a bitmap.
    pub nullable: bool,
    /// The Arrow type they come out as.
    pub to: DataType,
    /// What code words stand for.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// The blocks of a range of ordinals.
#[derive(Clone, Debug)]
pub struct ColumnScan {
    context: Arc<ColumnContext>,
    blocks: Vec<DataBlock>,
}

impl ColumnScan {
    /// What its parts have in common.
    pub fn context(&self) -> &Arc<ColumnContext> {
        &self.context
    }

    /// Its blocks.
    pub fn blocks(&self) -> &[DataBlock] {
        &self.blocks
    }

    /// The part of it that holds `rows`.
    pub fn part(&self, rows: Range<u64>) -> ColumnPart {
        let from = self.blocks.partition_point(|b| b.rows.end <= rows.start);
        let to = self.blocks.partition_point(|b| b.rows.start < rows.end);
        let blocks = self.blocks.get(from..to.max(from)).unwrap_or_default().to_vec();
        ColumnPart { context: self.context.clone(), blocks, rows }
    }
}

/// Some ordinals of a column, to fetch and to decode.
#[derive(Clone, Debug)]
pub struct ColumnPart {
    context: Arc<ColumnContext>,
    blocks: Vec<DataBlock>,
    rows: Range<u64>,
}

impl ColumnPart {
    /// What it has in common with the scan's other parts.
    pub fn context(&self) -> &Arc<ColumnContext> {
        &self.context
    }

    /// The blocks that hold its rows.
    pub fn blocks(&self) -> &[DataBlock] {
        &self.blocks
    }

    /// Its ordinals.
    pub fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// What to fetch: a range for each block.
    pub fn fetch(&self) -> Vec<Fetch> {
        let fetch = |b: &DataBlock| Fetch { source: self.context.source.clone(), range: b.pointer.range() };
        self.blocks.iter().map(fetch).collect()
    }

    /// A reader that stands before the first row; `bytes[i]` are those of `fetch()[i]`.
    pub fn open(&self, bytes: Vec<Bytes>) -> Result<ColumnReader> {
        ColumnReader::new(self.context.clone(), self.blocks.clone(), bytes, self.rows.clone())
    }

    /// Decodes each block once and says which cannot be. Rows that no block holds are lost as well.
    pub fn survey(&self, bytes: &[Bytes]) -> Vec<Lost> {
        let mut lost = Vec::new();
        let mut at = self.rows.start;
        for (block, bytes) in self.blocks.iter().zip(bytes) {
            let rows = block.rows.start.max(self.rows.start)..block.rows.end.min(self.rows.end);
            if at < rows.start {
                lost.push(self.gap(at..rows.start));
            }
            at = rows.end;
            let reader = ColumnReader::new(
                self.context.clone(),
                vec![block.clone()],
                vec![bytes.clone()],
                rows.clone(),
            );
            let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
            if let Err(e) = reader.and_then(|mut r| r.read(count)) {
                let bytes = block.pointer.range();
                lost.push(Lost { rows, bytes, structure: e.structure(), reason: e.reason() });
            }
        }
        if at < self.rows.end {
            lost.push(self.gap(at..self.rows.end));
        }
        lost
    }

    fn gap(&self, rows: Range<u64>) -> Lost {
        let reason = "no data block that the index leads to holds these ordinals".to_owned();
        Lost { rows, bytes: 0..0, structure: "positional index".to_owned(), reason }
    }
}
