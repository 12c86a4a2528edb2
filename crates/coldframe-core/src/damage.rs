//! What was lost: the record behind `on_error="skip"` and `verify`.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_encoding::{Error, ErrorKind};

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

/// Collects damage from the parts of a scan; clones share one list.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    records: Arc<Mutex<Vec<Damage>>>,
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
        Self { records: self.records.clone(), within: Some(within) }
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
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
