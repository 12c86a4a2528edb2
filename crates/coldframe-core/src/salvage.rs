//! Decides which rows and values of a damaged unit are kept, and records the losses. All formats share this
//! module.
//!
//! ```text
//!  spans of columns           stretches of rows           batches
//!  a ..###......        ──▶   keep | drop | keep    ──▶   whole rows, or rows with nulls
//!  b .....##....              one record a loss
//! ```
//!
//! A [`Span`] is a stretch of one column's rows between two anchors, places where two independent statements
//! of the file agree. The [`Level`] of a span says how well the span is proved. What is kept of a unit is
//! settled before its first row is handed out ([`Salvage::settle`]), so it does not depend on the size of
//! batches.
//!
//! The laws that every format's tests check:
//! - under [`OnError::Skip`], one damaged place costs at most the smallest unit of the format;
//! - [`OnError::Null`] keeps at least the rows that `Skip` keeps: a loss costs a row only if its column is
//!   not nullable;
//! - each loss has a record, and each record is a loss. A row lost in two columns counts once, in the record of
//!   the first column: the other record states where its column is damaged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use coldframe_encoding::{Error, Result};

use crate::{Damage, DamageLog, OnError, arrow_error};

/// Calls `read` with `rows` rows, then with half as many, until the rows fit
/// ([`Limits::check_batch`](coldframe_encoding::Limits::check_batch)). Returns the result and its number of rows. A `read` that returns [`Error::is_batch_too_long`] must not advance its reader.
pub fn fitting<T>(mut rows: usize, mut read: impl FnMut(usize) -> Result<T>) -> Result<(T, usize)> {
    loop {
        match read(rows) {
            Err(e) if rows > 1 && e.is_batch_too_long() => rows /= 2,
            other => return other.map(|read| (read, rows)),
        }
    }
}

/// Decodes all `batches` of a unit before its first row is handed out, so that a healthy unit is decoded only once. `None`
/// if one fails, or if they take more than `most` bytes.
pub fn decoded_whole(
    batches: impl IntoIterator<Item = Result<RecordBatch>>,
    most: u64,
) -> Option<Vec<RecordBatch>> {
    let (mut whole, mut bytes) = (Vec::new(), 0u64);
    for batch in batches {
        let batch = batch.ok()?;
        bytes = bytes.saturating_add(batch.get_array_memory_size() as u64);
        if bytes > most {
            return None;
        }
        whole.push(batch);
    }
    Some(whole)
}

/// Cuts batches into batches of at most `rows` rows, without copying.
pub fn cut_batches(batches: Vec<RecordBatch>, rows: usize) -> impl Iterator<Item = RecordBatch> + Send {
    batches.into_iter().flat_map(move |batch| {
        let starts = (0..batch.num_rows()).step_by(rows.max(1));
        starts.map(move |from| batch.slice(from, rows.min(batch.num_rows() - from)))
    })
}

/// A batch without the rows whose numbers are in `left_out`, which is in increasing order.
pub fn without_rows(batch: RecordBatch, left_out: &[usize]) -> Result<RecordBatch> {
    if left_out.is_empty() {
        return Ok(batch);
    }
    let kept = |row| Some(left_out.binary_search(&row).is_err());
    let kept: BooleanArray = (0..batch.num_rows()).map(kept).collect();
    filter_record_batch(&batch, &kept).map_err(arrow_error)
}

/// Non-overlapping ranges, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; returns how much of the range was not covered before.
    pub fn add(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let Range { mut start, mut end } = range;
        let mut held = 0;
        // Merges the existing ranges that touch the new range, from the back. Each range is removed only
        // once, so many additions stay cheap.
        while let Some((&from, &to)) = self.0.range(..=end).next_back() {
            if to < start {
                break;
            }
            self.0.remove(&from);
            held += to.min(range.end).saturating_sub(from.max(range.start));
            start = start.min(from);
            end = end.max(to);
        }
        self.0.insert(start, end);
        (range.end - range.start) - held
    }

    /// The total length of the ranges.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a range contains `at`.
    pub fn contains(&self, at: u64) -> bool {
        self.0.range(..=at).next_back().is_some_and(|(_, end)| at < *end)
    }

    /// The parts of the ranges that lie in `range`, in order.
    fn within<'a>(&'a self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + 'a {
        let Range { start, end } = range.clone();
        let first = self.0.range(..start).next_back();
        let others = self.0.range(start..end.max(start));
        let parts = first.into_iter().chain(others).map(move |(s, e)| (*s).max(start)..(*e).min(end));
        parts.filter(|part| part.start < part.end)
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(start, end)| *start..*end)
    }
}

/// Rows that a column has lost, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rows, counted as [`Salvage::stretches`] counts them.
    pub rows: Range<u64>,
    /// The bytes that cannot be read.
    pub bytes: Range<u64>,
    /// What was being read.
    pub structure: String,
    /// Why the bytes cannot be read.
    pub reason: String,
}

impl Loss {
    /// The loss that an error describes.
    pub fn from_error(error: &Error, bytes: Range<u64>, rows: Range<u64>) -> Self {
        Self { rows, bytes, structure: error.structure(), reason: error.reason() }
    }
}

/// How well a span is proved, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A statement of the file disproves the span.
    Contradicted,
    /// It was decoded before the first contradiction, and no anchor lies at its end.
    Before,
    /// The span's ends are anchored, but single values contradict their type: the rows of these values are
    /// dropped, the other rows stay.
    Local,
    /// It decodes without a contradiction, ends where the next anchor begins, and agrees with all that the
    /// file states of it.
    Anchored,
    /// A checksum covers the span, and matches.
    Summed,
}

/// Rows of one column between two anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The rows, counted as [`Salvage::stretches`] counts them.
    pub rows: Range<u64>,
    /// The bytes or the streams that hold the rows.
    pub bytes: Range<u64>,
    /// How well the span is proved.
    pub level: Level,
    /// Why the level is not better: the structure that was being read, and the reason.
    pub why: Option<(String, String)>,
}

impl Span {
    /// A span that agrees with all that is stated of it.
    pub fn anchored(rows: Range<u64>, bytes: Range<u64>) -> Self {
        Self { rows, bytes, level: Level::Anchored, why: None }
    }

    /// A span that an error disproves.
    pub fn contradicted(error: &Error, bytes: Range<u64>, rows: Range<u64>) -> Self {
        let why = Some((error.structure(), error.reason()));
        Self { rows, bytes, level: Level::Contradicted, why }
    }
}

/// What happens to rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The rows are kept: all of their columns can be read.
    Kept,
    /// The rows are dropped.
    Dropped,
    /// The rows are kept, with nulls in the columns for which the flag is `true`.
    Null(Arc<[bool]>),
}

/// Consecutive rows with the same fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The rows.
    pub rows: Range<u64>,
    /// What happens to the rows.
    pub fate: Fate,
}

/// Collects what the columns of a unit have lost.
#[derive(Debug)]
pub struct Salvage {
    /// For each column, whether its values may become null instead of the rows being dropped.
    may_be_null: Vec<bool>,
    /// For each column, the rows that become null.
    null: Vec<Ranges>,
    dropped: Ranges,
    /// The dropped rows that are not even doubtful.
    contradicted: Ranges,
    damage: DamageLog,
}

impl Salvage {
    /// `nullable`: whether each column is nullable. Damage is recorded in `damage`.
    pub fn new(on_error: OnError, nullable: impl IntoIterator<Item = bool>, damage: DamageLog) -> Self {
        let may_be_null: Vec<bool> = nullable.into_iter().map(|n| n && on_error == OnError::Null).collect();
        Self {
            null: vec![Ranges::default(); may_be_null.len()],
            may_be_null,
            dropped: Ranges::default(),
            contradicted: Ranges::default(),
            damage,
        }
    }

    /// Records that a column has lost rows. The column's values in these rows become null if that is allowed;
    /// otherwise the rows are dropped.
    pub fn lose(&mut self, column: usize, loss: Loss) {
        self.contradicted.add(loss.rows.clone());
        self.withhold(column, loss);
    }

    /// Like [`Self::lose`], for rows that are doubtful ([`Level::Before`]).
    fn withhold(&mut self, column: usize, loss: Loss) {
        match (self.may_be_null.get(column), self.null.get_mut(column)) {
            (Some(true), Some(null)) => {
                null.add(loss.rows.clone());
                self.record(loss, 0);
            }
            _ => self.drop_rows(loss),
        }
    }

    /// Records that whole rows are lost.
    pub fn lose_rows(&mut self, loss: Loss) {
        self.contradicted.add(loss.rows.clone());
        self.drop_rows(loss);
    }

    fn drop_rows(&mut self, loss: Loss) {
        let new = self.dropped.add(loss.rows.clone());
        self.record(loss, new);
    }

    /// Loses the spans of a column below the level `least`. Those with [`Level::Before`] are doubtful.
    pub fn settle(&mut self, column: usize, spans: impl IntoIterator<Item = Span>, least: Level) {
        for Span { rows, bytes, why, level } in spans.into_iter().filter(|span| span.level < least) {
            let (structure, reason) = why.unwrap_or_default();
            let loss = Loss { rows, bytes, structure, reason };
            if level == Level::Before { self.withhold(column, loss) } else { self.lose(column, loss) }
        }
    }

    fn record(&self, loss: Loss, rows: u64) {
        let Loss { bytes, structure, reason, .. } = loss;
        self.damage.push(Damage { bytes, rows_lost: Some(rows), structure, reason });
    }

    /// Whether nothing was lost.
    pub fn is_whole(&self) -> bool {
        self.dropped.is_empty() && self.null.iter().all(Ranges::is_empty)
    }

    /// The dropped rows of `rows` that were decoded before the first contradiction of each column, and that no
    /// statement proves.
    pub fn doubtful(&self, rows: Range<u64>) -> Vec<Range<u64>> {
        let mut doubtful = Vec::new();
        for dropped in self.dropped.within(&rows) {
            let mut start = dropped.start;
            for lost in self.contradicted.within(&dropped) {
                doubtful.push(start..lost.start);
                start = lost.end;
            }
            doubtful.push(start..dropped.end);
        }
        doubtful.retain(|rows| !rows.is_empty());
        doubtful
    }

    /// Divides `rows` into stretches, at each place where the fate of the rows changes.
    pub fn stretches(&self, rows: Range<u64>) -> VecDeque<Stretch> {
        let ends = |ranges: &Ranges| ranges.iter().flat_map(|r| [r.start, r.end]).collect::<Vec<u64>>();
        let mut cuts: Vec<u64> = self.null.iter().chain([&self.dropped]).flat_map(ends).collect();
        cuts.retain(|at| rows.start < *at && *at < rows.end);
        cuts.extend([rows.start, rows.end]);
        cuts.sort_unstable();
        cuts.dedup();
        // Only damaged columns are checked for each stretch, since usually few of many columns are damaged.
        let null: Vec<(usize, &Ranges)> =
            self.null.iter().enumerate().filter(|(_, r)| !r.is_empty()).collect();
        let mut stretches: VecDeque<Stretch> = VecDeque::with_capacity(cuts.len());
        for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
            let fate = self.fate(*start, &null);
            match stretches.back_mut() {
                Some(last) if last.fate == fate => last.rows.end = *end,
                _ => stretches.push_back(Stretch { rows: *start..*end, fate }),
            }
        }
        stretches
    }

    /// The fate of row `at`. `null`: the columns that have rows that become null.
    fn fate(&self, at: u64, null: &[(usize, &Ranges)]) -> Fate {
        if self.dropped.contains(at) {
            return Fate::Dropped;
        }
        let mut lost =
            null.iter().filter(|(_, rows)| rows.contains(at)).map(|(column, _)| *column).peekable();
        if lost.peek().is_none() {
            return Fate::Kept;
        }
        let mut columns = vec![false; self.null.len()];
        for column in lost {
            if let Some(place) = columns.get_mut(column) {
                *place = true;
            }
        }
        Fate::Null(columns.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array};
    use proptest::prelude::*;

    fn loss(rows: Range<u64>) -> Loss {
        Loss { rows, bytes: 0..1, structure: "block".to_owned(), reason: "damaged".to_owned() }
    }

    fn rows_lost(damage: &DamageLog) -> Vec<Option<u64>> {
        damage.records().iter().map(|d| d.rows_lost).collect()
    }

    #[test]
    fn rows_are_dropped_by_their_numbers() {
        let rows = |array: &[i32]| {
            let array: ArrayRef = Arc::new(Int32Array::from(array.to_vec()));
            RecordBatch::try_from_iter([("n", array)]).unwrap()
        };
        let batch = rows(&[10, 11, 12, 13]);
        assert_eq!(without_rows(batch.clone(), &[]).unwrap(), batch);
        assert_eq!(without_rows(batch.clone(), &[0, 2]).unwrap(), rows(&[11, 13]));
        assert_eq!(without_rows(batch, &[0, 1, 2, 3]).unwrap().num_rows(), 0);
    }

    #[test]
    fn a_unit_is_decoded_whole_if_it_is_healthy_and_short() {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", array)]).unwrap();
        let bytes = batch.get_array_memory_size() as u64;
        let healthy = || [Ok(batch.clone()), Ok(batch.slice(1, 2))];
        let whole = decoded_whole(healthy(), 2 * bytes).unwrap();
        let cut: Vec<RecordBatch> = cut_batches(whole, 2).collect();
        assert_eq!(cut, [batch.slice(0, 2), batch.slice(2, 1), batch.slice(1, 2)]);
        assert_eq!(decoded_whole(healthy(), bytes), None);
        assert_eq!(decoded_whole([Ok(batch), Err(Error::corrupt("damaged"))], u64::MAX), None);
    }

    #[test]
    fn a_row_lost_in_two_columns_counts_once() {
        let damage = DamageLog::default();
        let mut salvage = Salvage::new(OnError::Skip, [true, true], damage.clone());
        salvage.lose(0, loss(2..5));
        salvage.lose(1, loss(4..7));
        assert_eq!(rows_lost(&damage), [Some(3), Some(2)]);
        let fates: Vec<_> = salvage.stretches(0..10).into_iter().map(|s| (s.rows, s.fate)).collect();
        assert_eq!(fates, [(0..2, Fate::Kept), (2..7, Fate::Dropped), (7..10, Fate::Kept)]);
    }

    #[test]
    fn null_costs_rows_only_for_columns_that_are_not_nullable() {
        let damage = DamageLog::default();
        let mut salvage = Salvage::new(OnError::Null, [true, false], damage.clone());
        salvage.lose(0, loss(2..5));
        salvage.lose(1, loss(4..6));
        assert_eq!(rows_lost(&damage), [Some(0), Some(2)]);
        let fates: Vec<_> = salvage.stretches(0..10).into_iter().map(|s| (s.rows, s.fate)).collect();
        let null = Fate::Null([true, false].into());
        assert_eq!(fates, [(0..2, Fate::Kept), (2..4, null), (4..6, Fate::Dropped), (6..10, Fate::Kept)]);
        assert!(!salvage.is_whole());
    }

    #[test]
    fn spans_below_a_level_are_lost() {
        let e = Error::corrupt("expected 5, found 6").within("DATA");
        let spans = || {
            let before = Span { level: Level::Before, ..Span::contradicted(&e, 0..9, 2..4) };
            [Span::anchored(0..2, 0..9), before, Span::contradicted(&e, 0..9, 4..6)]
        };
        let damage = DamageLog::default();
        let mut salvage = Salvage::new(OnError::Skip, [true], damage.clone());
        salvage.settle(0, spans(), Level::Anchored);
        assert_eq!(rows_lost(&damage), [Some(2), Some(2)]);
        let first = salvage.stretches(0..6).front().cloned();
        assert_eq!(first, Some(Stretch { rows: 0..2, fate: Fate::Kept }));
        let records = damage.records();
        assert!(records.iter().all(|d| d.structure == "DATA" && d.reason == "expected 5, found 6"));
        // What another column loses is not doubtful.
        assert_eq!(salvage.doubtful(0..9), [Range { start: 2, end: 4 }]);
        salvage.lose(0, loss(3..4));
        assert_eq!(salvage.doubtful(0..9), [Range { start: 2, end: 3 }]);
        assert_eq!(salvage.doubtful(3..9), []);
        assert!(Level::Contradicted < Level::Before && Level::Anchored < Level::Summed);
    }

    #[test]
    fn a_batch_that_is_too_long_is_read_in_fewer_rows() {
        let bytes = |rows: usize| rows as u64 * (40 << 20);
        let limits = coldframe_encoding::Limits::default();
        let read = fitting(100, |rows| limits.check_batch("values", rows, bytes(rows)).map(|()| rows));
        assert_eq!(read.unwrap(), (3, 3));
        assert!(limits.check_batch("a value", 1, 1 << 30).is_ok());
        let never = fitting(8, |rows| limits.check_batch("values", rows, 1 << 31));
        assert!(never.unwrap_err().is_batch_too_long());
    }

    proptest! {
        #[test]
        fn overlapping_ranges_are_merged(added in proptest::collection::vec((0u64..60, 0u64..12), 0..30)) {
            let mut ranges = Ranges::default();
            let mut naive = std::collections::BTreeSet::new();
            for (start, len) in added {
                let new = (start..start + len).filter(|at| naive.insert(*at)).count() as u64;
                prop_assert_eq!(ranges.add(start..start + len), new);
            }
            prop_assert_eq!(ranges.len(), naive.len() as u64);
            prop_assert!((0..80).all(|at| ranges.contains(at) == naive.contains(&at)));
            let all: Vec<Range<u64>> = ranges.iter().collect();
            prop_assert!(all.windows(2).all(|w| w[0].end < w[1].start));
        }
    }
}
