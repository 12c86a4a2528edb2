//! Values that a reader changes on the way: they are whole in the file, and are not handed out as they are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a value was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A timestamp lost digits below a microsecond, since microseconds were asked for.
    Digits,
    /// Text that is not UTF-8 has U+FFFD in place of what is none, as its own engine shows it.
    Text,
}

impl Change {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Digits, Self::Text];

    /// Its name for Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits-below-microseconds",
            Self::Text => "malformed-text",
        }
    }
}

/// How many values were changed, of each kind; clones share the counts. What is decoded twice counts twice.
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
