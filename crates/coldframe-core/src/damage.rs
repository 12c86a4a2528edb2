//! What was lost: the record behind `on_error="skip"` and `verify`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_encoding::{Error, ErrorKind};

use crate::changes::Changes;

/// What to do about damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnError {
    /// The first damage ends the scan with an error.
    #[default]
    Raise,
    /// The smallest unit that the format can lose is left out and recorded.
    Skip,
    /// As `Skip`, but where only a column's values are lost they become null and their rows stay.
    Null,
}

impl OnError {
    /// Under `skip` and `null`, an unsupported feature in one part of a table (a version, an algorithm, an encoding number
    /// without a meaning) counts as damage of that part, and the scan goes on. Under `raise` the error stays as it is.
    #[must_use]
    pub fn weigh(self, e: Error) -> Error {
        if self == Self::Raise { e } else { e.as_damage() }
    }
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The bytes that were given up.
    pub bytes: Range<u64>,
    /// How many rows they held, where that can be told.
    pub rows_lost: Option<u64>,
    /// What was being read: `row group 3: key buffer`.
    pub structure: String,
    /// Why it cannot be read.
    pub reason: String,
}

impl Damage {
    /// Damage that an error describes.
    pub fn from_error(error: &Error, bytes: Range<u64>, rows_lost: Option<u64>) -> Self {
        Self { bytes, rows_lost, structure: error.structure(), reason: error.reason() }
    }

    /// The damage as an error.
    pub fn to_error(&self) -> Error {
        Error::new(ErrorKind::Corrupt(self.reason.clone()))
            .at(self.bytes.start)
            .within(self.structure.clone())
    }
}

/// A part of a table that cannot be read, before `on_error` decides to raise or skip: it is damaged, or has a version, an
/// algorithm or a feature that this reader does not know.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What is recorded where it is passed over.
    pub damage: Damage,
    /// Whether a plain read is refused for it, and nothing is said to be damaged.
    unsupported: bool,
}

impl Fault {
    /// What this reader does not know, as a record says it.
    pub fn unsupported(damage: Damage) -> Self {
        Self { damage, unsupported: true }
    }

    /// Whether an error costs only the part of which it speaks.
    pub fn is(e: &Error) -> bool {
        e.is_damage() || matches!(e.kind(), ErrorKind::Unsupported(_))
    }

    /// The fault that an error tells of, of which [`Fault::is`] holds.
    pub fn from_error(e: &Error, bytes: Range<u64>, rows_lost: Option<u64>) -> Self {
        let unsupported = matches!(e.kind(), ErrorKind::Unsupported(_));
        Self { damage: Damage::from_error(e, bytes, rows_lost), unsupported }
    }

    /// Whether it is whole as far as is known, and only not read here.
    pub fn is_unsupported(&self) -> bool {
        self.unsupported
    }

    /// The error with which a plain read ends.
    pub fn to_error(&self) -> Error {
        self.as_error(&self.damage)
    }

    /// The same in the words of a record that says more of what is lost.
    pub fn as_error(&self, damage: &Damage) -> Error {
        if !self.unsupported {
            return damage.to_error();
        }
        Error::unsupported(damage.reason.clone()).at(damage.bytes.start).within(damage.structure.clone())
    }
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Self { damage, unsupported: false }
    }
}

/// Most places that are told one by one. A file can have one in every few bytes of it, and a record takes hundreds.
const MOST: usize = 1 << 14;

/// The records of a log.
#[derive(Debug, Default)]
struct Records {
    each: Vec<Damage>,
    /// Those beyond [`MOST`], as one, and how many they are.
    further: Option<(Damage, u64)>,
}

impl Records {
    fn push(&mut self, damage: Damage) {
        if self.each.len() < MOST {
            self.each.push(damage);
            return;
        }
        match &mut self.further {
            None => self.further = Some((damage, 1)),
            Some((all, count)) => {
                all.bytes = all.bytes.start.min(damage.bytes.start)..all.bytes.end.max(damage.bytes.end);
                all.rows_lost = all.rows_lost.zip(damage.rows_lost).map(|(a, b)| a.saturating_add(b));
                *count += 1;
            }
        }
    }

    fn all(&self) -> Vec<Damage> {
        let further = self.further.as_ref().map(|(damage, count)| match count {
            1 => damage.clone(),
            _ => Damage {
                structure: "further places".to_owned(),
                reason: format!("{count} of them are told together, the first is: {}", damage.to_error()),
                ..damage.clone()
            },
        });
        self.each.iter().cloned().chain(further).collect()
    }
}

/// Values that are whole, and that a scan does not hand out because of how it was asked: nobody may take them for copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedOver {
    /// Older versions of a cell, which who asks for all versions would see.
    Versions,
    /// Cells of other times than those that were asked for.
    Times,
    /// Cells of columns that were not asked for, of a table whose columns are not in its schema.
    Columns,
    /// Parts of the table with files of their own, of which its engine's list says nothing.
    Regions,
    /// Parts of the table whose newest edits were in logs that are not there.
    Logs,
}

impl PassedOver {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Versions, Self::Times, Self::Columns, Self::Regions, Self::Logs];

    /// Its name for Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Versions => "versions",
            Self::Times => "times",
            Self::Columns => "columns",
            Self::Regions => "regions",
            Self::Logs => "edits",
        }
    }
}

/// How many values were passed over, of each kind.
#[derive(Debug, Default)]
struct Counts {
    versions: AtomicU64,
    times: AtomicU64,
    columns: AtomicU64,
    regions: AtomicU64,
    logs: AtomicU64,
}

impl Counts {
    fn of(&self, kind: PassedOver) -> &AtomicU64 {
        match kind {
            PassedOver::Versions => &self.versions,
            PassedOver::Times => &self.times,
            PassedOver::Columns => &self.columns,
            PassedOver::Regions => &self.regions,
            PassedOver::Logs => &self.logs,
        }
    }
}

/// Collects damage from the parts of a scan; clones share one list. Beyond 16,384 records all further ones are told as one,
/// whose bytes reach from the first of them to the last. It also counts what was passed over by request.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    records: Arc<Mutex<Records>>,
    passed_over: Arc<Counts>,
    changes: Changes,
    /// What the structures of new records are in.
    within: Option<Arc<str>>,
}

impl DamageLog {
    /// The same log for a part of what is scanned, such as one file of a table: what is pushed through it says that it is in
    /// `part`.
    #[must_use]
    pub fn within(&self, part: &str) -> Self {
        let within =
            self.within.as_ref().map_or_else(|| part.into(), |outer| format!("{outer}: {part}").into());
        Self { within: Some(within), ..self.clone() }
    }

    /// Counts `more` values that are passed over.
    pub fn pass_over(&self, kind: PassedOver, more: u64) {
        if more > 0 {
            self.passed_over.of(kind).fetch_add(more, Ordering::Relaxed);
        }
    }

    /// How many values of a kind were passed over so far.
    pub fn passed_over(&self, kind: PassedOver) -> u64 {
        self.passed_over.of(kind).load(Ordering::Relaxed)
    }

    /// Where values that are changed on the way are counted.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Adds a record.
    pub fn push(&self, mut damage: Damage) {
        if let Some(part) = &self.within {
            damage.structure = format!("{part}: {}", damage.structure);
        }
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(damage);
    }

    /// All records so far, in the order they were noticed.
    pub fn records(&self) -> Vec<Damage> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.each.len() + usize::from(records.further.is_some())
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_places_are_told_together() {
        let log = DamageLog::default();
        let count = MOST as u64 + 3;
        for at in 0..count {
            let (structure, reason) = (format!("page {at}"), "expected 1, found 2".to_owned());
            log.push(Damage { bytes: at * 10..at * 10 + 5, rows_lost: Some(2), structure, reason });
        }
        let records = log.records();
        assert_eq!((records.len(), log.len()), (MOST + 1, MOST + 1));
        assert!(records.iter().take(MOST).all(|one| one.rows_lost == Some(2)));
        let last = records.last().cloned();
        let Some(Damage { bytes, rows_lost, structure, reason }) = last else { return };
        assert_eq!((bytes, rows_lost), (MOST as u64 * 10..(count - 1) * 10 + 5, Some(6)));
        assert_eq!(structure, "further places");
        assert!(reason.starts_with("3 of them") && reason.contains("page 16384"), "{reason}");
    }
}
