//! A column chunk: the pages of one leaf in one row group, read a number of rows at a time.
//!
//! ```text
//! chunk | page header | page | page header | page | ...
//! page  | repetition levels | definition levels | values |     compressed together; the order is the dialect's
//! ```
//!
//! The chunk ends where its pages have as many values as its metadata says; no length in the metadata can be relied on.
//! A page may end inside a row.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::checksum::check_crc32;
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::codec::{Algorithm, Decompressor};

use crate::dialect::{Dialect, Levels};
use crate::metadata::{Codec, ColumnMetaData};
use crate::page::{DATA_PAGE, DataPage, PageHeader};
use crate::plain::{PageValues, Values};
use crate::schema::Leaf;

/// A data page of a chunk.
#[derive(Clone, Debug)]
pub struct Page {
    /// Which of the chunk's data pages.
    pub number: usize,
    /// Header and bytes in the file.
    pub place: Range<u64>,
    /// What its header says.
    pub header: PageHeader,
    /// Its values.
    pub data: DataPage,
    /// Its bytes as they are in the file.
    pub stored: Bytes,
}

/// Goes from page to page.
#[derive(Clone, Debug)]
pub struct PageWalk {
    bytes: Bytes,
    offset: u64,
    values_left: u64,
    number: usize,
    limits: Limits,
}

impl PageWalk {
    /// Pages with `values` values together from the front of `bytes`, which stand at `offset` of the file.
    pub fn new(bytes: Bytes, offset: u64, values: u64, limits: Limits) -> Self {
        Self { bytes, offset, values_left: values, number: 0, limits }
    }

    /// Where the next page's header is expected.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The header of whatever page is next, and its place; it is not passed.
    pub fn peek(&self) -> Result<PageHeader> {
        PageHeader::parse(&self.bytes, self.offset, &self.limits).within(|| format!("page {}", self.number))
    }

    /// The next data page; `None` behind the last.
    pub fn next_page(&mut self) -> Result<Option<Page>> {
        while self.values_left > 0 {
            let header = self.peek()?;
            let (start, number) = (self.offset, self.number);
            let end = header.len.saturating_add(header.compressed);
            if end > self.bytes.len() {
                let left = self.bytes.len() - header.len;
                let message = format!("expected a page of {} bytes, found {left}", header.compressed);
                return Err(Error::corrupt(message).at(start).within(format!("page {number}")));
            }
            if header.page_type != DATA_PAGE && header.data.is_some() {
                let message =
                    format!("expected a data page, found one of type {} with values", header.page_type);
                return Err(Error::corrupt(message).at(start).within(format!("page {number}")));
            }
            let data = header.data;
            if let Some(data) = data {
                let n = data.num_values as u64;
                self.values_left = self.values_left.checked_sub(n).ok_or_else(|| {
                    let message =
                        format!("expected a page of at most {} values, found {n}", self.values_left);
                    Error::corrupt(message).at(start).within(format!("page {number}"))
                })?;
            }
            let stored = self.bytes.split_to(end).slice(header.len..);
            self.offset += end as u64;
            if let Some(data) = data {
                self.number += 1;
                let place = start..self.offset;
                return Ok(Some(Page { number, place, header, data, stored }));
            }
        }
        Ok(None)
    }
}

/// What all pages of a chunk have in common.
#[derive(Clone, Debug)]
pub struct ChunkContext {
    /// The leaf.
    pub leaf: Leaf,
    /// The layout of pages.
    pub dialect: Dialect,
    /// What decompresses them.
    pub codec: Option<HadoopCodec>,
    /// Whether a page's checksum is compared.
    pub verify: bool,
    /// Bounds.
    pub limits: Limits,
}

/// What decompresses pages whose metadata names `codec`.
pub fn page_codec(codec: Codec) -> Result<Option<HadoopCodec>> {
    match codec {
        Codec::Uncompressed => Ok(None),
        Codec::Snappy => Ok(Some(HadoopCodec::framed(Algorithm::Snappy))),
        Codec::Lzo => Ok(Some(HadoopCodec::framed(Algorithm::Lzo))),
        Codec::Gzip => HadoopCodec::from_algorithm(Algorithm::Gzip).map(Some),
        Codec::Unknown(code) => Err(Error::unsupported(format!("pages compressed by codec number {code}"))),
    }
}

impl ChunkContext {
    /// Whether values are spread over their rows as they are read: one entry a row, and numbers that need no turning.
    fn spreads(&self) -> bool {
        let leaf = &self.leaf;
        let number = matches!(crate::plain::fixed_width(leaf.physical_type), Some(4 | 8));
        number && leaf.max_repetition == 0 && leaf.max_definition > 0 && !self.dialect.big_endian()
    }

    /// A page's bytes before compression.
    pub fn decompress(&self, page: &Page, decompressor: &mut Decompressor) -> Result<Bytes> {
        if let Some(crc) = page.header.crc.filter(|_| self.verify) {
            check_crc32(crc, &page.stored)?;
        }
        let Some(codec) = &self.codec else {
            if page.header.uncompressed == page.stored.len() {
                return Ok(page.stored.clone());
            }
            let (stored, stated) = (page.stored.len(), page.header.uncompressed);
            return Err(Error::corrupt(format!("expected {stated} bytes, found {stored}")));
        };
        let expected = self.limits.block("a page", page.header.uncompressed as u64)?;
        let mut out = Vec::new();
        codec.decompress_exact(decompressor, &page.stored, expected, &mut out)?;
        Ok(out.into())
    }

    /// Levels and values of a page.
    fn load(&self, page: &Page, decompressor: &mut Decompressor, levels: Levels) -> Result<OpenPage> {
        let mut load = |mut levels: Levels| -> Result<OpenPage> {
            let bytes = self.decompress(page, decompressor)?;
            let count = page.data.num_values;
            let at = self.dialect.read_levels(&self.leaf, &bytes, count, &self.limits, &mut levels)?;
            let present = levels.present(&self.leaf, count);
            let bytes = bytes.slice(at.min(bytes.len())..);
            let physical = self.leaf.physical_type;
            let values = PageValues::new(self.dialect, physical, page.data.encoding, bytes, present)?;
            Ok(OpenPage {
                number: page.number,
                offset: page.place.start,
                count,
                at: 0,
                present,
                levels,
                values,
            })
        };
        // Offsets inside decompressed bytes would be taken for offsets in the file.
        load(levels)
            .map_err(|e| Error::new(e.into_kind()).at(page.place.start))
            .within(|| format!("page {}", page.number))
    }

    /// Whether the byte arrays of a decompressed page are UTF-8; `None` if it cannot be read.
    pub fn is_text(&self, header: DataPage, page: &Bytes) -> Option<bool> {
        let mut levels = Levels::default();
        let count = header.num_values;
        let at = self.dialect.read_levels(&self.leaf, page, count, &self.limits, &mut levels).ok()?;
        let present = levels.present(&self.leaf, count);
        let bytes = page.slice(at.min(page.len())..);
        let physical = self.leaf.physical_type;
        let mut out = Values::new(physical);
        let values = PageValues::new(self.dialect, physical, header.encoding, bytes, present);
        values.ok()?.read(present, &mut out).ok()?;
        let Values::Arrays { offsets, data } = out else { return None };
        let text = std::str::from_utf8(&data).ok();
        let whole = |end: &i32| text.is_some_and(|t| t.is_char_boundary(end.unsigned_abs() as usize));
        Some(text.is_some() && offsets.iter().all(whole))
    }

    /// Decodes all of a page; its levels.
    pub fn try_page(&self, page: &Page, decompressor: &mut Decompressor) -> Result<Levels> {
        let mut open = self.load(page, decompressor, Levels::default())?;
        open.values.skip(open.present).and_then(|()| open.values.finish()).map_err(|e| open.place(e))?;
        Ok(open.levels)
    }
}

/// What of a chunk is read, in order.
#[derive(Clone, Debug)]
pub enum Part {
    /// A page; after a gap, only from its first row on.
    Page {
        /// The page.
        page: Page,
        /// Whether what comes before its first row belongs to a lost row.
        from_first_row: bool,
    },
    /// Rows that are lost.
    Gap {
        /// How many.
        rows: u64,
    },
}

/// Where the parts come from.
#[derive(Clone, Debug)]
enum Parts {
    /// From a walk whose errors end the scan.
    Walk(PageWalk),
    /// From a survey that has met them all.
    Surveyed(VecDeque<Part>),
}

/// A page being read.
#[derive(Clone, Debug)]
struct OpenPage {
    number: usize,
    offset: u64,
    count: usize,
    at: usize,
    /// Values that are not null and not read.
    present: usize,
    levels: Levels,
    values: PageValues,
}

impl OpenPage {
    fn place(&self, e: Error) -> Error {
        Error::new(e.into_kind()).at(self.offset).within(format!("page {}", self.number))
    }
}

/// Some rows of a leaf: levels and dense values.
#[derive(Debug)]
pub struct LeafData {
    /// Entries: values, nulls and empty lists.
    pub entries: usize,
    /// The highest repetition level of the leaf.
    pub max_repetition: u8,
    /// Levels of each entry; empty where the highest is 0.
    pub levels: Levels,
    /// The values that are there.
    pub values: Values,
    /// Whether `values` has a place for each entry without a value, too.
    pub spread: bool,
}

/// Reads the rows of one chunk.
#[derive(Clone)]
pub struct LeafReader {
    context: Arc<ChunkContext>,
    parts: Parts,
    page: Option<OpenPage>,
    /// Levels whose memory is used again.
    spare: Levels,
}

impl LeafReader {
    /// For a chunk whose bytes stand at `offset`.
    pub fn new(context: Arc<ChunkContext>, metadata: &ColumnMetaData, bytes: Bytes, offset: u64) -> Self {
        let values = u64::try_from(metadata.num_values).unwrap_or(0);
        let walk = PageWalk::new(bytes, offset, values, context.limits);
        Self { context, parts: Parts::Walk(walk), page: None, spare: Levels::default() }
    }

    /// For what a survey found.
    pub fn of_parts(context: Arc<ChunkContext>, parts: VecDeque<Part>) -> Self {
        Self { context, parts: Parts::Surveyed(parts), page: None, spare: Levels::default() }
    }

    /// Opens the next page that has entries; `None` at the end and in front of a gap.
    fn open_page(&mut self, decompressor: &mut Decompressor) -> Result<Option<&mut OpenPage>> {
        while self.page.as_ref().is_none_or(|p| p.at >= p.count) {
            self.close_page()?;
            let (page, from_first_row) = match &mut self.parts {
                Parts::Walk(walk) => match walk.next_page()? {
                    Some(page) => (page, false),
                    None => return Ok(None),
                },
                Parts::Surveyed(parts) => match parts.pop_front() {
                    Some(Part::Page { page, from_first_row }) => (page, from_first_row),
                    Some(Part::Gap { rows: 0 }) => continue,
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
                open.values.skip(values).map_err(|e| open.place(e))?;
                open.present -= values;
                open.at = first;
            }
            self.page = Some(open);
        }
        Ok(self.page.as_mut())
    }

    /// The page that was read to its end has nothing left.
    fn close_page(&mut self) -> Result<()> {
        let Some(page) = self.page.take() else { return Ok(()) };
        page.values.finish().map_err(|e| page.place(e))?;
        self.spare = page.levels;
        Ok(())
    }

    /// The next `rows` rows.
    pub fn read(&mut self, rows: usize, decompressor: &mut Decompressor) -> Result<LeafData> {
        let context = self.context.clone();
        let leaf = &context.leaf;
        let mut data = LeafData {
            entries: 0,
            max_repetition: leaf.max_repetition,
            levels: Levels::default(),
            values: Values::new(leaf.physical_type),
            spread: context.spreads(),
        };
        if let (Values::Fixed(values), Some(width)) =
            (&mut data.values, crate::plain::fixed_width(leaf.physical_type))
        {
            values.reserve(rows.min(1 << 20) * width);
        }
        let left = self.advance(rows, decompressor, |page, entries, present| {
            data.entries += entries.len();
            let definition = page.levels.definition.get(entries.clone()).unwrap_or_default();
            data.levels.definition.extend_from_slice(definition);
            let repetition = page.levels.repetition.get(entries).unwrap_or_default();
            data.levels.repetition.extend_from_slice(repetition);
            match data.spread {
                true => page.values.read_rows(definition, leaf.max_definition, &mut data.values),
                false => page.values.read(present, &mut data.values),
            }
        })?;
        if left == 0 {
            return Ok(data);
        }
        Err(Error::corrupt(format!("expected {left} more rows, found the end of the pages")))
    }

    /// Passes over `rows` rows, lost ones among them.
    pub fn skip(&mut self, mut rows: usize, decompressor: &mut Decompressor) -> Result<()> {
        while rows > 0 {
            let left = self.advance(rows, decompressor, |page, _, present| page.values.skip(present))?;
            let Parts::Surveyed(parts) = &mut self.parts else { break };
            match parts.front_mut() {
                _ if left == 0 => {}
                Some(Part::Gap { rows: lost }) => {
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

    /// Goes over the entries of the next `rows` rows, page by page; how many rows are left at the end or at a gap.
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
        // A row of a repeated leaf ends where the next one begins, maybe in a later page.
        while left > 0 || (inside && leaf.max_repetition > 0) {
            let Some(page) = self.open_page(decompressor)? else { break };
            let (entries, begun) = take_rows(leaf, page, left);
            if begun == 0 && entries.is_empty() {
                break;
            }
            if !inside && leaf.max_repetition > 0 && page.levels.repetition.get(entries.start) != Some(&0) {
                let e = Error::corrupt("expected a row to begin, found an entry that goes on with one");
                return Err(page.place(e));
            }
            inside = true;
            left -= begun;
            page.at = entries.end;
            let values = present(leaf, &page.levels, entries.clone());
            let values = if entries.end == page.count { page.present } else { values };
            page.present -= values;
            each(page, entries, values).map_err(|e| match e.kind() {
                coldframe_core::ErrorKind::LimitExceeded { .. } => e,
                _ => page.place(e),
            })?;
        }
        Ok(left)
    }

    /// All rows were read: no page may be left.
    pub fn finish(&mut self, decompressor: &mut Decompressor) -> Result<()> {
        match self.open_page(decompressor)? {
            None => Ok(()),
            Some(page) => {
                let left = page.count - page.at;
                Err(page.place(Error::corrupt(format!("expected no more rows, found {left} more values"))))
            }
        }
    }
}

/// Values among some entries of a page.
fn present(leaf: &Leaf, levels: &Levels, entries: Range<usize>) -> usize {
    if leaf.max_definition == 0 {
        return entries.len();
    }
    crate::dialect::count_level(levels.definition.get(entries).unwrap_or_default(), leaf.max_definition)
}

/// The entries of the next rows of a page, at most `rows`, and how many rows begin among them.
fn take_rows(leaf: &Leaf, page: &OpenPage, rows: usize) -> (Range<usize>, usize) {
    let left = page.count - page.at;
    if leaf.max_repetition == 0 {
        let n = left.min(rows);
        return (page.at..page.at + n, n);
    }
    let levels = page.levels.repetition.get(page.at..).unwrap_or_default();
    // As many rows as entries: all fit without a look at where they end.
    if left <= rows {
        return (page.at..page.count, crate::dialect::count_level(levels, 0));
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

/// What a survey of a damaged chunk found.
#[derive(Debug, Default)]
pub struct Survey {
    /// What can be read.
    pub parts: VecDeque<Part>,
    /// Rows that cannot.
    pub lost: Vec<Range<u64>>,
    /// Why: the bytes, the rows of each page where they are known.
    pub damage: Vec<(Error, Range<u64>, Range<u64>)>,
}

impl Survey {
    /// A chunk without a readable page.
    pub fn all_lost(e: Error, bytes: Range<u64>, rows: u64) -> Self {
        let parts = VecDeque::from([Part::Gap { rows }]);
        Self { parts, lost: std::iter::once(0..rows).collect(), damage: vec![(e, bytes, 0..rows)] }
    }

    /// Tries every page of a chunk that should have `rows` rows and ends at `end`. A page that does not decode is lost, and
    /// from a header that does not parse on all that follows.
    pub fn new(
        context: &ChunkContext,
        mut walk: PageWalk,
        rows: u64,
        end: u64,
        decompressor: &mut Decompressor,
    ) -> Self {
        let nested = context.leaf.max_repetition > 0;
        let mut tried = Vec::new();
        let stopped = loop {
            match walk.next_page() {
                Ok(Some(page)) => {
                    let begun = context.try_page(&page, decompressor).map(|levels| match nested {
                        true => crate::dialect::count_level(&levels.repetition, 0),
                        false => page.data.num_values,
                    });
                    tried.push((page, begun));
                }
                Ok(None) => break None,
                Err(e) => break Some(e),
            }
        };
        let found: u64 = tried.iter().filter_map(|(_, begun)| begun.as_ref().ok()).map(|n| *n as u64).sum();
        let whole = stopped.is_none() && tried.iter().all(|(_, begun)| begun.is_ok());
        let rest = walk.offset()..end.max(walk.offset());
        if whole && found == rows {
            let parts = tried.into_iter().map(|(page, _)| Part::Page { page, from_first_row: false });
            return Self { parts: parts.collect(), ..Self::default() };
        }
        if whole {
            let e = Error::corrupt(format!("expected pages of {rows} rows, found {found}"));
            return Self::all_lost(e, rest, rows);
        }
        if nested { Self::nested(tried, stopped, rest, rows) } else { Self::flat(tried, stopped, rest, rows) }
    }

    /// Each page says how many rows it has. Where the pages together have not as many as they should, a bad page's own
    /// number may be what is wrong: then what follows it has no place among the rows.
    fn flat(tried: Vec<(Page, Result<usize>)>, stopped: Option<Error>, rest: Range<u64>, rows: u64) -> Self {
        let (mut survey, mut at, mut placed) = (Self::default(), 0u64, true);
        for (page, begun) in tried {
            let next = at.saturating_add(page.data.num_values as u64).min(rows);
            match begun {
                Ok(_) if placed => survey.parts.push_back(Part::Page { page, from_first_row: false }),
                Ok(_) => continue,
                Err(e) if stopped.is_none() => survey.lose(e, page.place, at..next),
                Err(e) => {
                    if placed {
                        survey.lose(e, page.place.start..rest.end, at..rows);
                    }
                    placed = false;
                    continue;
                }
            }
            at = next;
        }
        match stopped {
            Some(e) if placed => survey.lose(e, rest, at..rows),
            None if at < rows => survey.lose(Error::corrupt("expected more rows"), rest, at..rows),
            _ => {}
        }
        survey
    }

    fn lose(&mut self, e: Error, bytes: Range<u64>, rows: Range<u64>) {
        self.parts.push_back(Part::Gap { rows: rows.end - rows.start });
        self.lost.push(rows.clone());
        self.damage.push((e, bytes, rows));
    }

    /// Only levels say how many rows a page has: those of the good pages at both ends are counted, what lies between the
    /// first bad page and the last is lost.
    fn nested(
        tried: Vec<(Page, Result<usize>)>,
        stopped: Option<Error>,
        rest: Range<u64>,
        rows: u64,
    ) -> Self {
        let mut survey = Self::default();
        let head = tried.iter().take_while(|(_, begun)| begun.is_ok()).count();
        let good_tail = tried.iter().rev().take_while(|(_, begun)| begun.is_ok()).count();
        let tail = if stopped.is_some() { 0 } else { good_tail.min(tried.len() - head) };
        let tail_at = tried.len() - tail;
        let sum = |pages: &[(Page, Result<usize>)]| -> u64 {
            pages.iter().filter_map(|(_, begun)| begun.as_ref().ok()).map(|n| *n as u64).sum()
        };
        let before = sum(tried.get(..head).unwrap_or_default()).min(rows);
        let after = sum(tried.get(tail_at..).unwrap_or_default()).min(rows - before);
        // The last row before the damage may have gone on in it.
        let lost = before.saturating_sub(1)..rows - after;
        let mut from_first_row = true;
        for (i, (page, begun)) in tried.into_iter().enumerate() {
            if i == head {
                survey.parts.push_back(Part::Gap { rows: rows - after - before });
            }
            match begun {
                Ok(_) if i < head => survey.parts.push_back(Part::Page { page, from_first_row: false }),
                Ok(begun) if i >= tail_at => {
                    survey.parts.push_back(Part::Page { page, from_first_row });
                    from_first_row &= begun == 0;
                }
                Ok(_) => {}
                Err(e) => survey.damage.push((e, page.place.clone(), lost.clone())),
            }
        }
        if head == survey.parts.len() {
            survey.parts.push_back(Part::Gap { rows: rows - after - before });
        }
        if let Some(e) = stopped {
            survey.damage.push((e, rest, lost.clone()));
        }
        survey.lost.push(lost);
        survey
    }
}
