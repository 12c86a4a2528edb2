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
pub struct DamageLog(Arc<Mutex<Vec<Damage>>>);

impl DamageLog {
    /// Adds a record.
    pub fn push(&self, damage: Damage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(damage);
    }

    /// All records so far, in the order they were noticed.
    pub fn records(&self) -> Vec<Damage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
