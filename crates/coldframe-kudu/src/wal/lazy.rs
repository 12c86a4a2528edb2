//! The log of a tablet, replayed when it is first asked for.

use std::sync::{Arc, Mutex, PoisonError};

use coldframe_core::Result;
use coldframe_core::io::Folder;

use super::replay::{Replayed, replay};
use super::tail::Tail;
use crate::layout::operations::OpId;
use crate::rowset::Reading;
use crate::tablet::Tablet;

/// A tablet's log.
#[derive(Debug)]
pub(crate) struct TabletLog {
    folder: Arc<dyn Folder>,
    tablet: Arc<Tablet>,
    reading: Reading,
    /// Ends of the logs of the tablet's other replicas, of those that vote.
    others: Vec<Tail>,
    wal: bool,
    done: Mutex<Option<Arc<Replayed>>>,
}

impl TabletLog {
    /// The log of a replica; nothing is read. Without a log there is nothing to replay.
    pub(crate) fn new(
        folder: Arc<dyn Folder>,
        tablet: Arc<Tablet>,
        reading: Reading,
        others: Vec<Tail>,
        wal: bool,
    ) -> Self {
        let none = !wal || tablet.segments.count() == 0;
        let done = Mutex::new(none.then(Arc::default));
        Self { folder, tablet, reading, others, wal, done }
    }

    /// Whether there is nothing to replay, or it is not to be.
    pub(crate) fn is_empty(&self) -> bool {
        !self.wal || self.tablet.segments.count() == 0
    }

    /// What it adds to what was flushed.
    pub(crate) fn replayed(&self) -> Result<Arc<Replayed>> {
        // Who comes second waits, and has it then.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(replayed) = done.as_ref() {
            return Ok(replayed.clone());
        }
        let folder = self.folder.as_ref();
        let replayed =
            replay(&self.tablet, folder, &self.reading, &|id, known| self.is_committed(id, known))?;
        let replayed = Arc::new(replayed);
        *done = Some(replayed.clone());
        Ok(replayed)
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
