//! Proves what the index says of a range of rows, by the blocks at its ends.
//!
//! ```text
//! index       | a       | f     | m         | s     |        a key is at most its block's first row, and no row before it is greater
//! rows        | b ..  e | f . k | o .. q  r | s . z |
//! range         [d ............ p)
//! compared      ^ block of d                ^ behind, unless the block before has a row from p on
//! ```
//!
//! Rows are sorted in the file, so no other block can have rows of the range: between the ends, blocks are read
//! one after the other, whatever their keys are.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::{Error, ErrorContext, KeyRange, Result};

use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::open::RawFile;
use crate::prune::cursor::{Entry, IndexCursor};
use crate::recover::walk::{BlockWalk, Step};

/// The contradiction between the index and the blocks at the ends of a range of rows, if there is one. Blocks beside
/// the range that cannot be read contradict nothing.
pub(crate) fn contradiction(file: &Arc<RawFile>, rows: &KeyRange) -> Result<Option<Error>> {
    contradiction_by(file, &mut file.block_reader(), rows)
}

/// [`contradiction`] for a single row, with a reader whose buffers are reused. Returns the first and the last block that
/// may have the row, if that was proved and there are any.
pub(crate) fn of_row(
    file: &Arc<RawFile>,
    reader: &mut BlockReader,
    row: &[u8],
) -> Result<Option<[BlockRef; 2]>> {
    let rows = KeyRange { lower: Some(row.to_vec()), upper: Some([row, &[0]].concat()) };
    prove(file, reader, &rows)?
}

fn contradiction_by(file: &Arc<RawFile>, reader: &mut BlockReader, rows: &KeyRange) -> Result<Option<Error>> {
    Ok(prove(file, reader, rows)?.err())
}

/// The blocks at the ends of a range of rows, or the contradiction.
fn prove(file: &Arc<RawFile>, reader: &mut BlockReader, rows: &KeyRange) -> Result<Proved> {
    if file.damage.is_some() {
        return Ok(Ok(None));
    }
    match (Prover { file, reader }).prove(rows) {
        Err(e) if e.is_damage() && e.structure().starts_with(LIE) => Ok(Err(e)),
        // The read itself meets this damage, if it is in the range.
        Err(e) if e.is_damage() => Ok(Ok(None)),
        ends => ends.map(Ok),
    }
}

type Proved = Result<Option<[BlockRef; 2]>>;

/// The structure of errors for statements of the index that the blocks contradict.
const LIE: &str = "data index: rows";

pub(crate) fn lie(expected: &str, block: BlockRef) -> Error {
    Error::corrupt(format!("expected {expected}, as the index states, found others"))
        .at(block.offset)
        .within(LIE)
}

struct Prover<'a> {
    file: &'a Arc<RawFile>,
    reader: &'a mut BlockReader,
}

impl Prover<'_> {
    fn prove(&mut self, rows: &KeyRange) -> Proved {
        let order = self.file.order;
        let mut cursor = IndexCursor::new(self.file.clone());
        if let Some(lower) = &rows.lower {
            cursor.seek(lower)?;
        }
        let (mut first, mut last, mut behind) = (None, None, None);
        while let Some(entry) = cursor.next_entry()? {
            if rows.upper.as_ref().is_some_and(|upper| order.compare(entry.row(), upper).is_ge()) {
                behind = Some(entry);
                break;
            }
            first.get_or_insert_with(|| entry.clone());
            last = Some(entry);
            if rows.upper.is_none() {
                break;
            }
        }
        if let (Some(lower), Some(head)) = (&rows.lower, first.as_ref().or(behind.as_ref())) {
            self.prove_start(head, lower)?;
        }
        if let Some(upper) = &rows.upper {
            self.prove_end(last.as_ref(), behind.as_ref(), upper)?;
        }
        Ok(first.zip(last).map(|(first, last)| [first.block, last.block]))
    }

    /// Whether no block before that of `head` has rows from `lower` on.
    fn prove_start(&mut self, head: &Entry, lower: &[u8]) -> Result<()> {
        let order = self.file.order;
        let is_before = |row: &[u8]| order.compare(row, lower).is_lt();
        let block = self.file.search_block(self.reader, head.block)?;
        if block.rows().is_some_and(|(first, _)| is_before(first)) {
            return Ok(());
        }
        let first = self.file.trailer.first_data_block.unwrap_or(0);
        if head.block.offset == first {
            return Ok(());
        }
        let before = self.before(head)?;
        let Some(before) = before else { return Err(lie("no data block before the first one", head.block)) };
        self.expect_no_block(self.file.range_of(before).end..head.block.offset)?;
        let block = self.file.search_block(self.reader, before)?;
        match block.rows() {
            Some((_, last)) if !is_before(last) => Err(lie("rows before those of the next block", before)),
            _ => Ok(()),
        }
    }

    /// The data block that precedes that of `head` in the index.
    fn before(&self, head: &Entry) -> Result<Option<BlockRef>> {
        let mut cursor = IndexCursor::new(self.file.clone());
        cursor.seek(head.row())?;
        let mut before = None;
        while let Some(entry) = cursor.next_entry()? {
            if entry.block.offset >= head.block.offset {
                return Ok(before);
            }
            before = Some(entry.block);
        }
        Ok(before)
    }

    /// Whether no block behind that of `last` has rows before `upper`.
    fn prove_end(&mut self, last: Option<&Entry>, behind: Option<&Entry>, upper: &[u8]) -> Result<()> {
        let order = self.file.order;
        let is_behind = |row: &[u8]| order.compare(row, upper).is_ge();
        if let Some(last) = last {
            let block = self.file.search_block(self.reader, last.block)?;
            if block.rows().is_some_and(|(_, last)| is_behind(last)) {
                return Ok(());
            }
        }
        let Some(behind) = behind else {
            let end = self.file.trailer.last_data_block;
            return match last {
                Some(last) if end.is_some_and(|end| last.block.offset < end) => {
                    Err(lie("no data block behind the last one", last.block))
                }
                _ => Ok(()),
            };
        };
        if let Some(last) = last {
            self.expect_no_block(self.file.range_of(last.block).end..behind.block.offset)?;
        }
        let block = self.file.search_block(self.reader, behind.block)?;
        match block.rows() {
            Some((first, _)) if !is_behind(first) => {
                Err(lie("rows behind those of the block before", behind.block))
            }
            _ => Ok(()),
        }
    }

    fn expect_no_block(&self, bytes: Range<u64>) -> Result<()> {
        match data_block_in(self.file, bytes)? {
            Some(at) => Err(lie("no data block between two others", BlockRef { offset: at, size: 0 })),
            None => Ok(()),
        }
    }
}

/// The offset of a data block in bytes between two data blocks that follow each other in the index.
pub(crate) fn data_block_in(file: &RawFile, bytes: Range<u64>) -> Result<Option<u64>> {
    let context = file.context();
    if context.major == 1 || bytes.is_empty() {
        return Ok(None);
    }
    let mut walk = BlockWalk::new(file.source.clone(), context.with_checksums, context.limits, bytes);
    while let Some(step) = walk.step().within(|| "data index")? {
        match step {
            Step::Block(at, header) if header.block_type.is_data() => return Ok(Some(at)),
            _ => {}
        }
    }
    Ok(None)
}
