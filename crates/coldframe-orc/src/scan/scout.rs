//! Finds the rows that pass the filter by its columns alone, before the other columns are decoded.
//!
//! ```text
//! row group      | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |     those that statistics and bloom filters keep
//! filter's       | v | v | v | v | v | v | v | v |     decoded by the scout, some row groups at a time
//! a row passes         x               x   x
//! the others          |v|            |vvv|v|           decoded where rows pass
//! handed out           x               x   x           the filter's values that were kept, beside the others
//! ```
//!
//! In the other row groups, only the filter's columns are decompressed and decoded. If many row groups have rows
//! that pass, the other columns are read from the stripe's start, and the rows between are passed over. What was
//! decoded of the filter's columns is handed out ([`super::handed`]), so a filter decodes no value twice, except of
//! a nested column that the filter reads in part.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::DataType;
use coldframe_core::{Error, PlanRequest, Projection, Result, Scouting};

use super::decode::StripeBatches;
use super::handed::Handed;
use super::job::{Run, ScanShared, StripeJob, stored_bytes};
use super::ranges;
use crate::open::Shape;

/// Number of row groups that are examined together: few at first, since the scout may save nothing.
const FIRST: usize = 4;
const NEXT: usize = 16;
/// Up to this many unwanted rows are decoded and dropped: to open the columns again costs about as much.
const APART: u64 = 512;
/// Up to this many unwanted rows are skipped by the columns themselves, in one run with the rows around them.
const FAR: u64 = 1 << 15;
/// Columns are read from the stripe's start where more than 1/`MANY` of the row groups have rows that pass.
const MANY: usize = 4;

/// State shared by all scouts of a scan.
pub(crate) struct ScoutShared {
    /// The filter's columns, as a scan of their own.
    pub(crate) scan: Arc<ScanShared>,
    scouting: Scouting,
    /// Whether a scout saved nothing.
    futile: AtomicBool,
}

impl ScoutShared {
    /// The state for a filtered scan; `None` if no column can be decoded later, or tested by the entries of its
    /// dictionary.
    pub(crate) fn new(shape: &Arc<Shape>, request: &PlanRequest) -> Result<Option<Self>> {
        let Some(scouting) = Scouting::new(request) else { return Ok(None) };
        let decode = Projection::resolve(&shape.schema, Some(&[]), &scouting.paths())?.decode;
        let has_text = decode.fields().iter().any(|field| *field.data_type() == DataType::Utf8);
        if decode.fields().is_empty() || (decode == request.decode && !has_text) {
            return Ok(None);
        }
        let own = PlanRequest { decode, scan: request.scan.clone(), damage: request.damage.clone() };
        let scan = Arc::new(ScanShared::new(shape.clone(), &own)?);
        Ok(Some(Self { scan, scouting, futile: AtomicBool::new(false) }))
    }

    /// Whether scouts have saved work so far.
    pub(crate) fn is_useful(&self) -> bool {
        !self.futile.load(Ordering::Relaxed)
    }

    /// Notes whether a scout saved nothing.
    fn note_futile(&self, is: bool) {
        if is {
            self.futile.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the filter's columns are at most half of the bytes to read; otherwise it does not pay to request the
    /// others later.
    pub(crate) fn saves_bytes(&self, all: &ScanShared, job: &StripeJob) -> bool {
        let of = |scan| stored_bytes(scan, job).iter().sum::<u64>();
        of(&self.scan) <= of(all) / 2
    }
}

/// The scout of one stripe.
pub(crate) struct Scout {
    shared: Arc<ScoutShared>,
    batches: StripeBatches,
    /// The row groups that are not examined yet.
    left: VecDeque<Run>,
    /// How many are examined next.
    most: usize,
    /// The row groups that are being examined, and their runs of which a row is still to be tested.
    groups: Vec<Run>,
    untested: VecDeque<Range<u64>>,
    pub(super) handed: Handed,
}

impl Scout {
    /// Examines `groups`; `batches` have the filter's columns, of which those in `handed` are handed out.
    pub(crate) fn new(
        shared: Arc<ScoutShared>,
        batches: StripeBatches,
        groups: VecDeque<Run>,
        handed: Handed,
    ) -> Self {
        let (left, most) = (groups, FIRST);
        Self { shared, batches, left, most, groups: Vec::new(), untested: VecDeque::new(), handed }
    }

    /// Examines the next row groups, and plans what `others` decode, which have the other columns; possibly nothing.
    /// `None` after the last row group.
    pub(super) fn next_examined(
        &mut self,
        others: &mut StripeBatches,
    ) -> Result<Option<(Examined, Vec<Run>)>> {
        if self.untested.is_empty() {
            if self.left.is_empty() {
                return Ok(None);
            }
            self.groups = self.left.drain(..self.most.min(self.left.len())).collect();
            self.most = NEXT;
            let all = vec![true; self.groups.len()];
            let runs: Vec<Run> = ranges::runs(&self.groups, &all).map(|(run, _)| run).collect();
            self.untested = runs.iter().map(|run| run.rows.clone()).filter(|rows| !rows.is_empty()).collect();
            self.batches.set_tasks(runs.into_iter());
        }
        let examined = self.examine()?;
        if self.handed.is_all() {
            return Ok(Some((examined, Vec::new())));
        }
        let passing = examined.passing();
        let in_group = |group: &Run| within(&passing, &group.rows).next().is_some();
        let wanted: Vec<bool> = self.groups.iter().map(in_group).collect();
        let stay = wanted.iter().filter(|wanted| **wanted).count();
        self.shared.note_futile(self.handed.reads_twice() && stay * 4 > wanted.len() * 3);
        // Where statistics have excluded row groups, those that are left are few.
        let is_dense = self.batches.has_whole_streams() && stay * MANY > wanted.len();
        let is_apart = stay == 0 || others.passes_over() || (!is_dense && others.locate()?);
        if (is_dense || !is_apart) && others.pass_over()? {
            let runs = together(passing).into_iter().map(|part| examined.run(part)).collect();
            return Ok(Some((examined, runs)));
        }
        let trimmed = |(run, _): (Run, Range<usize>)| {
            let positions = run.positions.filter(|_| !others.passes_over());
            let run = Run { positions, ..run };
            let mut passing = within(&passing, &run.rows);
            let Some(first) = passing.next() else { return run };
            let last = passing.last().map_or(first.rows.end, |last| last.rows.end);
            let wanted = first.rows.start.max(run.rows.start)..last.min(run.rows.end);
            Run { wanted, ..run }
        };
        let runs = ranges::runs(&self.groups, &wanted).map(trimmed).collect();
        Ok(Some((examined, runs)))
    }

    /// Decodes the filter's columns, and keeps what passes of those that are handed out: until all rows of the row groups
    /// are tested, or what passes takes the memory of a batch.
    fn examine(&mut self) -> Result<Examined> {
        let most = self.shared.scan.shape.options.limits.batch_bytes();
        let (mut tested, mut passed, mut bytes) = (Vec::new(), Vec::new(), 0u64);
        while !self.untested.is_empty() && bytes < most {
            let Some(batch) = self.batches.next().transpose()? else {
                return Err(Error::invalid("a scout received fewer rows than it requested"));
            };
            let mask = self.shared.scouting.passing(&batch)?;
            let mut at = 0;
            while at < mask.len() {
                let Some(rows) = self.untested.front_mut() else {
                    return Err(Error::invalid("a scout received more rows than it requested"));
                };
                let count = size(length(rows)).min(mask.len() - at);
                let start = rows.start;
                rows.start += count as u64;
                tested.push(Tested { rows: start..rows.start, bits: mask.slice(at, count) });
                at += count;
                if rows.is_empty() {
                    self.untested.pop_front();
                }
            }
            if mask.count_set_bits() > 0 {
                let of_batch = self.handed.kept(&batch, mask)?;
                bytes = bytes.saturating_add(of_batch.get_array_memory_size() as u64);
                passed.push(of_batch);
            }
        }
        Ok(Examined { tested, batch: self.handed.together(&passed)?, given: 0 })
    }
}

/// Adjacent rows that were tested.
struct Tested {
    rows: Range<u64>,
    /// Which of them pass.
    bits: BooleanBuffer,
}

/// What a scout has of the row groups that it examined.
pub(super) struct Examined {
    /// In the order of their rows.
    tested: Vec<Tested>,
    /// The columns that the scout hands out, of the rows that pass.
    batch: RecordBatch,
    /// How many of these rows were handed out.
    given: usize,
}

impl Examined {
    /// The rows that pass, with the rows between those that are close to each other.
    fn passing(&self) -> Vec<Passing> {
        let mut passing = Vec::new();
        for tested in &self.tested {
            for (start, end) in tested.bits.set_slices() {
                add(&mut passing, &(tested.rows.start + start as u64..tested.rows.start + end as u64));
            }
        }
        passing
    }

    /// Which of the rows `rows` pass. Rows that were not tested do not.
    pub(super) fn bits(&self, rows: &Range<u64>) -> BooleanBuffer {
        let first = self.tested.partition_point(|tested| tested.rows.end <= rows.start);
        let mut bits = BooleanBufferBuilder::new(size(length(rows)));
        let mut row = rows.start;
        for tested in self.tested.iter().skip(first).take_while(|tested| tested.rows.start < rows.end) {
            let (from, to) = (tested.rows.start.max(row), tested.rows.end.min(rows.end));
            bits.append_n(size(from - row), false);
            bits.append_buffer(&tested.bits.slice(size(from - tested.rows.start), size(to - from)));
            row = to;
        }
        bits.append_n(size(rows.end - row), false);
        bits.finish()
    }

    /// The run that reads these rows, and only those that pass unless they are many.
    fn run(&self, part: Passing) -> Run {
        let kept = (part.count < length(&part.rows) / 2).then(|| self.bits(&part.rows));
        Run { kept, ..Run::new(part.rows, None) }
    }

    /// The columns that the scout hands out, of all rows that pass.
    pub(super) fn into_batch(self) -> RecordBatch {
        self.batch
    }

    /// The columns that the scout hands out, of the next `rows` rows that pass.
    pub(super) fn next_rows(&mut self, rows: usize) -> Result<RecordBatch> {
        if rows > self.batch.num_rows() - self.given {
            return Err(Error::invalid("more rows pass than a scout kept"));
        }
        let start = self.given;
        self.given += rows;
        Ok(self.batch.slice(start, rows))
    }
}

/// Rows that pass, with the rows between that are close.
struct Passing {
    rows: Range<u64>,
    /// How many of them pass.
    count: u64,
}

/// Adds rows that pass behind the last ones, or together with them if they are close.
fn add(passing: &mut Vec<Passing>, rows: &Range<u64>) {
    match passing.last_mut().filter(|last| rows.start < last.rows.end.saturating_add(APART)) {
        Some(last) => {
            last.rows.end = rows.end;
            last.count += length(rows);
        }
        None => passing.push(Passing { rows: rows.clone(), count: length(rows) }),
    }
}

/// The same rows in fewer parts: a part is read by one call of each column, whatever lies between its rows. Where most
/// rows of a part would pass, it stays apart, since such a part is decoded whole.
fn together(passing: Vec<Passing>) -> Vec<Passing> {
    let mut parts: Vec<Passing> = Vec::new();
    for part in passing {
        let is_near = |last: &&mut Passing| {
            let rows = part.rows.end - last.rows.start;
            part.rows.start - last.rows.end < FAR && (last.count + part.count) < rows / 2
        };
        match parts.last_mut().filter(is_near) {
            Some(last) => {
                last.rows.end = part.rows.end;
                last.count += part.count;
            }
            None => parts.push(part),
        }
    }
    parts
}

fn length(rows: &Range<u64>) -> u64 {
    rows.end.saturating_sub(rows.start)
}

fn size(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// Of some sorted parts, those with rows in `rows`.
fn within<'a>(parts: &'a [Passing], rows: &Range<u64>) -> impl Iterator<Item = &'a Passing> + use<'a> {
    let (start, end) = (rows.start, rows.end);
    let first = parts.partition_point(|part| part.rows.end <= start);
    parts.get(first..).unwrap_or_default().iter().take_while(move |part| part.rows.start < end)
}

/// How many rows of `groups` are tested together, on average: a batch ends with the groups examined together,
/// and where the next group is not adjacent.
pub(crate) fn rows_tested_together(groups: &VecDeque<Run>) -> usize {
    let rows = groups.iter().map(|group| group.rows.end.saturating_sub(group.rows.start));
    let rows = usize::try_from(rows.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
    let pairs = groups.iter().zip(groups.iter().skip(1));
    let gaps = pairs.filter(|(group, next)| group.rows.end != next.rows.start).count();
    rows / (groups.len().div_ceil(NEXT) + gaps).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_close_are_decoded_together() {
        let mut passing = Vec::new();
        for rows in [3..4, 9..20, 531..532, 1044..1045, 1557..1558] {
            add(&mut passing, &rows);
        }
        let ranges: Vec<_> = passing.iter().map(|part| part.rows.clone()).collect();
        assert_eq!(ranges, [3..532, 1044..1045, 1557..1558]);
        let of = |rows: Range<u64>| within(&passing, &rows).count();
        assert_eq!([of(0..3), of(0..4), of(531..2000), of(532..1044), of(1557..1558)], [0, 1, 3, 0, 1]);
        assert_eq!(passing.iter().map(|part| part.count).collect::<Vec<_>>(), [13, 1, 1]);
    }

    #[test]
    fn few_rows_are_read_together() {
        let parts = |parts: &[(u64, u64)]| {
            let mut passing = Vec::new();
            parts.iter().for_each(|(start, end)| add(&mut passing, &(*start..*end)));
            let parts: Vec<_> = together(passing).into_iter().map(|part| (part.rows, part.count)).collect();
            parts
        };
        assert_eq!(parts(&[(5, 6), (2000, 2002), (9000, 9001)]), [(5..9001, 4)]);
        assert_eq!(parts(&[(5, 6), (40_000, 40_001)]), [(5..6, 1), (40_000..40_001, 1)]);
        // Most rows would pass.
        assert_eq!(parts(&[(0, 5000), (6000, 9000)]), [(0..5000, 5000), (6000..9000, 3000)]);
    }

    #[test]
    fn rows_that_were_not_tested_do_not_pass() {
        let tested = |start: u64, bits: &[bool]| Tested {
            rows: start..start + bits.len() as u64,
            bits: bits.iter().copied().collect(),
        };
        let batch = RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()));
        let tested = vec![tested(3, &[true, false]), tested(5, &[true]), tested(8, &[false, false, true])];
        let mut examined = Examined { tested, batch, given: 0 };
        let of = |rows: Range<u64>| examined.bits(&rows).set_indices().collect::<Vec<_>>();
        assert_eq!(of(0..12), [3, 5, 10]);
        assert_eq!([of(4..6), of(6..8), of(10..11)], [vec![1], vec![], vec![0]]);
        let [first] = examined.passing().try_into().ok().unwrap();
        assert_eq!((first.rows.clone(), first.count), (3..11, 3));
        let kept = examined.run(first).kept.unwrap();
        assert_eq!((kept.len(), kept.count_set_bits()), (8, 3));
        assert!(examined.next_rows(1).is_err());
    }

    #[test]
    fn rows_of_groups_that_are_apart_are_not_tested_together() {
        let group = |start: u64| Run::new(start..start + 1000, None);
        let together = |starts: &[u64]| rows_tested_together(&starts.iter().copied().map(group).collect());
        assert_eq!(together(&[]), 0);
        assert_eq!(together(&[3000]), 1000);
        assert_eq!(together(&[0, 1000, 2000, 3000]), 4000);
        assert_eq!(together(&[0, 1000, 4000, 9000]), 1333);
        let all: Vec<u64> = (0..64).map(|n| n * 1000).collect();
        assert_eq!(together(&all), 16_000);
    }
}
