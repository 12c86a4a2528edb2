//! The log of a tablet, replayed when it is first asked for.
//!
//! What a log gives back is as large as the server's memory was. A table keeps what it used last ([`Kept`]), and of the others what is
//! said of them ([`Summary`]); a scan that comes back to one replays it again.

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

/// Bytes of replayed logs that a table keeps, but for one that is larger.
const MOST_KEPT: u64 = 128 << 20;

/// What a table's logs gave back last.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<VecDeque<Arc<Replayed>>>);

impl Kept {
    fn add(&self, replayed: Arc<Replayed>) {
        let mut kept = lock(&self.0);
        kept.push_back(replayed);
        let mut bytes: u64 = kept.iter().map(|r| r.bytes()).sum();
        while bytes > MOST_KEPT && kept.len() > 1 {
            bytes -= kept.pop_front().map_or(bytes, |r| r.bytes());
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
    /// Ends of the logs of the tablet's other replicas, of those that vote.
    others: Vec<Tail>,
    wal: bool,
    kept: Arc<Kept>,
    state: Mutex<State>,
}

impl TabletLog {
    /// The log of a replica; nothing is read.
    pub(crate) fn new(
        folder: Arc<dyn Folder>,
        tablet: Arc<Tablet>,
        reading: Reading,
        (others, wal): (Vec<Tail>, bool),
        kept: Arc<Kept>,
    ) -> Self {
        let state = Mutex::new(State { summary: None, replayed: Weak::new() });
        Self { folder, tablet, reading, others, wal, kept, state }
    }

    /// Whether there is nothing to replay, or it is not to be.
    fn is_empty(&self) -> bool {
        !self.wal || self.tablet.segments.count() == 0
    }

    /// What it adds to what was flushed.
    pub(crate) fn replayed(&self) -> Result<Arc<Replayed>> {
        // Who comes second waits, and has it then.
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
        self.kept.add(replayed.clone());
        Ok(replayed)
    }

    /// What is said of it.
    pub(crate) fn summary(&self) -> Result<Summary> {
        if let Some(summary) = &lock(&self.state).summary {
            return Ok(summary.clone());
        }
        Ok(self.replayed()?.summary())
    }

    /// Whether the Raft group has agreed on an operation of this log: `known` is the highest index of which a commit message says so.
    /// All before it are. Beyond it, a group of one agrees with itself, and what a majority of replicas has will be agreed upon.
    fn is_committed(&self, id: OpId, known: i64) -> bool {
        let agreed = |tail: &Tail| id.index <= tail.committed && tail.has(id);
        if id.index <= known || self.others.iter().any(agreed) {
            return true;
        }
        let Some(voters) = self.tablet.voters() else { return false };
        let having = self.others.iter().filter(|tail| tail.has(id)).count() + 1;
        having * 2 > voters
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
