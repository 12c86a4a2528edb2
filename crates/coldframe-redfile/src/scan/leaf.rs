//! The rows of one leaf in one row group, read from the pages of its chunk, some rows at a time.
//!
//! A page may end inside a row. The requested rows may end inside a page, which then stays open. Pages of
//! plain numbers without levels that are needed completely are decompressed directly into the column's
//! memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Decompressor;

use crate::pages::chunk::{ChunkContext, OpenPage, Spare};
use crate::pages::levels::{Levels, count_level};
use crate::pages::plain::{Values, fixed_width};
use crate::pages::walk::{Page, PageWalk};
use crate::schema::Leaf;

/// The maximum number of levels of a batch that no bytes limit: runs of levels take almost no bytes. More
/// levels are divided into several batches.
const MAX_UNBACKED: u64 = 1 << 24;

/// The parts of a chunk to read, in order.
#[derive(Clone, Debug)]
pub(crate) enum ChunkPart {
    /// A page; after a gap, it is read only from the first row that begins in it.
    Page {
        /// The page.
        page: Page,
        /// Whether to begin with the first row of the page, because the entries before it belong to a lost
        /// row.
        from_first_row: bool,
    },
    /// Rows that are lost.
    Gap {
        /// The number of lost rows.
        rows: u64,
    },
}

/// Where the parts come from.
#[derive(Clone, Debug)]
enum PartSource {
    /// A walk, whose errors end the scan.
    Walk(PageWalk),
    /// A survey, which has already seen all errors.
    Surveyed(VecDeque<ChunkPart>),
}

/// Some rows of a leaf: levels and dense values.
#[derive(Debug)]
pub(crate) struct LeafData {
    /// The number of entries: values, nulls and empty lists.
    pub(crate) entries: usize,
    /// The highest repetition level of the leaf.
    pub(crate) max_repetition: u8,
    /// The levels of each entry; empty if the maximum is 0.
    pub(crate) levels: Levels,
    /// The non-null values.
    pub(crate) values: Values,
    /// Whether `values` also has an element for each entry without a value.
    pub(crate) spread: bool,
}

impl LeafData {
    /// The memory that the data takes.
    fn bytes(&self) -> u64 {
        let levels = self.levels.definition.len() + self.levels.repetition.len();
        (levels + self.values.bytes()) as u64
    }
}

/// Reads the rows of one chunk.
#[derive(Clone)]
pub(crate) struct LeafReader {
    context: Arc<ChunkContext>,
    parts: PartSource,
    /// A page that was taken from the walk but not opened.
    next: Option<Page>,
    page: Option<OpenPage>,
    spare: Spare,
    /// The type that the values become.
    data_type: DataType,
}

impl LeafReader {
    /// Creates the reader of the pages of `walk`.
    pub(crate) fn new(context: Arc<ChunkContext>, data_type: &DataType, walk: PageWalk) -> Self {
        Self::over(context, data_type, PartSource::Walk(walk))
    }

    /// Creates a reader of the parts that a survey returned.
    pub(crate) fn of_parts(
        context: Arc<ChunkContext>,
        data_type: &DataType,
        parts: VecDeque<ChunkPart>,
    ) -> Self {
        Self::over(context, data_type, PartSource::Surveyed(parts))
    }

    fn over(context: Arc<ChunkContext>, data_type: &DataType, parts: PartSource) -> Self {
        let (spare, data_type) = (Spare::default(), data_type.clone());
        Self { context, parts, next: None, page: None, spare, data_type }
    }

    /// Opens the next page that has entries; `None` at the end and before a gap.
    fn open_page(&mut self, decompressor: &mut Decompressor) -> Result<Option<&mut OpenPage>> {
        while self.page.as_ref().is_none_or(|p| p.at >= p.count) {
            self.close_page()?;
            let (page, from_first_row) = match &mut self.parts {
                PartSource::Walk(walk) => {
                    match self.next.take().map_or_else(|| walk.next_page(), |p| Ok(Some(p)))? {
                        Some(page) => (page, false),
                        None => return Ok(None),
                    }
                }
                PartSource::Surveyed(parts) => match parts.pop_front() {
                    Some(ChunkPart::Page { page, from_first_row }) => (page, from_first_row),
                    Some(ChunkPart::Gap { rows: 0 }) => continue,
                    Some(gap) => {
                        parts.push_front(gap);
                        return Ok(None);
                    }
                    None => return Ok(None),
                },
            };
            let mut open = self.context.load(&page, decompressor, std::mem::take(&mut self.spare))?;
            if from_first_row {
                let first = open.levels.repetition.iter().position(|r| *r == 0).unwrap_or(open.count);
                let values = present(&self.context.leaf, &open.levels, 0..first);
                open.values.skip(values).map_err(|e| open.locate(e))?;
                open.present -= values;
                open.at = first;
            }
            self.page = Some(open);
        }
        Ok(self.page.as_mut())
    }

    /// Closes a page that was read to its end; an error if bytes are left.
    fn close_page(&mut self) -> Result<()> {
        let Some(page) = self.page.take() else { return Ok(()) };
        page.values.finish().map_err(|e| page.locate(e))?;
        let scratch = if self.context.codec.is_some() { page.values.into_memory() } else { Vec::new() };
        self.spare = Spare { levels: page.levels, scratch };
        Ok(())
    }

    /// Starting with the next page, appends as many whole pages as have at most `rows` rows in total, without
    /// opening them; returns how many rows were appended.
    fn append_pages(
        &mut self,
        rows: usize,
        decompressor: &mut Decompressor,
        data: &mut LeafData,
    ) -> Result<usize> {
        if self.context.leaf.max_definition > 0 || self.page.as_ref().is_some_and(|p| p.at < p.count) {
            return Ok(0);
        }
        self.close_page()?;
        while let PartSource::Walk(walk) = &mut self.parts
            && data.entries < rows
            && self.next.is_none()
            && let Some(page) = walk.next_page()?
        {
            let fits = page.data.num_values <= rows - data.entries;
            if fits && self.context.append_plain(&page, decompressor, &mut data.values) {
                data.entries += page.data.num_values;
            } else {
                self.next = Some(page);
            }
        }
        Ok(data.entries)
    }

    /// The next `rows` rows.
    pub(crate) fn read(&mut self, rows: usize, decompressor: &mut Decompressor) -> Result<LeafData> {
        let context = self.context.clone();
        let leaf = &context.leaf;
        // A column without levels may take over a page's buffer, but not the buffer of the whole row group.
        let shares = leaf.max_definition == 0 && context.codec.is_some();
        let mut data = LeafData {
            entries: 0,
            max_repetition: leaf.max_repetition,
            levels: Levels::default(),
            values: Values::of_type(leaf.physical_type, &self.data_type),
            spread: context.spreads(),
        };
        if let (Values::Fixed(values), Some(width)) = (&mut data.values, fixed_width(leaf.physical_type)) {
            values.reserve(rows.min(1 << 20) * width);
        }
        let left = rows - self.append_pages(rows, decompressor, &mut data)?;
        let max_unbacked = MAX_UNBACKED.max(rows as u64);
        let mut unbacked = 0;
        let left = self.advance(left, decompressor, |page, entries, present| {
            let entries_in_page = entries.len();
            data.entries += entries_in_page;
            context.limits.check_batch("the values of a column", rows, data.bytes())?;
            unbacked += if page.unbacked { entries_in_page as u64 } else { 0 };
            if unbacked > max_unbacked {
                match rows {
                    1 => drop(context.limits.block("a row's values", unbacked)?),
                    _ => return Err(Error::batch_too_long("the levels of a column", unbacked)),
                }
            }
            let first = data.levels.definition.len();
            match &page.runs {
                Some(runs) => runs.expand(entries.clone(), &mut data.levels.definition),
                None => {
                    let levels = page.levels.definition.get(entries.clone()).unwrap_or_default();
                    data.levels.definition.extend_from_slice(levels);
                }
            }
            let definition = data.levels.definition.get(first..).unwrap_or_default();
            let repetition = page.levels.repetition.get(entries).unwrap_or_default();
            data.levels.repetition.extend_from_slice(repetition);
            match data.spread {
                true => page.values.read_rows(definition, leaf.max_definition, &mut data.values),
                false if shares && entries_in_page == rows => {
                    page.values.read_shared(present, &mut data.values)
                }
                false => page.values.read(present, &mut data.values),
            }
        })?;
        if left == 0 {
            return Ok(data);
        }
        Err(Error::corrupt(format!("expected {left} more rows, found the end of the pages")))
    }

    /// Starting with the next page, skips as many whole pages as have at most `rows` rows in total, without
    /// decompressing them; returns how many rows were skipped.
    fn skip_pages(&mut self, rows: usize) -> Result<usize> {
        // How many rows a page of a repeated leaf has can be seen only from its levels.
        if self.context.leaf.max_repetition > 0 || self.page.as_ref().is_some_and(|p| p.at < p.count) {
            return Ok(0);
        }
        self.close_page()?;
        let mut passed = 0;
        while let PartSource::Walk(walk) = &mut self.parts
            && passed < rows
            && let Some(page) = self.next.take().map_or_else(|| walk.next_page(), |page| Ok(Some(page)))?
        {
            if page.data.num_values > rows - passed {
                self.next = Some(page);
                break;
            }
            passed += page.data.num_values;
        }
        Ok(passed)
    }

    /// Skips `rows` rows, including lost rows.
    pub(crate) fn skip(&mut self, mut rows: usize, decompressor: &mut Decompressor) -> Result<()> {
        while rows > 0 {
            rows -= self.skip_pages(rows)?;
            let left = self.advance(rows, decompressor, |page, _, present| page.values.skip(present))?;
            let PartSource::Surveyed(parts) = &mut self.parts else { break };
            match parts.front_mut() {
                _ if left == 0 => {}
                Some(ChunkPart::Gap { rows: lost }) => {
                    let passed = (*lost).min(left as u64);
                    *lost -= passed;
                    if *lost == 0 {
                        parts.pop_front();
                    }
                    rows = left - usize::try_from(passed).unwrap_or(left);
                    continue;
                }
                _ => {}
            }
            break;
        }
        Ok(())
    }

    /// Visits the entries of the next `rows` rows, page by page; returns how many of these rows were not
    /// visited because of the end or a gap.
    fn advance(
        &mut self,
        rows: usize,
        decompressor: &mut Decompressor,
        mut each: impl FnMut(&mut OpenPage, Range<usize>, usize) -> Result<()>,
    ) -> Result<usize> {
        let context = self.context.clone();
        let leaf = &context.leaf;
        let mut left = rows;
        let mut inside = false;
        // A row of a repeated leaf ends where the next row begins, possibly in a later page.
        while left > 0 || (inside && leaf.max_repetition > 0) {
            let Some(page) = self.open_page(decompressor)? else { break };
            let (entries, begun) = take_rows(leaf, page, left);
            if begun == 0 && entries.is_empty() {
                break;
            }
            if !inside && leaf.max_repetition > 0 && page.levels.repetition.get(entries.start) != Some(&0) {
                let e = Error::corrupt("expected a row to begin, found an entry that continues one");
                return Err(page.locate(e));
            }
            inside = true;
            left -= begun;
            page.at = entries.end;
            let values = match &page.runs {
                Some(runs) => runs.count(entries.clone(), leaf.max_definition),
                None => present(leaf, &page.levels, entries.clone()),
            };
            let values = if entries.end == page.count { page.present } else { values };
            page.present -= values;
            each(page, entries, values).map_err(|e| page.locate(e))?;
        }
        Ok(left)
    }

    /// Checks that no page is left after the last row.
    pub(crate) fn finish(&mut self, decompressor: &mut Decompressor) -> Result<()> {
        match self.open_page(decompressor)? {
            None => Ok(()),
            Some(page) => {
                let left = page.count - page.at;
                Err(page.locate(Error::corrupt(format!("expected no more rows, found {left} more values"))))
            }
        }
    }
}

/// Number of values among some entries of a page.
fn present(leaf: &Leaf, levels: &Levels, entries: Range<usize>) -> usize {
    if leaf.max_definition == 0 {
        return entries.len();
    }
    count_level(levels.definition.get(entries).unwrap_or_default(), leaf.max_definition)
}

/// The entries of the next rows of a page, at most `rows`, and how many rows begin among them.
fn take_rows(leaf: &Leaf, page: &OpenPage, rows: usize) -> (Range<usize>, usize) {
    let left = page.count - page.at;
    if leaf.max_repetition == 0 {
        let n = left.min(rows);
        return (page.at..page.at + n, n);
    }
    let levels = page.levels.repetition.get(page.at..).unwrap_or_default();
    // If there are no more entries than requested rows, all of them are taken.
    if left <= rows {
        return (page.at..page.count, count_level(levels, 0));
    }
    let mut begun = 0;
    for (i, block) in levels.chunks(64).enumerate() {
        let in_block = block.iter().fold(0u8, |n, l| n + u8::from(*l == 0));
        if begun + usize::from(in_block) <= rows {
            begun += usize::from(in_block);
            continue;
        }
        for (k, level) in block.iter().enumerate() {
            if *level == 0 && begun == rows {
                let end = page.at + i * 64 + k;
                return (page.at..end, begun);
            }
            begun += usize::from(*level == 0);
        }
    }
    (page.at..page.count, begun)
}
