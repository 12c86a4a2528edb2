//! Counts of values that are intact in the file, but that a reader does not return exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a value was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A timestamp lost digits below a microsecond, since microseconds were requested.
    Digits,
    /// Text that is not UTF-8 got U+FFFD for each malformed sequence, as in its engine.
    Text,
}

impl Change {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Digits, Self::Text];

    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits-below-microseconds",
            Self::Text => "malformed-text",
        }
    }
}

/// How many values were changed, by kind; clones share the counts. A value decoded twice counts twice.
#[derive(Clone, Debug, Default)]
pub struct Changes(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    digits: AtomicU64,
    text: AtomicU64,
}

impl Changes {
    fn of(&self, change: Change) -> &AtomicU64 {
        match change {
            Change::Digits => &self.0.digits,
            Change::Text => &self.0.text,
        }
    }

    /// Counts `more` values.
    pub fn add(&self, change: Change, more: u64) {
        if more > 0 {
            self.of(change).fetch_add(more, Ordering::Relaxed);
        }
    }

    /// How many values were changed so far.
    pub fn count(&self, change: Change) -> u64 {
        self.of(change).load(Ordering::Relaxed)
    }
}
