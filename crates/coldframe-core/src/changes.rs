//! Counts of values that are intact in the file, but that a reader does not return exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a value was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A timestamp lost its digits below a microsecond, because microseconds were requested.
    Digits,
    /// In text that is not UTF-8, each malformed sequence was replaced by U+FFFD, as the format's engine
    /// does.
    Text,
}

impl Change {
    /// All kinds of changes.
    pub const ALL: [Self; 2] = [Self::Digits, Self::Text];

    /// The name of the kind in Python.
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

    /// Adds `more` changed values of a kind.
    pub fn add(&self, change: Change, more: u64) {
        if more > 0 {
            self.of(change).fetch_add(more, Ordering::Relaxed);
        }
    }

    /// How many values were changed so far in this way.
    pub fn count(&self, change: Change) -> u64 {
        self.of(change).load(Ordering::Relaxed)
    }
}
