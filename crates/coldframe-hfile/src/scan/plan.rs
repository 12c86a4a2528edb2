//! Plans the runs of blocks of a split: by the index, or by walking from block to block if the index is
//! damaged and `on_error` allows it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::format::Fetch;
use coldframe_core::{
    Damage, DecodeUnit, Error, ErrorContext, KeyRange, OnError, Plan, PlanRequest, Result, Unit,
};

use crate::layout::index::BlockRef;
use crate::layout::order::RowOrder;
use crate::open::RawFile;
use crate::prune::cursor::IndexCursor;
use crate::recover::walk::{BlockWalk, Step};
use crate::scan::decode::{Blocks, DecodeRun, Piece};
use crate::scan::scout::{Scout, ScoutRun};
use crate::scan::tally::Tally;

/// Bytes on disk after which a run ends: few enough to be still in the processor's caches when they are
/// decoded.
const RUN_BYTES: u64 = 2 << 20;

/// Plans runs of blocks.
pub(crate) struct BlockPlan {
    file: Arc<RawFile>,
    request: PlanRequest,
    finder: BlockFinder,
    split: Range<u64>,
    keys: KeyRange,
    /// The end of the last returned block; `None` if the bytes up to the next block are not checked.
    at: Option<u64>,
    /// The offset of the last data block.
    last: Option<u64>,
    /// A block read from the index but not returned yet.
    held: Option<BlockRef>,
    runs: u64,
    /// A run ends before a block at or after this offset. Damage from there on is recorded by another split.
    pause: u64,
    /// Damaged bytes that lie after the last data block.
    lost: Option<Range<u64>>,
    /// Compares the number of cells with the trailer; set for a scan of the whole file.
    tally: Option<Arc<Tally>>,
    /// Decodes the filter's columns first; set if this can make the scan faster.
    scout: Option<Arc<Scout>>,
}

/// How blocks are located.
enum BlockFinder {
    Index(IndexCursor),
    Walk(BlockWalk),
    Done,
}

impl BlockPlan {
    /// Plans the blocks that begin in `split` and may hold rows in `keys`.
    pub(crate) fn new(
        file: Arc<RawFile>,
        request: PlanRequest,
        split: Range<u64>,
        keys: KeyRange,
    ) -> Result<Self> {
        let skips = request.scan.on_error != OnError::Raise;
        match &file.damage {
            Some(damage) if !skips => return Err(damage.to_error()),
            // If there are several splits, the first split records the damage.
            Some(damage) if split.start == 0 => request.damage.push(damage.clone()),
            _ => {}
        }
        let keys =
            if file.order == RowOrder::Bytes && file.damage.is_none() { keys } else { KeyRange::default() };
        let whole = split.start == 0 && split.end >= file.source.len() && keys == KeyRange::default();
        let tally = (whole && file.damage.is_none())
            .then(|| Arc::new(Tally::new(file.trailer.entry_count, file.trailer_start())));
        let mut cursor = IndexCursor::new(file.clone());
        cursor.skip_before(split.start);
        let mut plan = Self {
            at: None,
            last: None,
            held: None,
            finder: BlockFinder::Done,
            split,
            keys,
            runs: 0,
            pause: u64::MAX,
            lost: None,
            tally,
            scout: None,
            file,
            request,
        };
        if let Some(lower) = &plan.keys.lower {
            if let Err(e) = cursor.seek(lower) {
                plan.lose_index(e)?;
                return Ok(plan);
            }
        } else if plan.split.start == 0 {
            plan.at = Some(plan.file.trailer.first_data_block.unwrap_or(0));
        }
        plan.finder = BlockFinder::Index(cursor);
        Ok(plan)
    }

    /// Decodes the filter's columns of each block first.
    pub(crate) fn scouted(mut self) -> Result<Self> {
        self.scout = Scout::new(&self.request)?.map(Arc::new);
        Ok(self)
    }

    fn skips(&self) -> bool {
        self.request.scan.on_error != OnError::Raise
    }

    /// The offset at which the data blocks end, or a later offset.
    fn data_end(&self) -> u64 {
        let trailer = &self.file.trailer;
        let end = match (self.file.damage.is_some(), trailer.major) {
            (true, _) => u64::MAX,
            (_, 1) => trailer.file_info_offset,
            _ => trailer.load_on_open_offset,
        };
        end.min(self.file.source.len())
    }

    /// Records damage to the index and continues by walking; fails under `raise`.
    fn lose_index(&mut self, e: Error) -> Result<()> {
        if !self.skips() || !e.is_damage() || self.file.context.major == 1 {
            return Err(e);
        }
        let from = self.at.unwrap_or(self.split.start);
        self.request.damage.push(Damage::from_error(&e, from..from, Some(0)));
        self.keys = KeyRange::default();
        let context = &self.file.context;
        let end = self.data_end();
        let source = self.file.source.clone();
        let mut walk = BlockWalk::new(source, context.with_checksums, context.limits, from..end);
        if self.at.is_none() {
            walk.align()?;
        }
        self.finder = BlockFinder::Walk(walk);
        Ok(())
    }

    /// The next data block of the split, by the index or by walking.
    fn next_block(&mut self) -> Result<Option<BlockRef>> {
        if let Some(block) = self.held.take() {
            return Ok(Some(block));
        }
        loop {
            let next = match &mut self.finder {
                BlockFinder::Done => return Ok(None),
                BlockFinder::Index(_) => self.next_in_index(),
                BlockFinder::Walk(_) => self.next_by_walking(),
            };
            match next {
                Ok(Some(block)) if block.offset < self.split.start => {
                    self.at = Some(self.file.range_of(block).end);
                }
                Ok(Some(block)) if block.offset < self.split.end => {
                    self.last = Some(block.offset);
                    return Ok(Some(block));
                }
                Ok(_) => {
                    self.finder = BlockFinder::Done;
                    return Ok(None);
                }
                Err(e) => self.lose_index(e)?,
            }
        }
    }

    fn next_in_index(&mut self) -> Result<Option<BlockRef>> {
        let BlockFinder::Index(cursor) = &mut self.finder else { return Ok(None) };
        let Some(entry) = cursor.next_entry()? else {
            self.finder = BlockFinder::Done;
            return self.check_end().map(|()| None);
        };
        if self.keys.upper.as_ref().is_some_and(|upper| entry.row() >= upper.as_slice()) {
            return Ok(None);
        }
        let range = self.file.range_of(entry.block);
        let end = self.data_end();
        let from = self.at.unwrap_or(range.start);
        if range.start < from || range.end > end || range.end <= range.start {
            let message = format!(
                "expected a data block in bytes {from}..{end}, found one in {}..{}",
                range.start, range.end
            );
            return Err(Error::corrupt(message).at(range.start).within("data index"));
        }
        Ok(Some(entry.block))
    }

    /// Checks that the last block in the index is the trailer's last data block. If the trailer is lost,
    /// checks that the rest of the file consists of blocks.
    fn check_end(&mut self) -> Result<()> {
        if let (Some(at), true) = (self.at, self.file.damage.is_some()) {
            let end = self.data_end();
            // The last split records the damage.
            let foreign = if self.split.end.min(self.pause) >= end { end } else { 0 };
            return self.cross(at..end, foreign);
        }
        let trailer = &self.file.trailer;
        let whole =
            self.keys == KeyRange::default() && self.split.end >= self.data_end() && self.split.start == 0;
        if !whole || trailer.major == 1 || self.file.damage.is_some() || self.last == trailer.last_data_block
        {
            return Ok(());
        }
        let place = |block: Option<u64>| block.map_or_else(|| "none".to_owned(), |at| at.to_string());
        let (expected, actual) = (place(trailer.last_data_block), place(self.last));
        // In empty files, writers store either 0 or no offset.
        if self.last.is_none()
            && matches!(trailer.last_data_block, None | Some(0))
            && trailer.entry_count == 0
        {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected the last data block at {expected}, found {actual}"))
            .within("data index"))
    }

    fn next_by_walking(&mut self) -> Result<Option<BlockRef>> {
        let BlockFinder::Walk(walk) = &mut self.finder else { return Ok(None) };
        while let Some(step) = walk.step()? {
            match step {
                Step::Block(offset, header) if header.block_type.is_data() => {
                    let size = u32::try_from(header.block_len()).unwrap_or(u32::MAX);
                    // The bytes between blocks were checked here.
                    self.at = Some(offset);
                    return Ok(Some(BlockRef { offset, size }));
                }
                Step::Block(..) => {}
                Step::Damage(range, e) => {
                    if range.start < self.split.end {
                        give_up(&mut self.lost, &self.request, self.pause, &e, range);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Ends the run before the first block at or after `at`.
    pub(crate) fn pause_at(&mut self, at: u64) {
        self.pause = at;
        if at < self.file.source.len() {
            self.tally = None;
        }
    }

    /// The damaged bytes after the last data block.
    pub(crate) fn take_lost(&mut self) -> Option<Range<u64>> {
        self.lost.take()
    }

    /// Walks over the bytes between two data blocks if these are too many to be fetched with a run.
    fn cross(&mut self, range: Range<u64>, foreign: u64) -> Result<()> {
        let context = &self.file.context;
        if context.major == 1 {
            return Ok(());
        }
        let source = self.file.source.clone();
        let mut walk = BlockWalk::new(source, context.with_checksums, context.limits, range);
        while let Some(step) = walk.step()? {
            let (range, e) = match step {
                Step::Block(at, header) if header.block_type.is_data() => {
                    let message =
                        format!("expected a data block in the index, found one at {at} that is not");
                    let e = Error::corrupt(message).at(at).within("data index");
                    (at..at.saturating_add(header.block_len()), e)
                }
                Step::Block(..) => continue,
                Step::Damage(range, e) => (range, e),
            };
            if !self.skips() {
                return Err(e);
            }
            give_up(&mut self.lost, &self.request, foreign, &e, range);
        }
        Ok(())
    }

    /// The pieces of the next run. It may be empty although more runs follow.
    fn next_pieces(&mut self) -> Result<VecDeque<Piece>> {
        let mut pieces = VecDeque::new();
        let mut bytes = 0u64;
        while bytes < RUN_BYTES {
            let Some(block) = self.next_block()? else { break };
            let range = self.file.range_of(block);
            if let Some(at) = self.at.filter(|at| *at < range.start) {
                if range.start - at <= RUN_BYTES {
                    pieces.push_back(Piece::Between(at..range.start));
                } else {
                    // Meta blocks may precede the first data block, and index blocks may lie between data
                    // blocks, but rarely this many bytes.
                    self.cross(at..range.start, self.pause)?;
                    self.at = Some(range.start);
                    if !pieces.is_empty() {
                        self.held = Some(block);
                        break;
                    }
                }
            }
            if let Some(lost) = self.lost.take() {
                pieces.push_back(Piece::Lost(lost));
            }
            self.at = Some(range.end);
            let len = range.end - range.start;
            bytes = bytes.saturating_add(len);
            self.file.context.limits.block("a block", len).at(range.start).within(|| "data index")?;
            pieces.push_back(Piece::Data(block, range));
            if block.offset >= self.pause {
                break;
            }
        }
        Ok(pieces)
    }

    /// The next run and its bytes.
    pub(crate) fn next_run(&mut self) -> Result<Option<(Range<u64>, Blocks)>> {
        loop {
            let pieces = self.next_pieces()?;
            if let Some(bytes) = span(&pieces) {
                let (context, request) = (self.file.context.clone(), self.request.clone());
                let tally = self.tally.as_ref().map(Tally::open);
                let blocks = Blocks::new(context, request, bytes.start, pieces, self.pause, tally);
                return Ok(Some((bytes, blocks)));
            }
            if matches!(self.finder, BlockFinder::Done) && self.held.is_none() {
                return self.end().map(|()| None);
            }
        }
    }

    /// After all blocks are planned, compares the number of cells with the trailer's.
    fn end(&mut self) -> Result<()> {
        let Some(tally) = self.tally.take() else { return Ok(()) };
        match tally.planned(self.lost.is_some()) {
            Err(e) if self.skips() => {
                let at = e.offset().unwrap_or(0);
                self.request.damage.push(Damage::from_error(&e, at..at, Some(0)));
                Ok(())
            }
            ended => ended,
        }
    }

    /// The unit of a run.
    pub(crate) fn unit(&mut self, bytes: Range<u64>, decode: Box<dyn DecodeUnit>) -> Unit {
        let structure = format!("run of blocks {}", self.runs);
        self.runs += 1;
        let fetch = vec![Fetch { source: self.file.source.clone(), range: bytes.clone() }];
        Unit { fetch, bytes, rows: None, structure, decode }
    }
}

/// Records damaged bytes (if no other split records them), and adds them to the range `lost`, which ends at
/// the next block.
fn give_up(lost: &mut Option<Range<u64>>, request: &PlanRequest, foreign: u64, e: &Error, range: Range<u64>) {
    if range.start < foreign {
        request.damage.push(Damage::from_error(e, range.clone(), None));
    }
    let start = lost.as_ref().map_or(range.start, |lost| lost.start);
    *lost = Some(start..range.end);
}

/// The byte range of consecutive pieces.
fn span(pieces: &VecDeque<Piece>) -> Option<Range<u64>> {
    let mut ranges = pieces.iter().filter_map(|piece| match piece {
        Piece::Data(_, range) | Piece::Between(range) => Some(range),
        Piece::Lost(_) => None,
    });
    let first = ranges.next()?;
    Some(first.start..ranges.next_back().unwrap_or(first).end)
}

impl Plan for BlockPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let run = self.next_run()?;
        Ok(run.map(|(bytes, blocks)| {
            let all = DecodeRun(blocks);
            let decode: Box<dyn DecodeUnit> = match &self.scout {
                Some(scout) => Box::new(ScoutRun { scout: scout.clone(), all }),
                None => Box::new(all),
            };
            self.unit(bytes, decode)
        }))
    }
}
