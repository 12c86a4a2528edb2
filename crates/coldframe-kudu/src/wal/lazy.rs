//! The log of a tablet, replayed on first use.
//!
//! A replayed log is as large as the server's memory was. A table keeps the logs that it used last
//! ([`ReplayCache`]), and a [`Summary`] of each other log; a scan that needs such a log replays it again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coldframe_core::Result;
use coldframe_core::io::Folder;

use super::replay::{Replayed, replay};
use super::summary::Summary;
use super::tail::Tail;
use crate::layout::operations::OpId;
use crate::rowset::Reading;
use crate::tablet::Tablet;

/// Bytes of replayed logs that a table keeps. A single log may be larger.
const MAX_CACHED_BYTES: u64 = 128 << 20;

/// The logs that a table replayed last.
#[derive(Debug, Default)]
pub(crate) struct ReplayCache(Mutex<VecDeque<Arc<Replayed>>>);

impl ReplayCache {
    fn add(&self, replayed: Arc<Replayed>) {
        let mut cache = lock(&self.0);
        cache.push_back(replayed);
        let mut bytes: u64 = cache.iter().map(|r| r.bytes()).sum();
        while bytes > MAX_CACHED_BYTES && cache.len() > 1 {
            bytes -= cache.pop_front().map_or(bytes, |r| r.bytes());
        }
    }
}

#[derive(Debug)]
struct State {
    summary: Option<Summary>,
    replayed: Weak<Replayed>,
}

/// A tablet's log.
#[derive(Debug)]
pub(crate) struct TabletLog {
    folder: Arc<dyn Folder>,
    tablet: Arc<Tablet>,
    reading: Reading,
    /// The log tails of the tablet's other voting replicas.
    others: Vec<Tail>,
    wal: bool,
    cache: Arc<ReplayCache>,
    state: Mutex<State>,
}

impl TabletLog {
    /// Creates the log of a replica, without reading anything.
    pub(crate) fn new(
        folder: Arc<dyn Folder>,
        tablet: Arc<Tablet>,
        reading: Reading,
        (others, wal): (Vec<Tail>, bool),
        cache: Arc<ReplayCache>,
    ) -> Self {
        let state = Mutex::new(State { summary: None, replayed: Weak::new() });
        Self { folder, tablet, reading, others, wal, cache, state }
    }

    /// Whether there is nothing to replay, or the log is not to be read.
    fn is_empty(&self) -> bool {
        !self.wal || self.tablet.segments.count() == 0
    }

    /// What the log adds to the flushed rows.
    pub(crate) fn replayed(&self) -> Result<Arc<Replayed>> {
        // A second caller waits here until the log is replayed.
        let mut state = lock(&self.state);
        if let Some(replayed) = state.replayed.upgrade() {
            return Ok(replayed);
        }
        let replayed = if self.is_empty() {
            Arc::default()
        } else {
            let committed = |id, known| self.is_committed(id, known);
            Arc::new(replay(&self.tablet, self.folder.as_ref(), &self.reading, &committed)?)
        };
        state.summary.get_or_insert_with(|| replayed.summary());
        state.replayed = Arc::downgrade(&replayed);
        self.cache.add(replayed.clone());
        Ok(replayed)
    }

    /// The log's summary.
    pub(crate) fn summary(&self) -> Result<Summary> {
        if let Some(summary) = &lock(&self.state).summary {
            return Ok(summary.clone());
        }
        Ok(self.replayed()?.summary())
    }

    /// Whether the Raft group has agreed on an operation of this log. `known` is the highest index that a commit
    /// message confirms; the group has agreed on all operations up to it. A group with a single member has
    /// also agreed on the later operations; a larger group will agree on the operations that a majority of
    /// replicas has.
    fn is_committed(&self, id: OpId, known: i64) -> bool {
        let agreed = |tail: &Tail| id.index <= tail.committed && tail.has(id);
        if id.index <= known || self.others.iter().any(agreed) {
            return true;
        }
        let Some(voters) = self.tablet.voters() else { return false };
        let replicas = self.others.iter().filter(|tail| tail.has(id)).count() + 1;
        replicas * 2 > voters
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
