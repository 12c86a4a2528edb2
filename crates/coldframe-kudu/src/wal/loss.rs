//! Determines the rows whose state is unknown because of a hole in the log.
//!
//! The log is a sequence of changes. If some operations are missing, a row that a missing operation changed
//! may be outdated or deleted. Such a row is not returned. The rest of the log often shows that only some
//! rows can be concerned:
//!
//! | missing | known | lost |
//! |---|---|---|
//! | only commit messages | the rows of their operations, by key | those rows |
//! | operations, but not their commit messages | the stores that they changed | none if the store was flushed later; otherwise the rows of its rowset, or the new rows that existed then |
//! | both | which rowsets and new rows were flushed later | all rows of the others |
//!
//! The state of a row that was inserted after the hole is known. A snapshot from before the hole loses no
//! rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::salvage::Loss;
use coldframe_core::{Damage, Error, Fault};

use crate::layout::operations::{OpId, Store};

/// A place in the log where records are missing.
#[derive(Clone, Debug)]
pub(crate) struct Hole {
    /// The location of the hole, and the reason.
    pub(crate) what: Arc<Fault>,
    /// The last operation before the hole.
    pub(crate) before: Option<OpId>,
    /// A hybrid time; no operation in the hole is older.
    pub(crate) time: u64,
    /// Which operations are missing.
    pub(crate) gap: Gap,
}

/// The operations that a hole may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// No operation is missing, but commit messages may be.
    None,
    /// The operations with these indexes are missing.
    Operations(Range<i64>),
    /// It is unknown which operations are missing, since no operation follows.
    Unknown,
}

/// Rows whose current state is unknown.
#[derive(Clone, Debug)]
pub(crate) struct LogLoss {
    pub(crate) rows: Range<u64>,
    /// Snapshots at this time or earlier are not affected.
    pub(crate) since: u64,
    pub(crate) what: Arc<Fault>,
}

impl LogLoss {
    /// The part of this loss that concerns `rows`.
    pub(crate) fn of(&self, rows: Range<u64>, within: &str) -> Loss {
        let Damage { bytes, structure, reason, .. } = &self.what.damage;
        let structure = format!("{within}: {structure}");
        Loss { rows, bytes: bytes.clone(), structure, reason: explained(reason) }
    }

    /// A damage record for rows about which nothing else is known.
    pub(crate) fn record(&self, within: &str) -> Damage {
        let loss = self.of(0..0, within);
        Damage { bytes: loss.bytes, rows_lost: None, structure: loss.structure, reason: loss.reason }
    }

    /// The error with which a read under `raise` ends.
    pub(crate) fn to_error(&self, within: &str) -> Error {
        self.what.as_error(&self.record(within))
    }
}

fn explained(reason: &str) -> String {
    format!(
        "{reason}: the missing records may have changed these rows; wal=False reads the flushed rows only"
    )
}

/// The rows whose state is unknown because of a hole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Whether new rows are unknown.
    pub(crate) memory: bool,
    /// The rowsets in which all rows are unknown.
    pub(crate) rowsets: BTreeSet<u64>,
}

impl Hole {
    /// The rows whose state is unknown because of a hole, in a tablet with the rowsets `rowsets`. `orphans`:
    /// by index, commit messages of operations that are not in the log, with the stores in memory that they
    /// name. `flushed`: for each rowset and for the MemRowSet, the highest index that is known to be flushed.
    pub(crate) fn unknown(
        &self,
        rowsets: &[u64],
        orphans: &BTreeMap<i64, Vec<Store>>,
        flushed: &HashMap<Option<i64>, i64>,
    ) -> Unknown {
        let gap = match &self.gap {
            Gap::None => return Unknown::default(),
            Gap::Operations(gap) => gap.clone(),
            Gap::Unknown => i64::MIN..i64::MAX,
        };
        let known = orphans.range(gap.clone());
        let all = gap.end.abs_diff(gap.start);
        if known.clone().count() as u64 == all {
            let mut unknown = Unknown::default();
            for store in known.flat_map(|(_, stores)| stores) {
                match store.rowset.and_then(|id| u64::try_from(id).ok()) {
                    Some(id) => drop(unknown.rowsets.insert(id)),
                    None => unknown.memory = true,
                }
            }
            return unknown;
        }
        let is_flushed = |id: Option<i64>| flushed.get(&id).is_some_and(|index| *index >= gap.end);
        let left = rowsets.iter().filter(|id| !is_flushed(i64::try_from(**id).ok()));
        Unknown { memory: !is_flushed(None), rowsets: left.copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(gap: Gap) -> Hole {
        let what =
            Damage { bytes: 0..1, rows_lost: None, structure: "log".to_owned(), reason: "hurt".to_owned() };
        Hole { what: Arc::new(what.into()), before: None, time: 0, gap }
    }

    #[test]
    fn only_rows_that_may_have_changed_are_unknown() {
        let store = |memrowset, rowset| Store { memrowset, rowset, changes: Some(3), transaction: None };
        let orphans: BTreeMap<i64, Vec<Store>> =
            [(7, vec![]), (8, vec![store(Some(2), None)]), (9, vec![store(None, Some(4))])].into();
        let flushed: HashMap<Option<i64>, i64> = [(None, 20), (Some(4), 20), (Some(5), 10)].into();
        let unknown = |gap| hole(gap).unknown(&[4, 5, 6], &orphans, &flushed);
        assert_eq!(unknown(Gap::None), Unknown::default());
        assert_eq!(unknown(Gap::Operations(7..8)), Unknown::default());
        assert_eq!(unknown(Gap::Operations(7..9)), Unknown { memory: true, rowsets: [].into() });
        assert_eq!(unknown(Gap::Operations(9..10)), Unknown { memory: false, rowsets: [4].into() });
        // If one operation is unknown, stores that were flushed later cannot have lost it.
        assert_eq!(unknown(Gap::Operations(10..11)), Unknown { memory: false, rowsets: [5, 6].into() });
        assert_eq!(unknown(Gap::Operations(i64::MIN..11)), Unknown { memory: false, rowsets: [5, 6].into() });
        assert_eq!(unknown(Gap::Unknown), Unknown { memory: true, rowsets: [4, 5, 6].into() });
    }
}
