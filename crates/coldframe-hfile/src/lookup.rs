//! Look-ups of cells by row: single rows, many rows, and whether a row may exist.

pub(crate) mod rows;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coldframe_core::{Error, ErrorContext, Result};

use crate::cache::SearchBlock;
use crate::layout::cell::{Cell, CellSink};
use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::open::RawFile;
use crate::prune::bloom::{Bloom, Which};
use crate::prune::cursor::{Entry, IndexCursor};
use crate::prune::prove;
use crate::scan::columns::Columns;

/// Maximum bytes of blocks that `get_many` holds at a time.
const WINDOW_BYTES: u64 = 4 << 20;
/// Maximum rows of a batch of a look-up.
const BATCH_ROWS: usize = 65536;
/// If a source's [`worthwhile_gap`](coldframe_core::ReadAt::worthwhile_gap) is larger than this, its requests
/// are considered expensive.
const LOCAL_GAP: u64 = 4096;

/// State shared by look-ups: the bloom filters that have been read, and buffers.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    general: OnceLock<Option<Arc<Bloom>>>,
    delete_family: OnceLock<Option<Arc<Bloom>>>,
    readers: Mutex<Vec<BlockReader>>,
}

impl Lookups {
    /// The bloom filter, which is read on first use.
    fn bloom(&self, file: &RawFile, which: Which) -> Result<Option<Arc<Bloom>>> {
        let slot = match which {
            Which::General => &self.general,
            Which::DeleteFamily => &self.delete_family,
        };
        if let Some(bloom) = slot.get() {
            return Ok(bloom.clone());
        }
        let bloom = Bloom::open(file, which)?.map(Arc::new);
        Ok(slot.get_or_init(|| bloom).clone())
    }

    /// Runs `with` with a block reader whose buffers are reused from call to call.
    fn with_reader<T>(&self, file: &RawFile, with: impl FnOnce(&mut BlockReader) -> Result<T>) -> Result<T> {
        let free = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = free.unwrap_or_else(|| file.block_reader());
        let result = with(&mut reader);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        result
    }
}

impl Lookups {
    /// The cells of one row (the pairs of one key), in file order.
    pub(crate) fn get(&self, raw: &Arc<RawFile>, schema: &SchemaRef, row: &[u8]) -> Result<Vec<RecordBatch>> {
        let mut sink = Sink::new(schema.clone())?;
        self.each_block(raw, row, |block| Ok(sink.append_row(block, 0, row)? < block.len()))?;
        sink.finish()
    }

    /// Passes the cells of one row (the pairs of one key) to `with`, in file order, without copying them.
    pub(crate) fn find(
        &self,
        raw: &Arc<RawFile>,
        row: &[u8],
        mut with: impl FnMut(&Cell<'_>) -> Result<()>,
    ) -> Result<()> {
        // No cell is passed on before all blocks were compared with the index.
        let mut blocks = Vec::new();
        self.each_block(raw, row, |block| {
            let from = block.lower_bound(0, row);
            let mut at = from;
            while block.cell(at)?.is_some_and(|cell| cell.row == row) {
                at += 1;
            }
            blocks.push((block.clone(), from..at));
            Ok(at < block.len())
        })?;
        for (block, cells) in blocks {
            for at in cells {
                block.cell(at)?.map_or(Ok(()), |cell| with(&cell))?;
            }
        }
        Ok(())
    }

    /// Calls `with` on the blocks that may hold a row, until `with` returns true.
    fn each_block(
        &self,
        raw: &Arc<RawFile>,
        row: &[u8],
        with: impl FnMut(&Arc<SearchBlock>) -> Result<bool>,
    ) -> Result<()> {
        raw.check()?;
        self.with_reader(raw, |reader| {
            if self.filtered_out(raw, reader, row)? {
                return Ok(());
            }
            prove::of_row(raw, reader, row)?;
            each_block_of(raw, reader, row, with)
        })
    }

    /// The cells of many rows, each row once, in file order, in a single pass over the index and the blocks.
    pub(crate) fn get_many(
        &self,
        raw: &Arc<RawFile>,
        schema: &SchemaRef,
        rows: &[Vec<u8>],
    ) -> Result<Vec<RecordBatch>> {
        raw.check()?;
        let mut sorted: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        sorted.sort_unstable_by(|a, b| raw.order.compare(a, b));
        sorted.dedup();
        let mut sink = Sink::new(schema.clone())?;
        self.with_reader(raw, |reader| {
            let mut many = Many {
                file: raw,
                wanted: Vec::new(),
                blocks: Vec::new(),
                bounds: Vec::new(),
                bytes: 0,
                cursor: IndexCursor::new(raw.clone()),
                near: false,
            };
            for row in sorted {
                if self.filtered_out(raw, reader, row)? {
                    continue;
                }
                many.add(row)?;
                if many.bytes >= WINDOW_BYTES {
                    many.flush(reader, &mut sink)?;
                }
            }
            many.flush(reader, &mut sink)
        })?;
        sink.finish()
    }

    /// Whether the file may contain a row or column: `false` only if a bloom filter rules it out.
    pub(crate) fn might_contain(
        &self,
        raw: &RawFile,
        which: Which,
        row: &[u8],
        qualifier: Option<&[u8]>,
    ) -> Result<bool> {
        raw.check()?;
        let Some(bloom) = self.bloom(raw, which)? else { return Ok(true) };
        self.with_reader(raw, |reader| bloom.might_contain(raw, reader, row, qualifier))
    }

    /// Whether the bloom filter rules out a row. If requests are expensive, the filter is not read, since
    /// each chunk costs a request.
    fn filtered_out(&self, raw: &RawFile, reader: &mut BlockReader, row: &[u8]) -> Result<bool> {
        if raw.source.worthwhile_gap() > LOCAL_GAP {
            return Ok(false);
        }
        match self.bloom(raw, Which::General)? {
            Some(bloom) if bloom.filters_rows() => Ok(!bloom.might_contain(raw, reader, row, None)?),
            _ => Ok(false),
        }
    }
}

/// Calls `with` on the blocks that may hold a row, until `with` returns true.
fn each_block_of(
    file: &Arc<RawFile>,
    reader: &mut BlockReader,
    row: &[u8],
    mut with: impl FnMut(&Arc<SearchBlock>) -> Result<bool>,
) -> Result<()> {
    let mut cursor = IndexCursor::new(file.clone());
    cursor.seek(row)?;
    let mut next = cursor.next_entry()?;
    while let Some(entry) = next.take() {
        let continues = |cursor: &IndexCursor| {
            cursor.peek_row().is_some_and(|next| file.order.compare(next, row).is_le())
        };
        let mut visit = |blocks: &[Arc<SearchBlock>], entries: &[Entry], cursor: &IndexCursor| {
            visit_blocks(file, row, blocks, entries, cursor, &mut with)
        };
        let visited = if continues(&cursor) {
            // The row may continue in the next block, so both are read at once.
            let mut entries = vec![entry];
            while entries.len() < 64 && continues(&cursor) {
                let Some(entry) = cursor.next_entry()? else { break };
                entries.push(entry);
            }
            let blocks: Vec<BlockRef> = entries.iter().map(|entry| entry.block).collect();
            visit(&file.search_blocks(reader, &blocks)?, &entries, &cursor)?
        } else {
            let block = file.search_block(reader, entry.block)?;
            visit(std::slice::from_ref(&block), std::slice::from_ref(&entry), &cursor)?
        };
        let is_between = match visited {
            Visited::Between(entry) => {
                // Only the index says that no block has the row.
                prove_before(file, reader, &entry)?;
                return Ok(());
            }
            Visited::Done => return Ok(()),
            Visited::Behind(is_between) => is_between,
        };
        if is_between || cursor.peek_row().is_none_or(|next| file.order.compare(next, row).is_le()) {
            match cursor.next_entry()? {
                Some(entry) if file.order.compare(entry.row(), row).is_le() => next = Some(entry),
                Some(entry) if is_between => {
                    let block = file.search_block(reader, entry.block)?;
                    block.prove(entry.row(), cursor.peek_row()).map_err(|e| in_block(e, entry.block))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Where the search for a row stands after some blocks.
enum Visited {
    /// The search has passed the row.
    Done,
    /// The first block, which belongs to this entry, begins after the row.
    Between(Entry),
    /// The last block ends before the row if this is true, and at the row otherwise.
    Behind(bool),
}

/// Compares blocks with the index, and calls `with` on them until it returns true.
fn visit_blocks(
    file: &RawFile,
    row: &[u8],
    blocks: &[Arc<SearchBlock>],
    entries: &[Entry],
    cursor: &IndexCursor,
    with: &mut impl FnMut(&Arc<SearchBlock>) -> Result<bool>,
) -> Result<Visited> {
    let order = file.order;
    let behind = entries.iter().skip(1).map(|entry| Some(entry.row())).chain([cursor.peek_row()]);
    for ((block, entry), next) in blocks.iter().zip(entries).zip(behind) {
        block.prove(entry.row(), next).map_err(|e| in_block(e, entry.block))?;
    }
    let rows = blocks.first().and_then(|block| block.rows());
    if let (Some((first, _)), Some(entry)) = (rows, entries.first())
        && order.compare(row, first).is_lt()
    {
        return Ok(Visited::Between(entry.clone()));
    }
    for block in blocks {
        if with(block)? {
            return Ok(Visited::Done);
        }
    }
    let last = blocks.last().and_then(|block| block.rows());
    Ok(Visited::Behind(last.is_some_and(|(_, last)| order.compare(last, row).is_lt())))
}

/// Compares the block before the block of `entry` with the index.
fn prove_before(file: &Arc<RawFile>, reader: &mut BlockReader, entry: &Entry) -> Result<()> {
    let mut cursor = IndexCursor::new(file.clone());
    cursor.seek(entry.row())?;
    match cursor.next_entry()? {
        Some(before) if before.block.offset < entry.block.offset => {
            let block = file.search_block(reader, before.block)?;
            block.prove(before.row(), Some(entry.row())).map_err(|e| in_block(e, before.block))
        }
        _ => Ok(()),
    }
}

fn in_block(e: Error, block: BlockRef) -> Error {
    e.at(block.offset).within("data block")
}

/// Collects cells into batches.
struct Sink {
    columns: Columns,
    batches: Vec<RecordBatch>,
}

impl Sink {
    fn new(schema: SchemaRef) -> Result<Self> {
        Ok(Self { columns: Columns::new(schema, BATCH_ROWS)?, batches: Vec::new() })
    }

    /// Appends the cells of `row` in a block, starting at cell `from`; returns the index of the first cell
    /// after the row.
    fn append_row(&mut self, block: &SearchBlock, from: usize, row: &[u8]) -> Result<usize> {
        let mut at = block.lower_bound(from, row);
        if self.columns.is_full_for(block.bytes.len()) {
            self.batches.push(self.columns.finish()?);
        }
        let sink = self.columns.begin_block();
        while let Some(cell) = block.cell(at)?.filter(|cell| cell.row == row) {
            sink.cell(&cell)?;
            at += 1;
        }
        self.columns.end_block()?;
        Ok(at)
    }

    fn finish(mut self) -> Result<Vec<RecordBatch>> {
        if !self.columns.is_empty() || self.batches.is_empty() {
            self.batches.push(self.columns.finish()?);
        }
        Ok(self.batches)
    }
}

/// Rows that are looked up together.
struct Many<'a> {
    file: &'a Arc<RawFile>,
    /// The rows, and for each of them the range of `blocks` that may hold it.
    wanted: Vec<(&'a [u8], std::ops::Range<usize>)>,
    blocks: Vec<BlockRef>,
    /// For each block, its least row and the least row of the next block, as the index states them.
    bounds: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    bytes: u64,
    cursor: IndexCursor,
    /// Whether the index cursor is directly after the last of `blocks`.
    near: bool,
}

impl<'a> Many<'a> {
    /// Adds a row and the blocks that may hold it. Rows must be added in order.
    fn add(&mut self, row: &'a [u8]) -> Result<()> {
        let file = self.file;
        // Usually the row is in the same block as the previous row, and ends in that block.
        if self.near
            && let (Some(last), Some(next)) = (self.blocks.len().checked_sub(1), self.cursor.peek_row())
            && file.order.compare(row, next).is_lt()
        {
            self.wanted.push((row, last..last + 1));
            return Ok(());
        }
        let cursor = &mut self.cursor;
        cursor.seek(row)?;
        self.near = true;
        let mut range = None;
        while range.is_none() || cursor.peek_row().is_none_or(|next| file.order.compare(next, row).is_le()) {
            let Some(entry) = cursor.next_entry()? else { break };
            if range.is_some() && file.order.compare(entry.row(), row).is_gt() {
                self.near = false;
                break;
            }
            let known = self.blocks.partition_point(|b| b.offset < entry.block.offset);
            if known == self.blocks.len() {
                self.bytes = self.bytes.saturating_add(entry.block.size.into());
                self.blocks.push(entry.block);
                let next = cursor.peek_row().map(<[u8]>::to_vec);
                self.bounds.push((entry.row().to_vec(), next));
            } else if self.blocks.get(known) != Some(&entry.block) {
                // The search went back to a block that was passed over.
                return Err(prove::lie("sorted rows", entry.block));
            }
            let first = range.map_or(known, |r: (usize, usize)| r.0);
            range = Some((first, known + 1));
        }
        if let Some((first, end)) = range {
            self.wanted.push((row, first..end));
        }
        Ok(())
    }

    /// Reads the blocks and extracts the rows.
    fn flush(&mut self, reader: &mut BlockReader, sink: &mut Sink) -> Result<()> {
        let blocks = self.file.search_blocks(reader, &self.blocks)?;
        for ((block, place), (least, next)) in blocks.iter().zip(&self.blocks).zip(self.bounds.drain(..)) {
            block.prove(&least, next.as_deref()).map_err(|e| in_block(e, *place))?;
        }
        // The blocks are in the cache now.
        for (row, range) in &self.wanted {
            let Some(proved) = prove::of_row(self.file, reader, row)? else { continue };
            let read = self.blocks.get(range.clone()).unwrap_or_default();
            // An index whose keys are not sorted may name other blocks the next time.
            if let (Some(first), Some(last)) = (read.first(), read.last())
                && proved != [*first, *last]
            {
                return Err(prove::lie("sorted rows", *first));
            }
        }
        // Rows are sorted, so within a block each search starts where the last one ended.
        let (mut current, mut at) = (usize::MAX, 0);
        for (row, range) in self.wanted.drain(..) {
            for i in range {
                let Some(block) = blocks.get(i) else { continue };
                if i != current {
                    (current, at) = (i, 0);
                }
                at = sink.append_row(block, at, row).within(|| "data block")?;
            }
        }
        self.blocks.clear();
        self.bytes = 0;
        Ok(())
    }
}
