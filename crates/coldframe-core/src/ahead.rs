//! The units of a plan with their bytes, those behind asked for while the one in front is decoded.
//!
//! ```text
//! plan ──▶ unit 3 ─ begun ─┐
//!          unit 2 ─ begun ─┤  on their way, bounded by bytes and number
//!          unit 1 ─ begun ─┘
//!          unit 0 ──▶ waited for, decoded
//! ```
//!
//! Only sources that take their time are asked early ([`crate::ReadAt::begin`]); of any other the next unit is planned and fetched when
//! its turn comes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_encoding::Result;

use crate::format::{Fetch, Plan, Unit};
use crate::io::{Pending, ReadAt, begin_coalesced, read_coalesced};

/// Bytes that may be on their way for one scan, but for a single unit that is larger.
const MOST_BYTES: u64 = 64 << 20;

/// Units that may be on their way.
const MOST_UNITS: usize = 16;

/// A plan that is ahead of its reader.
pub(crate) struct Ahead {
    plan: Box<dyn Plan>,
    /// Whether the units behind are asked for early.
    early: bool,
    ended: bool,
    /// Units in their order; at the end perhaps what the plan failed with.
    coming: VecDeque<Result<Coming>>,
}

/// A planned unit.
struct Coming {
    unit: Unit,
    bytes: u64,
    /// Where it was asked for.
    parts: Option<Vec<Part>>,
}

/// What comes from one source: the places of the answers among the unit's, and the answers.
type Part = (Vec<usize>, Pending);

impl Ahead {
    /// The units of a plan; `early`: those behind will be wanted too.
    pub(crate) fn new(plan: Box<dyn Plan>, early: bool) -> Self {
        Self { plan, early, ended: false, coming: VecDeque::new() }
    }

    /// The next unit and its bytes.
    pub(crate) fn next_unit(&mut self) -> Result<Option<(Unit, Result<Vec<Bytes>>)>> {
        if self.coming.is_empty() {
            self.enqueue();
        }
        let Some(next) = self.coming.pop_front().transpose()? else { return Ok(None) };
        self.top_up();
        let bytes = match next.parts {
            Some(parts) => wait(next.unit.fetch.len(), parts),
            None => fetch(&next.unit.fetch),
        };
        Ok(Some((next.unit, bytes)))
    }

    /// Whether units are on their way.
    pub(crate) fn asks_early(&self) -> bool {
        self.early && !self.coming.is_empty()
    }

    /// The next unit of the plan, which nobody asks for the bytes of.
    pub(crate) fn plan_unit(&mut self) -> Result<Option<Unit>> {
        self.plan.next_unit()
    }

    /// Asks for units until enough are on their way.
    pub(crate) fn top_up(&mut self) {
        while self.early && !self.ended && self.coming.len() < MOST_UNITS {
            let under_way = self.coming.iter().flatten().fold(0u64, |sum, c| sum.saturating_add(c.bytes));
            let like_the_last = self.coming.back().map_or(0, |c| c.as_ref().map_or(0, |c| c.bytes));
            if under_way > 0 && under_way.saturating_add(like_the_last) > MOST_BYTES {
                break;
            }
            self.enqueue();
        }
    }

    /// Plans one more unit and asks for its bytes, if its source is one to be asked early.
    fn enqueue(&mut self) {
        if self.ended {
            return;
        }
        let unit = match self.plan.next_unit() {
            Ok(Some(unit)) => unit,
            Ok(None) => {
                self.ended = true;
                return;
            }
            Err(e) => {
                self.ended = true;
                self.coming.push_back(Err(e));
                return;
            }
        };
        let parts = if self.early { begin(&unit.fetch) } else { None };
        self.early = parts.is_some();
        let bytes = unit
            .fetch
            .iter()
            .fold(0u64, |sum, f| sum.saturating_add(f.range.end.saturating_sub(f.range.start)));
        self.coming.push_back(Ok(Coming { unit, bytes, parts }));
    }
}

/// A source, and which of a unit's parts come from it, with their ranges.
type Group = (Arc<dyn ReadAt>, Vec<usize>, Vec<Range<u64>>);

fn groups(parts: &[Fetch]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        match groups.iter_mut().find(|(source, ..)| Arc::ptr_eq(source, &part.source)) {
            Some((_, places, ranges)) => {
                places.push(i);
                ranges.push(part.range.clone());
            }
            None => groups.push((part.source.clone(), vec![i], vec![part.range.clone()])),
        }
    }
    groups
}

/// The bytes of all parts, one coalesced request for each source.
fn fetch(parts: &[Fetch]) -> Result<Vec<Bytes>> {
    let mut answers = vec![Bytes::new(); parts.len()];
    for (source, places, ranges) in groups(parts) {
        put(&mut answers, &places, read_coalesced(source.as_ref(), &ranges)?);
    }
    Ok(answers)
}

/// The same without waiting; `None` if a source is none to be asked early.
fn begin(parts: &[Fetch]) -> Option<Vec<Part>> {
    let begun = |(source, places, ranges): Group| Some((places, begin_coalesced(source.as_ref(), &ranges)?));
    groups(parts).into_iter().map(begun).collect()
}

fn wait(count: usize, parts: Vec<Part>) -> Result<Vec<Bytes>> {
    let mut answers = vec![Bytes::new(); count];
    for (places, pending) in parts {
        put(&mut answers, &places, pending()?);
    }
    Ok(answers)
}

fn put(answers: &mut [Bytes], places: &[usize], bytes: Vec<Bytes>) {
    for (place, bytes) in places.iter().zip(bytes) {
        if let Some(answer) = answers.get_mut(*place) {
            *answer = bytes;
        }
    }
}
