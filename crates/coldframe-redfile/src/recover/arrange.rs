//! Determines to which row group and leaf each page belongs.
//!
//! A row group is a sequence of chunks, one for each leaf, in which the same number of rows begins. From each
//! page at which a row group may begin, every number of rows that its first chunk can have is tried. An
//! arrangement is accepted if it includes the last page. If no arrangement includes it, the arrangement that
//! ends latest is accepted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Error, Limits, ReadAt, Result};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use super::walk::{LocatedPage, Segment};
use crate::layout::dialect::Dialect;
use crate::options::Options;
use crate::pages::chunk::ChunkContext;
use crate::pages::detect::check_page;
use crate::pages::levels::{Levels, count_level};
use crate::pages::walk::Page;
use crate::schema::Schema;

/// Maximum number of chunks to try. If there are more possibilities, the file is malicious or too ambiguous.
const MAX_TRIES: u64 = 50_000_000;
/// The size of the row groups into which a single column is divided.
const GROUP_BYTES: u64 = 50 << 20;

/// A reconstructed row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arranged {
    /// Number of rows.
    pub(super) rows: u64,
    /// The pages of each leaf.
    pub(super) chunks: Vec<Vec<LocatedPage>>,
}

impl Arranged {
    /// The offset at which the first page begins.
    pub(super) fn start(&self) -> u64 {
        self.chunks.first().and_then(|c| c.first()).map_or(0, |p| p.place.start)
    }

    /// The offset at which the last page ends.
    pub(super) fn end(&self) -> u64 {
        self.chunks.last().and_then(|c| c.last()).map_or(0, |p| p.place.end)
    }
}

/// How many rows pages have if they are read as pages of one kind of leaf.
struct Rows {
    /// How many rows begin before each page, and before the end of the last page.
    begun: Vec<u64>,
    /// For each page, how many pages before it cannot be parsed.
    invalid: Vec<u32>,
    /// For each page, whether its first value begins a row.
    starts: Vec<bool>,
}

/// Memory that [`Rows`] takes per page.
const ROW_ENTRY_BYTES: u64 = 13;

impl Rows {
    fn new(pages: usize) -> Self {
        let (mut begun, mut invalid) = (Vec::with_capacity(pages + 1), Vec::with_capacity(pages + 1));
        begun.push(0);
        invalid.push(0);
        Self { begun, invalid, starts: Vec::with_capacity(pages) }
    }

    /// Adds a page: how many rows begin in it, and whether one begins with its first value; `None` if the
    /// page cannot be parsed.
    fn push(&mut self, page: Option<(u64, bool)>) {
        let (begun, starts) = page.unwrap_or((0, false));
        self.begun.push(self.begun.last().copied().unwrap_or(0).saturating_add(begun));
        self.invalid.push(self.invalid.last().copied().unwrap_or(0) + u32::from(page.is_none()));
        self.starts.push(starts);
    }

    /// The number of rows in `pages`; `None` if these pages cannot be a chunk of this kind of leaf.
    fn of(&self, pages: Range<usize>) -> Option<u64> {
        let all_valid = self.invalid.get(pages.start)? == self.invalid.get(pages.end)?;
        let starts = pages.start < pages.end && *self.starts.get(pages.start)?;
        (all_valid && starts).then_some(self.begun.get(pages.end)? - self.begun.get(pages.start)?)
    }

    /// The first page after which a chunk of `rows` rows starting at page `start` may end.
    fn first_end(&self, start: usize, rows: u64) -> usize {
        let before = self.begun.get(start).copied().unwrap_or(0);
        self.begun.partition_point(|n| *n < before.saturating_add(rows)).max(start + 1)
    }
}

/// A possible row group of `rows` rows, whose chunks end before the pages `ends`.
#[derive(Clone, Debug)]
struct Candidate {
    rows: u64,
    ends: Vec<usize>,
}

/// How a sequence of whole row groups can end at the start of a page.
#[derive(Debug)]
struct Reached {
    /// Whether there is more than one such sequence.
    ambiguous: bool,
    /// The last group before the page, and the page at which that group begins.
    last: Option<(usize, Candidate)>,
}

/// The leaves of a schema in one dialect.
pub(super) struct Kinds {
    /// One entry for each kind of leaf: leaves of one type and the same levels read a page the same way.
    contexts: Vec<ChunkContext>,
    /// The kind of each leaf.
    of_leaves: Vec<usize>,
}

impl Kinds {
    pub(super) fn new(
        schema: &Schema,
        dialect: Dialect,
        codec: Option<HadoopCodec>,
        options: &Options,
    ) -> Self {
        let (verify, limits) = (options.verify, options.limits);
        let (mut contexts, mut known) = (Vec::new(), BTreeMap::new());
        let of_leaves = schema.leaves.iter().map(|leaf| {
            let kind = (leaf.physical_type.code(), leaf.max_definition, leaf.max_repetition);
            *known.entry(kind).or_insert_with(|| {
                contexts.push(ChunkContext { leaf: leaf.clone(), dialect, codec, verify, limits });
                contexts.len() - 1
            })
        });
        let of_leaves = of_leaves.collect();
        Self { contexts, of_leaves }
    }
}

/// The pages of a segment in one dialect.
pub(super) struct Pages<'a> {
    source: Arc<dyn ReadAt>,
    kinds: &'a Kinds,
    pages: &'a [LocatedPage],
    /// The rows of the pages, for each kind of leaf.
    rows: Vec<Rows>,
    /// The number of values before each page.
    values: Vec<u64>,
    limits: Limits,
    tries: u64,
    /// Memory that the arrangements take.
    kept: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        source: Arc<dyn ReadAt>,
        kinds: &'a Kinds,
        pages: &'a [LocatedPage],
        limits: Limits,
    ) -> Result<Self> {
        let entries = (pages.len() as u64).saturating_mul(kinds.contexts.len() as u64);
        limits.decoded("the row counts of pages", entries.saturating_mul(ROW_ENTRY_BYTES), source.len())?;
        let mut rows: Vec<Rows> = kinds.contexts.iter().map(|_| Rows::new(pages.len())).collect();
        let mut values = vec![0u64];
        let (mut decompressor, mut levels) = (Decompressor::new(), Levels::default());
        for page in pages {
            values.push(values.last().copied().unwrap_or(0).saturating_add(page.data.num_values as u64));
            let bytes = match kinds.contexts.first() {
                Some(context) => open(page, context, source.as_ref(), &mut decompressor)?,
                None => None,
            };
            for (context, rows) in kinds.contexts.iter().zip(&mut rows) {
                rows.push(bytes.as_ref().and_then(|bytes| count_rows(context, page, bytes, &mut levels)));
            }
        }
        Ok(Self { source, kinds, pages, rows, values, limits, tries: 0, kept: 0 })
    }

    /// The row groups of a segment; an error if there is more than one arrangement.
    pub(super) fn arrange(mut self, segment: &Segment, group_rows: Option<u64>) -> Result<Vec<Arranged>> {
        if self.kinds.of_leaves.len() == 1 && !segment.marked {
            return Ok(self.only_column());
        }
        let last_page = self.pages.len();
        let mut reached: BTreeMap<usize, Reached> = BTreeMap::new();
        reached.insert(0, Reached { ambiguous: false, last: None });
        let mut next = Some(0);
        while let Some(at) = next {
            let ambiguous = reached.get(&at).is_some_and(|r| r.ambiguous);
            for group in self.groups_at(at, segment, group_rows)? {
                let end = group.ends.last().copied().unwrap_or(at);
                match reached.get_mut(&end) {
                    Some(other) => other.ambiguous = true,
                    None => drop(reached.insert(end, Reached { ambiguous, last: Some((at, group)) })),
                }
            }
            next = reached.range(at + 1..).next().map(|(at, _)| *at).filter(|at| *at < last_page);
        }
        let Some((end, best)) = reached.last_key_value() else { return Ok(Vec::new()) };
        if best.ambiguous {
            return Err(Error::schema(
                "the pages can be arranged as row groups of more than one size: set the option \
                 `row_group_rows` to the rows of each",
            ));
        }
        let mut groups = Vec::new();
        let mut at = *end;
        while let Some(Reached { last: Some((start, group)), .. }) = reached.get(&at) {
            groups.push(self.arranged(*start, group));
            at = *start;
        }
        groups.reverse();
        Ok(groups)
    }

    /// The row groups of a file with a single column, which may be divided before any row.
    fn only_column(self) -> Vec<Arranged> {
        let mut groups: Vec<Arranged> = Vec::new();
        let Some(rows) = self.rows.first() else { return groups };
        for (i, page) in self.pages.iter().enumerate() {
            let begins = rows.of(i..i + 1).is_some();
            let begun = rows.begun.get(i + 1).zip(rows.begun.get(i)).map_or(0, |(to, from)| to - from);
            if rows.invalid.get(i + 1).is_none_or(|n| *n > 0) {
                break;
            }
            let full = groups.last().is_none_or(|g| g.end() - g.start() >= GROUP_BYTES);
            if full && begins {
                groups.push(Arranged { rows: 0, chunks: vec![Vec::new()] });
            }
            let Some(group) = groups.last_mut() else { break };
            group.rows += begun;
            group.chunks.iter_mut().for_each(|c| c.push(page.clone()));
        }
        groups
    }

    /// The row groups that may begin at page `at`.
    fn groups_at(&mut self, at: usize, segment: &Segment, group_rows: Option<u64>) -> Result<Vec<Candidate>> {
        let mut groups = Vec::new();
        let values = |page: usize| self.values.get(page).copied().unwrap_or(0);
        // Each leaf has at least one value for each row.
        let max = (values(self.pages.len()) - values(at)) / (self.kinds.of_leaves.len() as u64).max(1);
        let mut end = at;
        while let Some(rows) = self.rows_as(0, at..end + 1).filter(|rows| *rows <= max) {
            end += 1;
            self.count_try()?;
            if !ends_chunk(segment, at, end) {
                if segment.chunk_ends.binary_search(&end).is_ok() {
                    break;
                }
                continue;
            }
            let candidates = self.chunks(end, rows, segment)?;
            let fits = |ends: &Vec<usize>| {
                let last = ends.last() == Some(&self.pages.len());
                let size = group_rows.is_none_or(|n| rows == n || (rows < n && last));
                size && (last || !segment.marked)
            };
            groups.extend(candidates.into_iter().filter(fits).map(|ends| Candidate { rows, ends }));
        }
        Ok(groups)
    }

    /// All ways in which each of the leaves after the first can have `rows` rows, beginning with page
    /// `first_end`. For each way, returns where the chunks end.
    ///
    /// The leaf being placed is the last of `open`: this is a stack of its own, so that there is no deep
    /// recursion for a schema with many leaves.
    fn chunks(&mut self, first_end: usize, rows: u64, segment: &Segment) -> Result<Vec<Vec<usize>>> {
        let leaves = self.kinds.of_leaves.len();
        let mut arrangements = Vec::new();
        let mut ends = vec![first_end];
        // For each leaf from the second to the leaf that is being placed: the end that is tried next.
        let mut open = Vec::new();
        loop {
            if ends.len() == leaves {
                self.kept = self.kept.saturating_add((leaves * size_of::<usize>()) as u64);
                self.limits.decoded("the arrangements of pages", self.kept, self.source.len())?;
                arrangements.push(ends.clone());
                ends.pop();
            } else if open.len() < ends.len() {
                let start = ends.last().copied().unwrap_or(0);
                open.push(self.kind(ends.len()).map_or(usize::MAX, |r| r.first_end(start, rows)));
            }
            // Even after the last row has begun, the next page may continue it.
            let Some(end) = open.last_mut() else { break };
            let at = *end;
            *end = at.saturating_add(1);
            ends.truncate(open.len());
            let start = ends.last().copied().unwrap_or(0);
            self.count_try()?;
            if self.rows_as(open.len(), start..at) != Some(rows) {
                open.pop();
                ends.pop();
                if open.is_empty() {
                    break;
                }
            } else if ends_chunk(segment, start, at) {
                ends.push(at);
            }
        }
        Ok(arrangements)
    }

    fn count_try(&mut self) -> Result<()> {
        self.tries += 1;
        if self.tries > MAX_TRIES {
            return Err(Error::unsupported(
                "a file whose pages can be arranged in too many ways: set the option `row_group_rows`",
            ));
        }
        Ok(())
    }

    fn kind(&self, leaf: usize) -> Option<&Rows> {
        self.rows.get(*self.kinds.of_leaves.get(leaf)?)
    }

    /// The number of rows of `pages`, if they are a chunk of `leaf`.
    fn rows_as(&self, leaf: usize, pages: Range<usize>) -> Option<u64> {
        self.kind(leaf)?.of(pages)
    }

    fn arranged(&self, start: usize, group: &Candidate) -> Arranged {
        let starts = std::iter::once(start).chain(group.ends.iter().copied());
        let pages = |(from, to): (usize, &usize)| self.pages.get(from..*to).unwrap_or_default().to_vec();
        Arranged { rows: group.rows, chunks: starts.zip(&group.ends).map(pages).collect() }
    }
}

/// Whether pages `start..end` can be a chunk, according to the metadata after chunks.
fn ends_chunk(segment: &Segment, start: usize, end: usize) -> bool {
    let ends = &segment.chunk_ends;
    ends.get(ends.partition_point(|e| *e <= start)).is_none_or(|e| *e == end)
}

/// A page's decompressed bytes; `None` if the codec cannot decompress it.
fn open(
    located: &LocatedPage,
    context: &ChunkContext,
    source: &dyn ReadAt,
    decompressor: &mut Decompressor,
) -> Result<Option<Bytes>> {
    let page = Page {
        number: 0,
        place: located.place.clone(),
        header: located.header,
        data: located.data,
        stored: source.read(located.body())?,
    };
    Ok(context.decompress(&page, decompressor).ok())
}

/// The number of rows that begin in a page, if it is a page of this kind of leaf, and whether its first value
/// begins a row.
fn count_rows(
    context: &ChunkContext,
    page: &LocatedPage,
    bytes: &Bytes,
    levels: &mut Levels,
) -> Option<(u64, bool)> {
    check_page(context.dialect, &context.leaf, page.data, bytes, &context.limits, levels).ok()?;
    if context.leaf.max_repetition == 0 {
        return Some((page.data.num_values as u64, true));
    }
    let starts = levels.repetition.first().is_none_or(|level| *level == 0);
    Some((count_level(&levels.repetition, 0) as u64, starts))
}
