//! The laws of every format, whatever its bytes: the laws of damage and of work.
//!
//! A format's `tests/it/laws.rs` lists its files and defines its smallest unit. This module generates the
//! damage according to rules.
//!
//! ```text
//! healthy file ──inspect──▶ boundaries ──rules──▶ damaged files ──┬─▶ skip ──┐
//!       └──▶ its rows (truth)                                     ├─▶ null ──┼──▶ laws
//!                                                                 └─▶ splits ┘
//! ```
//!
//! 1. `skip` loses no more rows than the smallest unit of the format, and returns no row that the file did
//!    not have.
//! 2. `null` keeps at least the rows that `skip` keeps.
//! 3. Every loss has a record, every record has a loss, and the recorded number of lost rows equals the
//!    missing rows.
//! 4. All splits together return the rows of the whole scan, each once, also for damaged files.
//! 5. The work of opening, `inspect`, `verify`, splits and scans is proportional to the file
//!    ([`assert_linear`]); their memory is at most four times the size of the file plus 64 MiB
//!    ([`assert_bounded`]).
//! 6. `inspect` assigns each byte to one leaf, and no node is empty.
//! 7. Nothing panics. A read under `skip` or `null` ends without an error. If a read under `raise` fails, the
//!    other reads have a record.
//! 8. A scan with string views returns the same values and loses the same rows.
//!
//! ```no_run
//! # use coldframe_core::*; use coldframe_testing::laws::*; use std::sync::Arc;
//! # fn open(_: Source) -> Result<Arc<dyn TableFile>> { unimplemented!() }
//! let subject = Subject::new("groups.rc", &b"..."[..], open);
//! let units = Units::named(&subject.tree(), "row group", "rows");
//! subject.unit(move |damaged| units.allowed_loss(damaged, AllowedLoss::file(), Moved::Kept)).obey();
//! ```
//!
//! `COLDFRAME_EXHAUSTIVE` makes the tests try every possible damage, instead of several hundred for each
//! file, and `COLDFRAME_LAWS=name` only files with that string in their name.

mod allowed_loss;
mod damage;
mod salvage;
mod work;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{Node, OnError, Result, Source, TableFile};

pub use allowed_loss::{AllowedLoss, Moved, Units};
pub use damage::{Damaged, Kind, leaves, made};
pub use work::{Work, assert_bounded, assert_linear, measure};

use salvage::{Complaints, Judge, Rules, Truth};

use crate::{alloc, rows};

/// Opens a file.
pub type Opener = Arc<dyn Fn(Source) -> Result<Arc<dyn TableFile>> + Send + Sync>;

/// A function as an [`Opener`].
pub fn opener(open: impl Fn(Source) -> Result<Arc<dyn TableFile>> + Send + Sync + 'static) -> Opener {
    Arc::new(open)
}

/// A healthy file to be damaged.
pub struct Subject {
    name: String,
    bytes: Bytes,
    open: Opener,
    unit: Box<dyn Fn(&Damaged) -> AllowedLoss>,
    rules: Rules,
    most: usize,
}

impl Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.bytes.len())
    }
}

impl Subject {
    /// A file, and how to open the file. The unit of the file is the whole file until [`Self::unit`] sets
    /// another unit.
    pub fn new(
        name: impl Into<String>,
        bytes: impl Into<Bytes>,
        open: impl Fn(Source) -> Result<Arc<dyn TableFile>> + Send + Sync + 'static,
    ) -> Self {
        let bytes = bytes.into();
        let len = bytes.len() as u64;
        // The smallest possible splits, and two larger sizes.
        let targets = vec![1, len / 5 + 1, len / 2 + 1];
        Self {
            name: name.into(),
            bytes,
            open: opener(open),
            unit: Box::new(|_| AllowedLoss::file()),
            rules: Rules { summed: true, counted: false, folder: false, targets },
            most: 300,
        }
    }

    /// Sets the smallest unit of the format: the maximum that may be lost through one damaged place.
    #[must_use]
    pub fn unit(self, unit: impl Fn(&Damaged) -> AllowedLoss + 'static) -> Self {
        Self { unit: Box::new(unit), ..self }
    }

    /// States that no checksum covers the values, so that within the unit they may change without being
    /// detected.
    #[must_use]
    pub fn unsummed(mut self) -> Self {
        self.rules.summed = false;
        self
    }

    /// States that the number of rows of a lost unit is always known, so that each record must have it.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.rules.counted = true;
        self
    }

    /// States that the bytes are one file of a directory that `open` opens as a table, so that the layout of
    /// the table differs from the layout of the file.
    #[must_use]
    pub fn part_of_table(mut self) -> Self {
        self.rules.folder = true;
        self
    }

    /// Sets the approximate number of damaged files to try, which is otherwise 300.
    #[must_use]
    pub fn damages(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The layout of the healthy file; for a file of a directory, a single leaf.
    pub fn tree(&self) -> Node {
        if self.rules.folder {
            return Node::new("file", 0..self.bytes.len() as u64);
        }
        self.healthy().inspect().unwrap_or_else(|e| panic!("{self:?}: {e}"))
    }

    /// The healthy table.
    pub fn healthy(&self) -> Arc<dyn TableFile> {
        self.open(self.bytes.clone()).unwrap_or_else(|e| panic!("{self:?}: {e}"))
    }

    fn open(&self, bytes: Bytes) -> Result<Arc<dyn TableFile>> {
        (self.open)(crate::fixture::source(bytes))
    }

    /// Checks the intact file and all damaged files against the laws; panics with the violations.
    pub fn obey(self) {
        if std::env::var("COLDFRAME_LAWS").is_ok_and(|only| !self.name.contains(&only)) {
            return;
        }
        let _turn = alloc::turn();
        let watch = Watch::start();
        let read = rows::read(self.healthy().as_ref(), OnError::Raise);
        let read = read.unwrap_or_else(|e| panic!("{self:?}: {e}"));
        assert!(read.error.is_none(), "{self:?}: {:?}", read.error);
        let truth = Truth::new(&read.batch);
        let most = if std::env::var_os("COLDFRAME_EXHAUSTIVE").is_some() { usize::MAX } else { self.most };
        let damages = made(&self.tree(), &self.bytes, most);
        let mut complaints = Complaints::default();
        for damaged in [None].into_iter().chain(damages.iter().map(Some)) {
            let what = damaged.map_or_else(|| "healthy".to_owned(), ToString::to_string);
            watch.next(format!("{self:?}: {what}"));
            let allowed = damaged.map_or_else(AllowedLoss::none, |d| (self.unit)(d));
            let mut judge = Judge {
                rules: &self.rules,
                truth: &truth,
                allowed,
                what: what.clone(),
                complaints: &mut complaints,
            };
            let bytes = damaged.map_or_else(|| self.bytes.clone(), |d| d.apply(&self.bytes));
            let len = bytes.len() as u64;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| judge.run(self.open(bytes), len))) {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
                complaints.add(&what, &format!("panics: {text}"));
            }
        }
        let (all, text) = (complaints.count(), complaints.text());
        assert!(all == 0, "{self:?}: {all} complaints about {} damaged files\n{text}", damages.len());
    }
}

/// Checks a table of arbitrary bytes against the laws that can be checked without the healthy file: 2, 4, 6,
/// 7 and 8, and that each error has a record. `len` is the length of a single file; `targets` are split
/// sizes. Panics with the violations.
pub fn assert_tolerant(table: &dyn TableFile, len: Option<u64>, targets: &[u64]) {
    let rules = Rules { summed: false, counted: false, folder: len.is_none(), targets: targets.to_vec() };
    let mut complaints = Complaints::default();
    let mut judge = Judge {
        rules: &rules,
        // The original rows are unknown, so any row may be missing.
        truth: &Truth::new(&RecordBatch::new_empty(table.schema().clone())),
        allowed: AllowedLoss::file(),
        what: table.format().to_owned(),
        complaints: &mut complaints,
    };
    judge.any(table, len.unwrap_or(0));
    assert!(complaints.count() == 0, "{} complaints\n{}", complaints.count(), complaints.text());
}

/// Aborts the process with the current step's name if a step takes longer than two minutes, so that a hang
/// shows its file. No law depends on time.
pub(crate) struct Watch(Arc<Mutex<(Instant, String)>>);

const WAIT: Duration = Duration::from_secs(120);

impl Watch {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new((Instant::now(), String::new())));
        let weak: Weak<Mutex<(Instant, String)>> = Arc::downgrade(&state);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let Some(state) = weak.upgrade() else { break };
                let (since, what) = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if since.elapsed() > WAIT {
                    eprintln!("no end after two minutes: {what}");
                    std::process::abort();
                }
            }
        });
        Self(state)
    }

    pub(crate) fn next(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), what);
    }
}
