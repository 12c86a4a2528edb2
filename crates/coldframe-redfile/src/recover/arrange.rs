//! Which page belongs to which leaf of which row group.
//!
//! A row group is a run of chunks, one for each leaf, in which the rows that begin are as many in each. From each page at
//! which a row group may begin, every number of rows that its first chunk can have is tried; an arrangement counts if it
//! comes to the last page, or else to as late a one as any does.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Error, ReadAt, Result};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use super::walk::{Found, Segment};
use crate::layout::dialect::Dialect;
use crate::options::Options;
use crate::pages::chunk::ChunkContext;
use crate::pages::detect::reads;
use crate::pages::levels::{Levels, count_level};
use crate::pages::walk::Page;
use crate::schema::Schema;

/// Chunks that are tried at most: beyond, the file is made to keep us busy, or says too little.
const MOST_TRIES: u64 = 50_000_000;
/// Where the only column may be cut into row groups.
const GROUP_BYTES: u64 = 50 << 20;

/// A row group put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arranged {
    /// How many rows.
    pub(super) rows: u64,
    /// The pages of each leaf.
    pub(super) chunks: Vec<Vec<Found>>,
}

impl Arranged {
    /// Where its first page begins.
    pub(super) fn start(&self) -> u64 {
        self.chunks.first().and_then(|c| c.first()).map_or(0, |p| p.place.start)
    }

    /// Where its last page ends.
    pub(super) fn end(&self) -> u64 {
        self.chunks.last().and_then(|c| c.last()).map_or(0, |p| p.place.end)
    }
}

/// What a page has as one of a leaf.
#[derive(Clone, Copy, Debug)]
struct Rows {
    /// Rows that begin in it.
    begun: u64,
    /// Whether its first value begins one.
    starts: bool,
}

/// A group of `rows` whose chunks end before the pages `ends`.
#[derive(Clone, Debug)]
struct Candidate {
    rows: u64,
    ends: Vec<usize>,
}

/// How a page can be reached.
#[derive(Debug)]
struct Reached {
    /// In more ways than one.
    ambiguous: bool,
    /// The last group before it, and the page that one begins with.
    last: Option<(usize, Candidate)>,
}

/// The pages of a segment in one dialect.
pub(super) struct Pages<'a> {
    source: Arc<dyn ReadAt>,
    contexts: Vec<ChunkContext>,
    pages: &'a [Found],
    /// Of each page what it has as one of each leaf, once it was looked at; `None` for leaves that it makes no sense for.
    seen: Vec<Option<Vec<Option<Rows>>>>,
    decompressor: Decompressor,
    levels: Levels,
    tries: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        source: Arc<dyn ReadAt>,
        schema: &Schema,
        pages: &'a [Found],
        dialect: Dialect,
        codec: Option<HadoopCodec>,
        options: &Options,
    ) -> Result<Self> {
        let limits = options.limits;
        let looks = (pages.len() as u64).saturating_mul(schema.leaves.len() as u64);
        limits
            .metadata("what pages have as columns", looks.saturating_mul(size_of::<Option<Rows>>() as u64))?;
        let context = |leaf: &crate::schema::Leaf| ChunkContext {
            leaf: leaf.clone(),
            dialect,
            codec,
            verify: options.verify,
            limits,
        };
        Ok(Self {
            source,
            contexts: schema.leaves.iter().map(context).collect(),
            pages,
            seen: vec![None; pages.len()],
            decompressor: Decompressor::new(),
            levels: Levels::default(),
            tries: 0,
        })
    }

    /// The row groups of a segment. None is returned of what can be read in two ways.
    pub(super) fn arrange(mut self, segment: &Segment, group_rows: Option<u64>) -> Result<Vec<Arranged>> {
        if self.contexts.len() == 1 && !segment.marked {
            return self.only_column();
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
                "the pages make sense as row groups of more than one size: the option `row_group_rows` has to say \
                 how many rows they have",
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

    /// Rows of one column need nobody beside them: any cut at a row's beginning will do.
    fn only_column(mut self) -> Result<Vec<Arranged>> {
        let mut groups: Vec<Arranged> = Vec::new();
        for (i, page) in self.pages.iter().enumerate() {
            let Some(rows) = self.rows(i, 0)? else { break };
            let full = groups.last().is_none_or(|g| g.end() - g.start() >= GROUP_BYTES);
            if full && rows.starts {
                groups.push(Arranged { rows: 0, chunks: vec![Vec::new()] });
            }
            let Some(group) = groups.last_mut() else { break };
            group.rows += rows.begun;
            group.chunks.iter_mut().for_each(|c| c.push(page.clone()));
        }
        Ok(groups)
    }

    /// The row groups that may begin with page `at`.
    fn groups_at(&mut self, at: usize, segment: &Segment, group_rows: Option<u64>) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        let mut rows = 0;
        let mut end = at;
        while let Some(page) = self.rows(end, 0)?.filter(|p| end > at || p.starts) {
            rows += page.begun;
            end += 1;
            if !ends_chunk(segment, at, end) {
                if segment.chunk_ends.contains(&end) {
                    break;
                }
                continue;
            }
            let mut ends = vec![end];
            let mut candidates = Vec::new();
            self.chunks(1, rows, segment, &mut ends, &mut candidates)?;
            let fits = |ends: &Vec<usize>| {
                let last = ends.last() == Some(&self.pages.len());
                let size = group_rows.is_none_or(|n| rows == n || (rows < n && last));
                size && (last || !segment.marked)
            };
            found.extend(candidates.into_iter().filter(fits).map(|ends| Candidate { rows, ends }));
        }
        Ok(found)
    }

    /// All ways in which the leaves from `leaf` on have `rows` rows each behind the last of `ends`.
    fn chunks(
        &mut self,
        leaf: usize,
        rows: u64,
        segment: &Segment,
        ends: &mut Vec<usize>,
        found: &mut Vec<Vec<usize>>,
    ) -> Result<()> {
        if leaf == self.contexts.len() {
            found.push(ends.clone());
            return Ok(());
        }
        let start = ends.last().copied().unwrap_or(0);
        let (mut end, mut left) = (start, rows);
        while let Some(page) = self.rows(end, leaf)?.filter(|p| end > start || p.starts) {
            let Some(rest) = left.checked_sub(page.begun) else { break };
            left = rest;
            end += 1;
            // Behind the last row's beginning a page may still go on with it.
            if left == 0 && ends_chunk(segment, start, end) {
                ends.push(end);
                self.chunks(leaf + 1, rows, segment, ends, found)?;
                ends.pop();
            }
        }
        Ok(())
    }

    /// What page `i` has as one of `leaf`; `None` behind the last, and if it makes no sense.
    fn rows(&mut self, i: usize, leaf: usize) -> Result<Option<Rows>> {
        self.tries += 1;
        if self.tries > MOST_TRIES {
            return Err(Error::unsupported(
                "a file that can be arranged in too many ways; the option `row_group_rows` makes them fewer",
            ));
        }
        let Some(page) = self.pages.get(i) else { return Ok(None) };
        if self.seen.get(i).is_none_or(Option::is_none) {
            let rows = self.look(page)?;
            if let Some(seen) = self.seen.get_mut(i) {
                *seen = Some(rows);
            }
        }
        Ok(self.seen.get(i).and_then(|seen| seen.as_ref()?.get(leaf).copied()).flatten())
    }

    fn look(&mut self, found: &Found) -> Result<Vec<Option<Rows>>> {
        let page = Page {
            number: 0,
            place: found.place.clone(),
            header: found.header,
            data: found.data,
            stored: self.source.read(found.body())?,
        };
        let Some(first) = self.contexts.first() else { return Ok(Vec::new()) };
        let Ok(bytes) = first.decompress(&page, &mut self.decompressor) else {
            return Ok(vec![None; self.contexts.len()]);
        };
        let levels = &mut self.levels;
        Ok(self.contexts.iter().map(|context| look_as(context, found, &bytes, levels)).collect())
    }

    fn arranged(&self, start: usize, group: &Candidate) -> Arranged {
        let starts = std::iter::once(start).chain(group.ends.iter().copied());
        let pages = |(from, to): (usize, &usize)| self.pages.get(from..*to).unwrap_or_default().to_vec();
        Arranged { rows: group.rows, chunks: starts.zip(&group.ends).map(pages).collect() }
    }
}

/// Whether pages `start..end` can be a chunk, as far as metadata behind chunks tells.
fn ends_chunk(segment: &Segment, start: usize, end: usize) -> bool {
    let ends = &segment.chunk_ends;
    ends.get(ends.partition_point(|e| *e <= start)).is_none_or(|e| *e == end)
}

fn look_as(context: &ChunkContext, found: &Found, bytes: &Bytes, levels: &mut Levels) -> Option<Rows> {
    reads(context.dialect, &context.leaf, found.data, bytes, &context.limits, levels).ok()?;
    if context.leaf.max_repetition == 0 {
        return Some(Rows { begun: found.data.num_values as u64, starts: true });
    }
    let starts = levels.repetition.first().is_none_or(|level| *level == 0);
    Some(Rows { begun: count_level(&levels.repetition, 0) as u64, starts })
}
