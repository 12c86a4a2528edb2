//! Reads a CFile as a column: plans what to fetch for a range of ordinals, and decodes the fetched bytes to
//! arrays.
//!
//! ```text
//!  CFile ── ColumnScan::new(rows, type) ──▶ ColumnScan ── part(rows) ──▶ ColumnPart ── fetch() ──▶ byte ranges
//!  footer      index walked                    blocks        cheap            │
//!              dictionary read                                                └ open(bytes) ──▶ ColumnReader ── read(n) ──▶ Arrow
//! ```
//! Only opening and `new` read from the source. A [`ColumnPart`] plans, and a [`ColumnReader`] decodes the given bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_schema::DataType;
use bytes::Bytes;
use coldframe_core::{Fetch, Result};
use coldframe_encoding::Cursor;

use super::context::ColumnContext;
use super::reader::ColumnReader;
use crate::encoding::dict::Dictionary;
use crate::layout::block::DataBlock;
use crate::layout::types::{Compression, Encoding};
use crate::open::CFile;
use coldframe_core::salvage::Loss;

/// The blocks of a range of ordinals.
#[derive(Clone, Debug)]
pub struct ColumnScan {
    context: Arc<ColumnContext>,
    blocks: Vec<DataBlock>,
}

impl ColumnScan {
    /// A scan of `rows` that returns values as `to`: walks the index and reads the dictionary.
    pub fn new(file: &CFile, rows: Range<u64>, to: &DataType) -> Result<Self> {
        Self::of_blocks(file, file.blocks(rows)?, to)
    }

    /// A scan of the given blocks.
    pub fn of_blocks(file: &CFile, blocks: Vec<DataBlock>, to: &DataType) -> Result<Self> {
        let dictionary = if blocks.is_empty() { None } else { file.dictionary()? };
        Self::with_dictionary(file, blocks, to, dictionary)
    }

    /// A scan of the given blocks with a dictionary that was read before; it is `None` also if the dictionary
    /// cannot be read.
    pub fn with_dictionary(
        file: &CFile,
        blocks: Vec<DataBlock>,
        to: &DataType,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Result<Self> {
        let footer = file.footer();
        footer.data_type.check_arrow(to)?;
        let context = Arc::new(ColumnContext {
            source: file.source().clone(),
            format: *file.format(),
            data_type: footer.data_type,
            encoding: footer.encoding,
            nullable: footer.nullable,
            to: to.clone(),
            dictionary,
        });
        Ok(Self { context, blocks })
    }

    /// The context that the scan's parts share.
    pub fn context(&self) -> &Arc<ColumnContext> {
        &self.context
    }

    /// The blocks of the scan.
    pub fn blocks(&self) -> &[DataBlock] {
        &self.blocks
    }

    /// The part with the given rows.
    pub fn part(&self, rows: Range<u64>) -> ColumnPart {
        let from = self.blocks.partition_point(|b| b.rows.end <= rows.start);
        let to = self.blocks.partition_point(|b| b.rows.start < rows.end);
        let blocks = self.blocks.get(from..to.max(from)).unwrap_or_default().to_vec();
        ColumnPart { context: self.context.clone(), blocks, rows }
    }
}

/// Some ordinals of a column, which are fetched and decoded together.
#[derive(Clone, Debug)]
pub struct ColumnPart {
    context: Arc<ColumnContext>,
    blocks: Vec<DataBlock>,
    rows: Range<u64>,
}

impl ColumnPart {
    /// The context that all parts of the scan share.
    pub fn context(&self) -> &Arc<ColumnContext> {
        &self.context
    }

    /// The blocks that hold the part's rows.
    pub fn blocks(&self) -> &[DataBlock] {
        &self.blocks
    }

    /// Whether the part begins and ends with a block, so that all contents of its blocks are decoded.
    pub(crate) fn has_whole_blocks(&self) -> bool {
        let (first, last) = (self.blocks.first(), self.blocks.last());
        first.zip(last).is_some_and(|(first, last)| {
            (first.rows.start, last.rows.end) == (self.rows.start, self.rows.end)
        })
    }

    /// The part's ordinals.
    pub fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// The ranges to fetch, one per block.
    pub fn fetch(&self) -> Vec<Fetch> {
        let fetch = |b: &DataBlock| Fetch { source: self.context.source.clone(), range: b.pointer.range() };
        self.blocks.iter().map(fetch).collect()
    }

    /// A reader positioned at the first row; `bytes[i]` are the bytes of `fetch()[i]`.
    pub fn open(&self, bytes: Vec<Bytes>) -> Result<ColumnReader> {
        ColumnReader::new(self.context.clone(), self.blocks.clone(), bytes, self.rows.clone())
    }

    /// Decodes each block once, and returns the losses: blocks that fail, values that contradict their type, and rows that
    /// no block has. Blocks are decoded whole, so that parts of a block agree on what is lost.
    pub fn survey(&self, bytes: &[Bytes]) -> Vec<Loss> {
        self.counted_losses(bytes).into_iter().map(|(loss, _)| loss).collect()
    }

    /// Like [`Self::survey`]. Each loss has a flag: whether its rows exist. They do not if the block states fewer rows
    /// than index and footer.
    pub(crate) fn counted_losses(&self, bytes: &[Bytes]) -> Vec<(Loss, bool)> {
        let mut lost = Vec::new();
        let mut at = self.rows.start;
        for (block, bytes) in self.blocks.iter().zip(bytes) {
            let rows_of_part = block.rows.start.max(self.rows.start)..block.rows.end.min(self.rows.end);
            if at < rows_of_part.start {
                lost.push((self.gap(at..rows_of_part.start), true));
            }
            at = rows_of_part.end;
            if let Err(e) = read_block(self.context.clone(), block, bytes, |_| {}) {
                let rows = match self.long_decimals(block, bytes) {
                    Some(values) => values.into_iter().map(|rows| (rows, true)).collect(),
                    None => {
                        let agreed = block.rows.end.min(self.stated_end(block, bytes).unwrap_or(u64::MAX));
                        vec![(block.rows.start..agreed, true), (agreed..block.rows.end, false)]
                    }
                };
                for (rows, exist) in rows {
                    let rows = rows.start.max(rows_of_part.start)..rows.end.min(rows_of_part.end);
                    if !rows.is_empty() {
                        lost.push((Loss::from_error(&e, block.pointer.range(), rows), exist));
                    }
                }
            }
        }
        if at < self.rows.end {
            lost.push((self.gap(at..self.rows.end), true));
        }
        lost
    }

    /// Where the rows of a block end according to the block itself. Only blocks with nulls state their number of rows.
    fn stated_end(&self, block: &DataBlock, bytes: &Bytes) -> Option<u64> {
        if !self.context.nullable {
            return None;
        }
        let contents = self.context.format.open_owned(bytes, block.pointer.offset).ok()?;
        block.rows.start.checked_add(Cursor::new(&contents, 0).uleb128().ok()?)
    }

    /// The rows of a block whose decimals are too long, if the block is otherwise readable and stores each
    /// value by itself: in compressed values, a changed byte changes other values, too.
    fn long_decimals(&self, block: &DataBlock, bytes: &Bytes) -> Option<Vec<Range<u64>>> {
        let ColumnContext { encoding, format, .. } = self.context.as_ref();
        let limit = self.context.decimal_limit()?;
        if *encoding != Encoding::Plain || format.compression != Compression::None {
            return None;
        }
        let mut lost: Vec<Range<u64>> = Vec::new();
        let mut row = block.rows.start;
        let read = read_block(Arc::new(self.context.widest()?), block, bytes, |array| {
            for value in array.as_primitive_opt::<Decimal128Type>().into_iter().flatten() {
                if value.is_some_and(|value| value.unsigned_abs() >= limit.unsigned_abs()) {
                    match lost.last_mut().filter(|last| last.end == row) {
                        Some(last) => last.end += 1,
                        None => lost.push(row..row + 1),
                    }
                }
                row += 1;
            }
        });
        read.is_ok().then_some(lost).filter(|_| row == block.rows.end)
    }

    fn gap(&self, rows: Range<u64>) -> Loss {
        let reason = "no data block in the index has these ordinals".to_owned();
        Loss { rows, bytes: 0..0, structure: "positional index".to_owned(), reason }
    }
}

/// Decodes a block, and passes on its values.
fn read_block(
    context: Arc<ColumnContext>,
    block: &DataBlock,
    bytes: &Bytes,
    mut with: impl FnMut(ArrayRef),
) -> Result<()> {
    let rows = block.rows.clone();
    let mut reader = ColumnReader::new(context, vec![block.clone()], vec![bytes.clone()], rows)?;
    while !reader.rows().is_empty() {
        let left = reader.rows().end - reader.rows().start;
        with(reader.read_some(usize::try_from(left).unwrap_or(usize::MAX))?);
    }
    Ok(())
}
