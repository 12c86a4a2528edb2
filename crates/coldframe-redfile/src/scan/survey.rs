//! Determines which parts of a damaged chunk can be read, by trying every page before the first row is
//! returned.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_schema::DataType;
use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Decompressor;

use super::leaf::ChunkPart;
use crate::pages::chunk::ChunkContext;
use crate::pages::levels::count_level;
use crate::pages::walk::{Page, PageWalk};

/// The result of surveying a damaged chunk.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The parts to read, with gaps for lost rows.
    pub(crate) parts: VecDeque<ChunkPart>,
    /// The losses: the error, the bytes and the rows of each loss.
    pub(crate) damage: Vec<(Error, Range<u64>, Range<u64>)>,
}

impl Survey {
    /// The survey of a chunk without a readable page.
    pub(crate) fn all_lost(e: Error, bytes: Range<u64>, rows: u64) -> Self {
        let parts = VecDeque::from([ChunkPart::Gap { rows }]);
        Self { parts, damage: vec![(e, bytes, 0..rows)] }
    }

    /// Tries every page of a chunk that should have `rows` rows and ends at `end`. If a page cannot be
    /// decoded, it is lost. If a header cannot be parsed, everything after it is lost.
    pub(crate) fn new(
        context: &ChunkContext,
        data_type: &DataType,
        mut walk: PageWalk,
        rows: u64,
        end: u64,
        decompressor: &mut Decompressor,
    ) -> Self {
        let nested = context.leaf.max_repetition > 0;
        let start = walk.offset();
        let mut tried: Vec<(Page, Result<usize>)> = Vec::new();
        let stopped = loop {
            match walk.next_page() {
                Ok(Some(page)) => {
                    let begun = context.try_page(&page, data_type, decompressor).and_then(|levels| {
                        if tried.is_empty() && levels.repetition.first().is_some_and(|level| *level > 0) {
                            let e = "expected a row to begin, found an entry that continues one";
                            return Err(Error::corrupt(e).at(page.place.start).within("page 0"));
                        }
                        Ok(if nested { count_level(&levels.repetition, 0) } else { page.data.num_values })
                    });
                    tried.push((page, begun));
                }
                Ok(None) => break None,
                Err(e) => break Some(e),
            }
        };
        let counted: u64 = tried.iter().filter_map(|(_, begun)| begun.as_ref().ok()).map(|n| *n as u64).sum();
        let whole = stopped.is_none() && tried.iter().all(|(_, begun)| begun.is_ok());
        let rest = walk.offset()..end.max(walk.offset());
        if whole && counted == rows {
            let parts = tried.into_iter().map(|(page, _)| ChunkPart::Page { page, from_first_row: false });
            return Self { parts: parts.collect(), ..Self::default() };
        }
        if whole {
            let e = Error::corrupt(format!("expected pages of {rows} rows, found {counted}"));
            return Self::all_lost(e, start..rest.end, rows);
        }
        if nested { Self::nested(tried, stopped, rest, rows) } else { Self::flat(tried, stopped, rest, rows) }
    }

    /// Each page states how many rows it has. If the sum is not the expected number, the number of a damaged
    /// page may be wrong, so the position of the rows after it is unknown.
    fn flat(tried: Vec<(Page, Result<usize>)>, stopped: Option<Error>, rest: Range<u64>, rows: u64) -> Self {
        let (mut survey, mut at, mut placed) = (Self::default(), 0u64, true);
        for (page, begun) in tried {
            let next = at.saturating_add(page.data.num_values as u64).min(rows);
            match begun {
                Ok(_) if placed => survey.parts.push_back(ChunkPart::Page { page, from_first_row: false }),
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
        self.parts.push_back(ChunkPart::Gap { rows: rows.end - rows.start });
        self.damage.push((e, bytes, rows));
    }

    /// How many rows a page has can be seen only from its levels. So the rows of the intact pages at both
    /// ends are counted, and the rows between the first and the last damaged page are lost.
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
        // The last row before the damage may have continued in it.
        let lost = before.saturating_sub(1)..rows - after;
        let mut from_first_row = true;
        for (i, (page, begun)) in tried.into_iter().enumerate() {
            if i == head {
                survey.parts.push_back(ChunkPart::Gap { rows: rows - after - before });
            }
            match begun {
                Ok(_) if i < head => survey.parts.push_back(ChunkPart::Page { page, from_first_row: false }),
                Ok(begun) if i >= tail_at => {
                    survey.parts.push_back(ChunkPart::Page { page, from_first_row });
                    from_first_row &= begun == 0;
                }
                Ok(_) => {}
                Err(e) => survey.damage.push((e, page.place.clone(), lost.clone())),
            }
        }
        if head == survey.parts.len() {
            survey.parts.push_back(ChunkPart::Gap { rows: rows - after - before });
        }
        if let Some(e) = stopped {
            survey.damage.push((e, rest, lost.clone()));
        }
        survey
    }
}
