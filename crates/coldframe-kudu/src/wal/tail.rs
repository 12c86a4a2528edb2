//! The end of a replica's log: which operations it has, and up to which operation the Raft group has agreed.

use std::collections::BTreeMap;

use coldframe_core::io::Folder;
use coldframe_core::{ErrorKind, Limits, Result};
use coldframe_encoding::limits::message;

use crate::layout::log::Record;
use crate::layout::operations::{EntryBatch, OpId};
use crate::store::segments::open_segment;
use crate::tablet::Tablet;

/// What the last segments of a log contain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    /// The highest index of a commit message.
    pub(crate) committed: i64,
    /// The term of each operation, by its index.
    terms: BTreeMap<i64, i64>,
}

impl Tail {
    /// Whether the replica has the operation. For an operation before the segments that were read, whether
    /// the group has agreed on it.
    pub(crate) fn has(&self, id: OpId) -> bool {
        self.terms.get(&id.index).map_or(id.index <= self.committed, |term| *term == id.term)
    }

    /// The last operation.
    pub(crate) fn last(&self) -> Option<OpId> {
        self.terms.last_key_value().map(|(index, term)| OpId { term: *term, index: *index })
    }
}

/// Reads a log backwards to the last segment with a commit message. Damage is skipped here; replaying the log reports
/// it.
pub(crate) fn tail(tablet: &Tablet, folder: &dyn Folder, how: (bool, &Limits)) -> Result<Tail> {
    let mut tail = Tail::default();
    for (_, path, len) in tablet.segments.iter().rev() {
        let segment = match open_segment(folder, tablet.server.keys(), path, how) {
            Ok(Some(segment)) => segment,
            Ok(None) => continue,
            Err(e) if matches!(e.kind(), ErrorKind::Io(_) | ErrorKind::Foreign(_)) => return Err(e),
            Err(_) => continue,
        };
        let (mut terms, mut committed) = (BTreeMap::new(), 0);
        let mut records = segment.records();
        while let Ok(Some(record)) = records.next_record() {
            let Record::Whole(contents, _) = record else { continue };
            if message::check::<EntryBatch>(&contents, how.1, len.max(contents.len() as u64)).is_err() {
                continue;
            }
            let Ok(batch) = <EntryBatch as prost::Message>::decode(contents) else { continue };
            for entry in batch.entries {
                if let Some(id) = entry.replicate.and_then(|r| r.id) {
                    terms.split_off(&id.index);
                    terms.insert(id.index, id.term);
                }
                if let Some(id) = entry.commit.and_then(|c| c.id) {
                    committed = committed.max(id.index);
                }
            }
        }
        if let Some((first, _)) = tail.terms.first_key_value() {
            terms.split_off(first);
        }
        terms.append(&mut tail.terms);
        tail.terms = terms;
        tail.committed = tail.committed.max(committed);
        if tail.committed > 0 {
            break;
        }
    }
    Ok(tail)
}
