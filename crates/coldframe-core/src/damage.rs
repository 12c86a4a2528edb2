//! Records of what was lost: the basis of `on_error="skip"` and `verify`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_encoding::{Error, ErrorKind};

use crate::Notice;
use crate::changes::Changes;

/// What to do about damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnError {
    /// The first damage ends the scan with an error.
    #[default]
    Raise,
    /// The smallest unit that the format can lose is left out and recorded.
    Skip,
    /// Like `Skip`; but if only the values of a column are lost, they become null and their rows stay.
    Null,
}

impl OnError {
    /// Under `skip` and `null`, an unsupported feature in one part of a table (a version, an algorithm, an
    /// unknown encoding number) is recorded as damage of that part, and the scan continues. Under `raise` the
    /// error is unchanged.
    #[must_use]
    pub fn weigh(self, e: Error) -> Error {
        if self == Self::Raise { e } else { e.as_damage() }
    }
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The bytes that cannot be read.
    pub bytes: Range<u64>,
    /// How many rows these bytes held, if known.
    pub rows_lost: Option<u64>,
    /// What was being read: `row group 3: key buffer`.
    pub structure: String,
    /// Why the structure cannot be read.
    pub reason: String,
}

impl Damage {
    /// The damage that an error describes.
    pub fn from_error(error: &Error, bytes: Range<u64>, rows_lost: Option<u64>) -> Self {
        Self { bytes, rows_lost, structure: error.structure(), reason: error.reason() }
    }

    /// The notice for parts whose rows cannot be read, as opening the table has shown; `None` without any.
    pub fn notice<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Notice> {
        let mut parts = parts.into_iter();
        let Self { structure, reason, .. } = parts.next()?;
        let others = match parts.count() {
            0 => String::new(),
            1 => " (and another part)".to_owned(),
            n => format!(" (and {n} other parts)"),
        };
        Some(Notice::PartialTable(format!("rows of the table cannot be read: {structure}: {reason}{others}")))
    }

    /// The damage as an error.
    pub fn to_error(&self) -> Error {
        Error::new(ErrorKind::Corrupt(self.reason.clone()))
            .at(self.bytes.start)
            .within(self.structure.clone())
    }
}

/// A part of a table that cannot be read, because it is damaged or because this reader does not support its
/// version, algorithm or feature. `on_error` decides whether to raise or skip it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The damage record, for the case that the part is skipped.
    pub damage: Damage,
    /// Whether the reader lacks support for the part. If so, the error of a read under `raise` does not claim
    /// damage.
    unsupported: bool,
}

impl Fault {
    /// A fault because of an unsupported feature, which the record describes.
    pub fn unsupported(damage: Damage) -> Self {
        Self { damage, unsupported: true }
    }

    /// Whether an error affects only the part of the table that it names.
    pub fn is(e: &Error) -> bool {
        e.is_damage() || matches!(e.kind(), ErrorKind::Unsupported(_))
    }

    /// The fault that an error describes, for which [`Fault::is`] must be true.
    pub fn from_error(e: &Error, bytes: Range<u64>, rows_lost: Option<u64>) -> Self {
        let unsupported = matches!(e.kind(), ErrorKind::Unsupported(_));
        Self { damage: Damage::from_error(e, bytes, rows_lost), unsupported }
    }

    /// Whether the part may be intact, but is not supported.
    pub fn is_unsupported(&self) -> bool {
        self.unsupported
    }

    /// The error with which a read under `raise` ends.
    pub fn to_error(&self) -> Error {
        self.as_error(&self.damage)
    }

    /// [`Self::to_error`], with the text of `damage`, which has more details.
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

/// Maximum number of notes of a scan that were not taken.
const MAX_NOTICES: usize = 64;

/// Maximum number of individual records. A file can be damaged every few bytes, and a record takes hundreds.
const MAX_RECORDS: usize = 1 << 14;

/// The records of a log.
#[derive(Debug, Default)]
struct Records {
    each: Vec<Damage>,
    /// The records beyond [`MAX_RECORDS`], merged into one, and their number.
    further: Option<(Damage, u64)>,
}

impl Records {
    fn push(&mut self, damage: Damage) {
        if self.each.len() < MAX_RECORDS {
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
                structure: "further damage".to_owned(),
                reason: format!("{count} records merged into one; the first is: {}", damage.to_error()),
                ..damage.clone()
            },
        });
        self.each.iter().cloned().chain(further).collect()
    }
}

/// Intact values that a scan does not return because of its options. A copy of the table made with these
/// options lacks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassedOver {
    /// Older versions of a cell, which only a request for all versions returns.
    Versions,
    /// Cells outside the requested range of time.
    Times,
    /// Cells of columns that were not requested, in a table whose schema does not list all columns.
    Columns,
    /// Parts of the table that have files, but that the engine's list of parts does not mention.
    Regions,
    /// Parts of the table whose newest changes were in logs that are missing.
    Logs,
}

impl PassedOver {
    /// All kinds of skipped values.
    pub const ALL: [Self; 5] = [Self::Versions, Self::Times, Self::Columns, Self::Regions, Self::Logs];

    /// The name of the kind in Python.
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

/// How many values were skipped, by kind.
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

/// Collects damage from the parts of a scan; clones share one list. After 16,384 records, all further records
/// are merged into a single record, whose bytes extend from the first to the last merged record. The log also
/// counts values skipped by request.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    records: Arc<Mutex<Records>>,
    passed_over: Arc<Counts>,
    changes: Changes,
    notices: Arc<Mutex<Vec<Notice>>>,
    /// The enclosing structure of new records.
    within: Option<Arc<str>>,
}

impl DamageLog {
    /// The same log for a part of the scan, such as one file of a table: its records name `part` as the
    /// enclosing structure.
    #[must_use]
    pub fn within(&self, part: &str) -> Self {
        let within =
            self.within.as_ref().map_or_else(|| part.into(), |outer| format!("{outer}: {part}").into());
        Self { within: Some(within), ..self.clone() }
    }

    /// Adds `more` skipped values of a kind.
    pub fn pass_over(&self, kind: PassedOver, more: u64) {
        if more > 0 {
            self.passed_over.of(kind).fetch_add(more, Ordering::Relaxed);
        }
    }

    /// How many values of a kind were skipped so far.
    pub fn passed_over(&self, kind: PassedOver) -> u64 {
        self.passed_over.of(kind).load(Ordering::Relaxed)
    }

    /// Adds a note for the user: something that a scan met and that is no loss. Equal notes are kept once.
    pub fn notify(&self, notice: Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < MAX_NOTICES && !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// Takes the notes that were added since the last call.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts values that are changed on the way.
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

    /// All records so far, in order of detection.
    pub fn records(&self) -> Vec<Damage> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.each.len() + usize::from(records.further.is_some())
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_beyond_the_maximum_are_merged() {
        let log = DamageLog::default();
        let count = MAX_RECORDS as u64 + 3;
        for at in 0..count {
            let (structure, reason) = (format!("page {at}"), "expected 1, found 2".to_owned());
            log.push(Damage { bytes: at * 10..at * 10 + 5, rows_lost: Some(2), structure, reason });
        }
        let records = log.records();
        assert_eq!((records.len(), log.len()), (MAX_RECORDS + 1, MAX_RECORDS + 1));
        assert!(records.iter().take(MAX_RECORDS).all(|damage| damage.rows_lost == Some(2)));
        let last = records.last().cloned();
        let Some(Damage { bytes, rows_lost, structure, reason }) = last else { return };
        assert_eq!((bytes, rows_lost), (MAX_RECORDS as u64 * 10..(count - 1) * 10 + 5, Some(6)));
        assert_eq!(structure, "further damage");
        assert!(reason.starts_with("3 records") && reason.contains("page 16384"), "{reason}");
    }
}
