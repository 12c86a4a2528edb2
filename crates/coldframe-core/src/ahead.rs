//! Reads ahead: requests the bytes of later units while the current unit is decoded.
//!
//! ```text
//! plan ──▶ unit 3 ─ requested ─┐
//!          unit 2 ─ requested ─┤  in flight, bounded by bytes and number
//!          unit 1 ─ requested ─┘
//!          unit 0 ──▶ waited for, decoded
//! ```
//!
//! Only slow sources are read ahead ([`crate::ReadAt::begin`]). For any other source, a unit is planned and
//! fetched when the scan needs it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_encoding::Result;

use crate::format::{Fetch, Plan, Unit};
use crate::io::{Pending, ReadAt, begin_coalesced, read_coalesced};

/// Maximum bytes in flight for one scan; a single larger unit is still requested.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of units in flight.
const MAX_UNITS: usize = 16;

/// A plan that reads ahead.
pub(crate) struct ReadAhead {
    plan: Box<dyn Plan>,
    /// Whether to request later units early.
    early: bool,
    ended: bool,
    /// Units in order; the last item may be the plan's error.
    planned: VecDeque<Result<PlannedUnit>>,
}

/// A planned unit.
pub(crate) struct PlannedUnit {
    pub(crate) unit: Unit,
    /// The total length of the unit's ranges.
    pub(crate) bytes: u64,
    /// The requests in flight for the unit; `None` if nothing was requested early.
    parts: Option<Vec<Part>>,
}

impl PlannedUnit {
    /// Waits for the unit's bytes, and returns the unit and its bytes.
    pub(crate) fn fetch(self) -> (Unit, Result<Vec<Bytes>>) {
        let bytes = match self.parts {
            Some(parts) => wait(self.unit.fetch.len(), parts),
            None => fetch(&self.unit.fetch),
        };
        (self.unit, bytes)
    }
}

/// The indexes of the unit's ranges that come from one source, and the request for their bytes.
type Part = (Vec<usize>, Pending);

impl ReadAhead {
    /// The units of a plan. `early` requests later units before the scan needs them.
    pub(crate) fn new(plan: Box<dyn Plan>, early: bool) -> Self {
        Self { plan, early, ended: false, planned: VecDeque::new() }
    }

    /// The next unit.
    pub(crate) fn next_unit(&mut self) -> Result<Option<PlannedUnit>> {
        if self.planned.is_empty() {
            self.enqueue();
        }
        let Some(next) = self.planned.pop_front().transpose()? else { return Ok(None) };
        self.top_up();
        Ok(Some(next))
    }

    /// Whether units are in flight.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.early && !self.planned.is_empty()
    }

    /// The next unit of the plan, without requesting its bytes.
    pub(crate) fn plan_unit(&mut self) -> Result<Option<Unit>> {
        self.plan.next_unit()
    }

    /// Number of units that the plan has skipped.
    pub(crate) fn pruned(&self) -> u64 {
        self.plan.pruned()
    }

    /// Requests units until enough are in flight.
    pub(crate) fn top_up(&mut self) {
        while self.early && !self.ended && self.planned.len() < MAX_UNITS {
            let in_flight = self.planned.iter().flatten().fold(0u64, |sum, c| sum.saturating_add(c.bytes));
            let next_bytes = self.planned.back().map_or(0, |c| c.as_ref().map_or(0, |c| c.bytes));
            if in_flight > 0 && in_flight.saturating_add(next_bytes) > MAX_BYTES {
                break;
            }
            self.enqueue();
        }
    }

    /// Plans one more unit and requests its bytes, if its source is slow enough to be read ahead.
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
                self.planned.push_back(Err(e));
                return;
            }
        };
        let parts = if self.early { begin(&unit.fetch) } else { None };
        self.early = parts.is_some();
        let bytes = unit
            .fetch
            .iter()
            .fold(0u64, |sum, f| sum.saturating_add(f.range.end.saturating_sub(f.range.start)));
        self.planned.push_back(Ok(PlannedUnit { unit, bytes, parts }));
    }
}

/// A source, and which of a unit's ranges come from it.
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

/// The bytes of all ranges, with one coalesced request per source.
fn fetch(parts: &[Fetch]) -> Result<Vec<Bytes>> {
    let mut answers = vec![Bytes::new(); parts.len()];
    for (source, places, ranges) in groups(parts) {
        put(&mut answers, &places, read_coalesced(source.as_ref(), &ranges)?);
    }
    Ok(answers)
}

/// Like [`fetch`], without waiting; `None` if a source should not be read ahead.
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
