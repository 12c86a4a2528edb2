//! Surveys a column that failed: how well each of its row groups is proved.
//!
//! ```text
//! 1  from the stripe's start to its end        | a | b | c | d |    does it end with the streams?
//! 2  each row group from its position          | a | x | c | d |    does it end where the next begins?
//! ```
//!
//! If the first pass ends at the exact end of all streams and the statistics of the stripe agree with it, the
//! values are right, and an index that contradicts the values is wrong. Otherwise a row group is anchored if
//! it ends where the next row group begins according to the index, and agrees with its statistics. Without an
//! index the stripe is the only row group. The values are decoded and dropped, so the survey takes the memory
//! of one batch.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use coldframe_core::salvage::{Level, Loss, Span, Stretch};
use coldframe_core::{Damage, Error, Result};
use coldframe_encoding::codec::Algorithm;

use super::column::{ColumnReader, MalformedValue};
use super::decode::StripeBatches;
use super::groups;
use super::job::{Groups, Run};
use super::ranges::VALUES;
use super::readers::{Chunks, Stored, nulls, too_long_for_all};
use super::rle::bytes::BitRle;
use super::statements::{Agreed, Sum, Tally, is_of_statistics};
use super::stream::{StreamPosition, is_of_chunk};
use crate::layout::compression::HEADER;
use crate::layout::index::is_dictionary;
use crate::layout::stripe::{StreamKind, StreamPlace};
use crate::layout::types::Kind;

/// The result of a pass over the whole stripe.
#[derive(Default)]
struct Pass {
    /// Row groups that do not begin where the index says, and the first error.
    misplaced: Vec<(usize, Error)>,
    /// Row groups whose values contradict their statistics.
    contradicted: Vec<(usize, Error)>,
    /// The first value that an index excludes, if that was compared.
    excluded: Option<Error>,
    /// The sums that agree, for each row group.
    agreed: Vec<Agreed>,
    /// Whether values contradict statistics of a row group, and nothing shows that they are right.
    disproved: bool,
}

impl StripeBatches {
    /// Surveys a column and decides its losses in the stripe.
    pub(super) fn survey(&mut self, place: usize) -> Result<()> {
        if let Some(surveyed) = self.surveyed.get_mut(place) {
            *surveyed = true;
        }
        let Some(groups) = self.stored.job.groups.clone() else { return Ok(()) };
        let spans = match self.pass(place, &groups, &|_, _| Ok(()))? {
            Ok(pass) => self.weigh(place, &groups, pass),
            Err(e) if groups.located.get(place) == Some(&true) && groups.runs.len() > 1 => {
                self.each_group(place, &groups, &e)?
            }
            Err(e) => {
                let run = Run::new(0..self.stored.job.stripe.rows, None);
                let decoded = self.rows_before(place, &run)?;
                self.failed(place, &run, &e, decoded)
            }
        };
        self.salvage.settle(place, spans, Level::Anchored);
        Ok(())
    }

    /// Surveys all columns if a loss ends or begins inside a row group: the statistics of the other columns
    /// were not compared there. Returns whether a column was surveyed.
    pub(super) fn survey_partial(&mut self, stretches: &VecDeque<Stretch>) -> Result<bool> {
        let Some(groups) = self.stored.job.groups.clone() else { return Ok(false) };
        let is_begin =
            |row: u64| groups.runs.get(groups.holding(row)).is_some_and(|run| run.rows.start == row);
        if stretches.iter().skip(1).all(|stretch| is_begin(stretch.rows.start)) {
            return Ok(false);
        }
        let left: Vec<usize> = (0..self.surveyed.len()).filter(|place| !self.is_surveyed(*place)).collect();
        left.iter().try_for_each(|place| self.survey(*place))?;
        Ok(!left.is_empty())
    }

    /// Surveys columns whose row groups the index does not locate: their losses are decided for the whole stripe.
    pub(super) fn survey_unlocated(&mut self) -> Result<()> {
        let Some(groups) = self.stored.job.groups.clone().filter(|groups| groups.runs.len() > 1) else {
            return Ok(());
        };
        for (place, located) in groups.located.iter().enumerate() {
            if !located && self.surveyed.get(place) == Some(&false) {
                self.survey(place)?;
            }
        }
        Ok(())
    }

    /// Records the loss of rows for which no column is to blame: the rows of the row groups in which the root
    /// fails, or all rows.
    pub(super) fn lose_rows(&mut self, e: &Error, rows: Range<u64>) {
        let groups = self.stored.job.groups.clone().unwrap_or_default();
        let mut lost: Vec<Range<u64>> = Vec::new();
        for run in groups.runs.iter().filter(|run| rows.contains(&run.rows.start)) {
            let count = usize::try_from(run.rows.end - run.rows.start).unwrap_or(usize::MAX);
            let root = self.stored.root(run.positions.as_deref());
            if root.and_then(|mut root| nulls(&mut root, count)).is_err() {
                lost.push(run.rows.clone());
            }
        }
        if lost.is_empty() {
            lost.push(rows);
        }
        for rows in lost {
            let (structure, reason) = (self.structure(e), e.reason());
            self.salvage.lose_rows(Loss { rows, bytes: self.bytes_of(None, e), structure, reason });
        }
    }

    /// The structure of an error in the file.
    fn structure(&self, e: &Error) -> String {
        let (stripe, inside) = (self.stored.job.stripe.name(), e.structure());
        if inside.is_empty() { stripe } else { format!("{stripe}: {inside}") }
    }

    /// The stream in which an error lies, or all streams of a column, or the stripe.
    pub(super) fn bytes_of(&self, place: Option<usize>, e: &Error) -> Range<u64> {
        let job = &self.stored.job;
        let stream = e.offset().and_then(|at| job.layout.streams.iter().find(|s| s.bytes.contains(&at)));
        if let Some(stream) = stream {
            return stream.bytes.clone();
        }
        let of = place.and_then(|place| self.stored.column(place).ok()).map(|(of, _)| of.id..of.end);
        let own = job.layout.streams.iter().filter(|stream| {
            of.as_ref().is_some_and(|of| of.contains(&stream.column))
                && VALUES.iter().any(|kind| kind.number() == stream.kind)
        });
        let extent =
            |all: Range<u64>, stream: Range<u64>| all.start.min(stream.start)..all.end.max(stream.end);
        let own = own.map(|stream| stream.bytes.clone()).reduce(extent);
        own.filter(|own| !own.is_empty()).unwrap_or_else(|| job.stripe.bytes.clone())
    }

    fn contradicted(&self, place: usize, e: Error, rows: Range<u64>) -> Span {
        let bytes = self.own_bytes(place, &e, &rows).unwrap_or_else(|| self.bytes_of(Some(place), &e));
        let why = Some((self.structure(&e), e.reason()));
        Span { rows, bytes, level: Level::Contradicted, why }
    }

    /// The bytes of a row group's rows in the stream that has an error. A run that begins in the row group before
    /// is not included, since its values there are kept. With a codec, the bytes begin at the chunk that cannot be
    /// decompressed.
    fn own_bytes(&self, place: usize, e: &Error, rows: &Range<u64>) -> Option<Range<u64>> {
        let (job, compression) = (&self.stored.job, self.stored.scan.shape.tail.compression);
        let at = e.offset()?;
        let (of, _) = self.stored.column(place).ok()?;
        let mut own =
            job.layout.streams.iter().filter(|s| (of.id..of.end.max(of.id + 1)).contains(&s.column));
        // An error at the end of a stream has the offset behind it.
        let stream =
            own.clone().find(|s| s.bytes.contains(&at)).or_else(|| own.find(|s| s.bytes.end == at))?;
        let kind = StreamKind::from_number(stream.kind)?;
        let groups = job.groups.as_ref()?;
        let is_located = groups.located.get(place) == Some(&true);
        let group = groups.holding(rows.start);
        let is_inside = groups.runs.get(group).is_some_and(|run| rows.end <= run.rows.end);
        let next = groups.begin(group + 1).filter(|_| is_located && is_inside);
        let next = next.map(|begin| stream.bytes.start.saturating_add(begin.of(stream.column, kind).chunk));
        let plain = compression.algorithm == Algorithm::None;
        let start = if is_of_chunk(e) {
            at.saturating_sub(HEADER as u64).max(stream.bytes.start)
        } else if plain && is_located && is_inside {
            let begin = groups.begin(group).map(AsRef::as_ref);
            let reader = self.stored.open_at(place, begin, Chunks::Usual).ok()?;
            let mut positions = Vec::new();
            reader.positions(&mut positions);
            let is_own = |at: &&StreamPosition| at.column == Some(stream.column) && at.kind == kind;
            positions.iter().find(is_own)?.place.0.max(stream.bytes.start)
        } else {
            return None;
        };
        let end = next.filter(|next| plain || *next > start).unwrap_or(stream.bytes.end);
        (start < end && end <= stream.bytes.end).then_some(start..end)
    }

    /// The spans of a column that decodes to the end of the stripe.
    fn weigh(&mut self, place: usize, groups: &Groups, pass: Pass) -> Vec<Span> {
        let Pass { mut misplaced, contradicted, agreed, disproved, .. } = pass;
        if let Some(in_full) = self.stored.in_full.get_mut(place) {
            *in_full |= !misplaced.is_empty();
        }
        if !disproved {
            // A wrong index loses no row here, but a reader that uses it gets wrong rows.
            misplaced.extend(contradicted);
            if let Some((_, e)) = misplaced.into_iter().next() {
                self.stored.scan.damage.push(self.wrong_index_of(place, e));
            }
            let stripe = &self.stored.job.stripe;
            return vec![Span::anchored(0..stripe.rows, stripe.bytes.clone())];
        }
        // A row group that begins or ends at a wrong place has no anchor there.
        let mut contradicted = contradicted.into_iter().peekable();
        let decoded = agreed.into_iter().enumerate().map(|(group, agreed)| {
            let own = contradicted.next_if(|(at, _)| *at == group).map(|(_, e)| e);
            let beside = |at: &usize| *at == group || *at == group + 1;
            let moved = misplaced.iter().find(|(at, _)| beside(at)).map(|(_, e)| again(e));
            moved.or(own).map_or(Ok(agreed), Err)
        });
        let decoded: Vec<_> = decoded.collect();
        self.spans(place, groups, &decoded, &[])
    }

    /// The spans of row groups that were decoded: those that failed, and those that share a chunk with them. Damage
    /// may change everything that follows it in its chunk; only a sum of the values shows that a row group in the
    /// chunk is not affected.
    ///
    /// `rows` says how many rows of each row group decode, if not all do.
    fn spans(&self, place: usize, groups: &Groups, decoded: &[Result<Agreed>], rows: &[u64]) -> Vec<Span> {
        let mut spans = Vec::new();
        for (group, run) in groups.runs.iter().enumerate() {
            match decoded.get(group) {
                Some(Err(e)) => {
                    let rows = rows.get(group).copied().unwrap_or(run.rows.end - run.rows.start);
                    spans.extend(self.failed(place, run, e, rows));
                }
                Some(Ok(agreed)) => {
                    let failed = decoded
                        .iter()
                        .enumerate()
                        .filter_map(|(at, result)| Some((at, result.as_ref().err()?)));
                    let mut beside =
                        failed.filter(|(at, e)| self.is_suspect(place, groups, (group, *at), e, agreed));
                    let Some((at, e)) = beside.next() else { continue };
                    let shared = match self.stored.scan.shape.tail.compression.algorithm {
                        Algorithm::None => "run",
                        _ => "chunk",
                    };
                    let message = format!(
                        "expected a {shared} without damage, found one that it shares with row group {at}, which failed: {}",
                        e.reason()
                    );
                    let span = self.contradicted(place, like(e, message), run.rows.clone());
                    spans.push(Span { level: Level::Before, ..span });
                }
                None => {}
            }
        }
        spans
    }

    /// The spans of a run that failed after `decoded` rows. Rows before a chunk that cannot be decompressed are
    /// anchored: the chunks before it are full, and end with their bytes.
    fn failed(&self, place: usize, run: &Run, e: &Error, decoded: u64) -> Vec<Span> {
        let to = run.rows.start + decoded;
        let mut spans = vec![self.contradicted(place, again(e), to..run.rows.end)];
        if !(self.stored.scan.shape.quirks.full_chunks && is_of_chunk(e)) {
            let span = self.contradicted(place, again(e), run.rows.start..to);
            spans.push(Span { level: Level::Before, ..span });
        }
        spans.retain(|span| !span.rows.is_empty());
        spans
    }

    /// How many rows of a run decode.
    fn rows_before(&mut self, place: usize, run: &Run) -> Result<u64> {
        let (begin, rows) = (run.positions.as_deref(), run.rows.clone());
        let (mut sound, mut step) = (0, (rows.end - rows.start) / 16 + 1);
        loop {
            let read = self.try_fitting(|stored| {
                let mut root = stored.root(begin)?;
                let mut reader = stored.open_at(place, begin, Chunks::Strict)?;
                let mut row = rows.start + sound;
                stored.drop_rows(reader.as_mut(), &mut root, rows.start..row, |_, _| {})?;
                while row < rows.end {
                    let next = row..(row + step).min(rows.end);
                    match stored.drop_rows(reader.as_mut(), &mut root, next.clone(), |_, _| {}) {
                        Err(e) if e.is_damage() => break,
                        read => read?,
                    }
                    row = next.end;
                }
                Ok(row - rows.start)
            })?;
            sound = read.unwrap_or(sound);
            if step == 1 {
                return Ok(sound);
            }
            step = (step / 16).max(1);
        }
    }

    /// Whether a row group shares a chunk with a row group that has an error, and its values there are not proved.
    /// Without a codec, both may have values in a run.
    ///
    /// - a codec copies bytes of a chunk to later places in it, so damage may change values in both;
    /// - the positions of the other streams prove how many values are not null, and the lengths of text;
    /// - a sum proves numbers;
    /// - without a sum, the row groups in front of a contradiction are proved if no value moved, which the positions
    ///   show. The damage may begin in the last of them.
    fn is_suspect(
        &self,
        place: usize,
        groups: &Groups,
        (group, other): (usize, usize),
        e: &Error,
        agreed: &Agreed,
    ) -> bool {
        let job = &self.stored.job;
        let Ok((of, _)) = self.stored.column(place) else { return false };
        // A row group with values in a chunk that cannot be opened has failed itself.
        if is_of_chunk(e) || (group + 1 < other && is_of_statistics(e)) {
            return false;
        }
        let is_located = groups.located.get(place) == Some(&true);
        let is_own = |stream: &&StreamPlace| (of.id..of.end.max(of.id + 1)).contains(&stream.column);
        let is_in_error = |stream: &&StreamPlace| match e.offset() {
            Some(at) if stream.bytes.contains(&at) => true,
            // An error at the end of a stream has the offset behind it.
            Some(at) => at == stream.bytes.end && !is_of_statistics(e),
            None => true,
        };
        job.layout.streams.iter().filter(is_own).filter(is_in_error).any(|stream| {
            let kind = StreamKind::from_number(stream.kind);
            let Some(kind) = kind.filter(|kind| VALUES.contains(kind)) else { return false };
            let at = |group: usize| groups.begin(group).map(|begin| begin.of(stream.column, kind));
            let first = |group: usize| at(group).map_or(0, |position| position.chunk);
            let last = |group: usize| match at(group + 1) {
                Some(next) if next.byte > 0 || next.run > 0 || next.bit > 0 => next.chunk,
                Some(next) => next.chunk.saturating_sub(1),
                None => u64::MAX,
            };
            let shares = first(group) <= last(other) && first(other) <= last(group);
            let sum = agreed.iter().find(|(column, _)| *column == stream.column).map(|(_, sum)| *sum);
            let is_dictionary = is_dictionary(&job.layout.encoding(stream.column));
            let of = self.stored.scan.shape.tree.get(stream.column);
            let is_bool = of.is_some_and(|of| of.kind == Kind::Boolean);
            let is_proved = match kind {
                StreamKind::Present => is_located,
                StreamKind::Length => is_located && !is_dictionary,
                StreamKind::Data if is_bool || is_dictionary => sum.is_some(),
                StreamKind::Data | StreamKind::Secondary => sum == Some(Sum::Values),
                _ => false,
            };
            shares && !is_proved
        })
    }

    /// The record of a wrong index.
    fn wrong_index_of(&self, place: usize, e: Error) -> Damage {
        let job = &self.stored.job;
        let id = self.stored.column(place).map_or(0, |(of, _)| of.id);
        let index = job.layout.stream(id, StreamKind::RowIndex);
        let bytes = index.map_or_else(|| job.stripe.bytes.clone(), |index| index.bytes.clone());
        let reason = format!(
            "expected an index that agrees with the values of the whole stripe, found a wrong one: {}",
            e.reason()
        );
        let structure = format!("{}: row index", self.structure(&e));
        Damage { bytes, rows_lost: Some(0), structure, reason }
    }

    /// Decodes each row group from its own position. `e` is the error of the whole stripe, in case no row
    /// group fails.
    fn each_group(&mut self, place: usize, groups: &Groups, e: &Error) -> Result<Vec<Span>> {
        let mut decoded = Vec::with_capacity(groups.runs.len());
        let mut rows = Vec::with_capacity(groups.runs.len());
        for run in &groups.runs {
            let group = rows.len();
            let begin = run.positions.as_deref();
            let read = self.try_fitting(|stored| {
                let mut root = stored.root(begin)?;
                let mut reader = stored.open_at(place, begin, Chunks::Strict)?;
                let mut tally = stored.tally(place, Some(group));
                stored.drop_rows(reader.as_mut(), &mut root, run.rows.clone(), |array, malformed| {
                    tally.iter_mut().for_each(|tally| tally.add(array, malformed));
                })?;
                // First, since a wrong position says more about the damage than a contradiction of statistics.
                stored.check_position(place, reader.as_ref(), run.rows.end, Chunks::Strict)?;
                stored.check(tally.as_ref(), run.rows.start)
            })?;
            rows.push(match &read {
                Ok(_) => run.rows.end - run.rows.start,
                Err(_) => self.rows_before(place, run)?,
            });
            decoded.push(read);
        }
        if decoded.iter().all(Result::is_ok) {
            // Each row group ends where the next begins, but the stripe as a whole does not decode: the damage is
            // between two row groups, and it is unknown which.
            let span = self.contradicted(place, again(e), 0..self.stored.job.stripe.rows);
            return Ok(vec![Span { level: Level::Before, ..span }]);
        }
        Ok(self.spans(place, groups, &decoded, &rows))
    }

    /// Whether the statistics of the row groups agree with a column that contradicts the statistics of the
    /// stripe.
    pub(super) fn agrees_with_index(&mut self, place: usize) -> Result<bool> {
        let Stored { scan, job, .. } = &mut self.stored;
        let Some(groups) = groups::read(scan, &job.stripe, &job.layout)? else { return Ok(false) };
        let groups = Arc::new(groups);
        job.groups = Some(groups.clone());
        let pass = self.pass(place, &groups, &|_, _| Ok(()))?;
        Ok(pass.is_ok_and(|pass| pass.contradicted.is_empty()))
    }

    /// The contradiction between the indexes of a column and its values; `also` compares the values of a row
    /// group further. `None` if the values themselves are damaged, which a scan reports.
    pub(crate) fn wrong_index(
        &mut self,
        place: usize,
        also: &dyn Fn(usize, &ArrayRef) -> Result<()>,
    ) -> Result<Option<Damage>> {
        self.decide_superfluous_of(&[place])?;
        let Some(groups) = self.stored.job.groups.clone() else { return Ok(None) };
        let Ok(pass) = self.pass(place, &groups, also)? else { return Ok(None) };
        let Pass { misplaced, contradicted, excluded, disproved, .. } = pass;
        // If the stripe's statistics do not disprove those of the row group, the row group is lost, and the scan
        // reports it.
        let contradicted = contradicted.into_iter().filter(|_| !disproved);
        let first = misplaced.into_iter().chain(contradicted).map(|(_, e)| e).chain(excluded).next();
        Ok(first.map(|e| self.wrong_index_of(place, e)))
    }

    /// Decodes a column from the stripe's start to its end. The inner error says where that fails.
    fn pass(
        &mut self,
        place: usize,
        groups: &Groups,
        also: &dyn Fn(usize, &ArrayRef) -> Result<()>,
    ) -> Result<Result<Pass>> {
        self.try_fitting(|stored| {
            let mut root = stored.root(None)?;
            let mut reader = stored.open_at(place, None, Chunks::Strict)?;
            let (mut pass, mut contradicted) = (Pass::default(), Vec::new());
            let mut of_stripe = stored.tally(place, None);
            for (group, run) in groups.runs.iter().enumerate() {
                if group > 0
                    && let Err(e) =
                        stored.check_position(place, reader.as_ref(), run.rows.start, Chunks::Usual)
                {
                    pass.misplaced.push((group, damaged(e)?));
                }
                let mut tally = stored.tally(place, Some(group));
                let mut excluded = Ok(());
                stored.drop_rows(reader.as_mut(), &mut root, run.rows.clone(), |array, malformed| {
                    let both = tally.iter_mut().chain(&mut of_stripe);
                    both.for_each(|tally| tally.add(array, malformed));
                    if excluded.is_ok() {
                        excluded = also(group, array);
                    }
                })?;
                if let Err(e) = excluded {
                    let (of, _) = stored.column(place)?;
                    pass.excluded.get_or_insert(damaged(e)?.within(super::column::name(of)));
                }
                let agreed = match stored.check(tally.as_ref(), run.rows.start) {
                    Err(e) => {
                        let of = tally.as_ref().and_then(|tally| tally.contradicted(&stored.scan));
                        contradicted.extend(of);
                        pass.contradicted.push((group, damaged(e)?));
                        Agreed::new()
                    }
                    agreed => agreed?,
                };
                pass.agreed.push(agreed);
            }
            stored.check_position(place, reader.as_ref(), stored.job.stripe.rows, Chunks::Strict)?;
            // If values contradict the statistics of a row group, the statistics of the stripe decide which is
            // right. If only one row group contradicts its number of values, that number is wrong: a null that moved
            // would change the numbers of two row groups.
            let agreed = stored.check(of_stripe.as_ref(), 0);
            let is_contradicted = agreed.is_err() && !pass.misplaced.is_empty();
            let is_counted = |column: usize| {
                let groups = contradicted.iter().filter(|(of, _)| *of == column).count();
                let tally = of_stripe.as_ref().filter(|_| agreed.is_ok() && groups == 1);
                tally.is_some_and(|tally| tally.counts(column))
            };
            let is_proved = |(column, by_count): &(usize, bool)| {
                agreed.iter().flatten().any(|(of, _)| of == column) || (*by_count && is_counted(*column))
            };
            pass.disproved = is_contradicted || !contradicted.iter().all(is_proved);
            Ok(pass)
        })
    }

    /// Whether a column decodes to the exact end of its streams.
    pub(super) fn ends_with_streams(&mut self, place: usize) -> Result<bool> {
        let rows = self.stored.job.stripe.rows;
        let read = self.try_fitting(|stored| {
            let mut root = stored.root(None)?;
            let mut reader = stored.open_at(place, None, Chunks::Usual)?;
            stored.drop_rows(reader.as_mut(), &mut root, 0..rows, |_, _| {})?;
            stored.check_position(place, reader.as_ref(), rows, Chunks::Usual)
        })?;
        Ok(read.is_ok())
    }

    /// Calls `read`; if the rows take too much memory, calls it again with fewer rows at once. The inner
    /// error is damage.
    fn try_fitting<T>(&mut self, read: impl Fn(&Stored) -> Result<T>) -> Result<Result<T>> {
        loop {
            match read(&self.stored) {
                Err(e) if e.is_batch_too_long() && self.stored.rows_at_once > 1 => {
                    self.stored.rows_at_once = (self.stored.rows_at_once / 16).max(1);
                }
                Err(e) => {
                    let e = self.stored.scan.on_error.weigh(too_long_for_all(e));
                    return damaged(e).map(Err);
                }
                Ok(read) => return Ok(Ok(read)),
            }
        }
    }
}

/// The same error once more.
fn again(e: &Error) -> Error {
    like(e, e.reason())
}

/// An error at the place of another error.
fn like(e: &Error, message: String) -> Error {
    let like = Error::corrupt(message).within(e.structure());
    match e.offset() {
        Some(at) => like.at(at),
        None => like,
    }
}

/// `e` if it is damage, or else the error of the whole read.
fn damaged(e: Error) -> Result<Error> {
    if e.is_damage() { Ok(e) } else { Err(e) }
}

impl Stored {
    /// The sums that agree with a tally; none without a tally.
    fn check(&self, tally: Option<&Tally>, row: u64) -> Result<Agreed> {
        tally.map_or(Ok(Agreed::new()), |tally| tally.check(&self.scan, &self.job.layout, row))
    }

    /// Decodes rows of a column and drops them.
    fn drop_rows(
        &self,
        reader: &mut dyn ColumnReader,
        root: &mut Option<BitRle>,
        mut rows: Range<u64>,
        mut each: impl FnMut(&ArrayRef, &[MalformedValue]),
    ) -> Result<()> {
        while !rows.is_empty() {
            let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX).min(self.rows_at_once);
            self.batch_bytes.clear();
            let array = reader.read(count, nulls(root, count)?.as_ref())?;
            let mut malformed = Vec::new();
            reader.malformed(&mut malformed);
            each(&array, &malformed);
            rows.start += array.len() as u64;
        }
        Ok(())
    }
}
