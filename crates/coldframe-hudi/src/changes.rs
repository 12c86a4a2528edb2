//! The changes in the logs of a file group, by key.
//!
//! Blocks are applied in the order in which they were written. A lost block may have changed or deleted the
//! records of its keys in older blocks and in the base file. The state of these keys is unknown until a later
//! block has a complete record. If an index states the bounds of the keys of a lost block, only keys within
//! these bounds are affected; otherwise all keys are affected.

use std::collections::HashMap;

use coldframe_core::{Limits, Result};

use crate::merge::{self, Record};

/// The newest known change of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A record to merge with the base file's record.
    Record(Record),
    /// The key was deleted.
    Deleted,
    /// The newest state of the key was lost.
    Lost,
}

/// A range of keys, both ends included; if there is no last key, the range has no end.
pub(crate) type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// All keys.
pub(crate) const ALL: KeyRange = (Vec::new(), None);

/// Several key ranges. If there are more than [`MAX_RANGES`] ranges, they are merged into one.
#[derive(Debug, Default)]
pub(crate) struct KeyRanges(Vec<KeyRange>);

const MAX_RANGES: usize = 64;

impl KeyRanges {
    /// Adds a range.
    pub(crate) fn add(&mut self, range: KeyRange) {
        if self.0.len() >= MAX_RANGES {
            let from = self.0.drain(..).map(|(from, _)| from).min().unwrap_or_default();
            self.0.push((from.min(range.0), None));
        } else {
            self.0.push(range);
        }
    }

    /// Whether any range contains the key.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.0.iter().any(|range| contains(range, key))
    }
}

fn contains((from, to): &KeyRange, key: &[u8]) -> bool {
    from.as_slice() <= key && to.as_ref().is_none_or(|to| key <= to.as_slice())
}

/// The changes of a file group.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    by_key: HashMap<Vec<u8>, Change>,
    /// Keys whose older states must not be used.
    lost: KeyRanges,
}

impl Changes {
    /// Applies a newer record of a key, or its deletion. On failure the key is unchanged.
    pub(crate) fn apply(&mut self, key: Vec<u8>, newer: Option<Record>, limits: &Limits) -> Result<()> {
        let older = self.by_key.get(&key);
        let lost = || older.is_none() && self.lost.contains(&key);
        let change = match (newer, older) {
            (None, _) => Change::Deleted,
            (Some(new), Some(Change::Record(old))) => {
                let merged = merge::apply(Some(old.clone()), Some(new), limits)?;
                merged.map_or(Change::Deleted, Change::Record)
            }
            (Some(new), older) if *older.unwrap_or(&Change::Deleted) == Change::Lost || lost() => {
                if merge::replaces(&new, limits)? {
                    Change::Record(new)
                } else {
                    Change::Lost
                }
            }
            (Some(new), _) => Change::Record(new),
        };
        self.by_key.insert(key, change);
        Ok(())
    }

    /// Records the loss of a block that may have changed these keys.
    pub(crate) fn lose(&mut self, range: KeyRange) {
        for (key, change) in &mut self.by_key {
            if contains(&range, key) {
                *change = Change::Lost;
            }
        }
        self.lost.add(range);
    }

    /// Removes and returns the change to a key of the base file, if there is one.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Change> {
        let lost = || self.lost.contains(key).then_some(Change::Lost);
        self.by_key.remove(key).or_else(lost)
    }

    /// The remaining changes, sorted by key.
    pub(crate) fn into_sorted(self) -> Vec<(Vec<u8>, Change)> {
        let mut all: Vec<_> = self.by_key.into_iter().collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::avro::Schema;

    /// A record that consists of one string. A newer record replaces an older record.
    fn record(text: &str) -> Record {
        let json = br#"{"type":"record","name":"R","fields":[{"name":"v","type":"string"}]}"#;
        let schema = Arc::new(Schema::parse(json, &Limits::default()).unwrap());
        let mut datum = vec![u8::try_from(text.len() * 2).unwrap()];
        datum.extend(text.as_bytes());
        Record { datum: datum.into(), schema }
    }

    #[test]
    fn a_lost_block_exposes_no_older_state() {
        let limits = Limits::default();
        let mut changes = Changes::default();
        for key in ["a", "b", "c", "d", "e"] {
            changes.apply(key.into(), Some(record("old")), &limits).unwrap();
        }
        changes.lose((b"b".to_vec(), Some(b"d".to_vec())));
        changes.apply(b"c".to_vec(), Some(record("new")), &limits).unwrap();
        changes.apply(b"d".to_vec(), None, &limits).unwrap();
        changes.apply(b"bb".to_vec(), Some(record("new")), &limits).unwrap();
        assert_eq!(changes.take(b"a"), Some(Change::Record(record("old"))));
        assert_eq!(changes.take(b"b"), Some(Change::Lost));
        assert_eq!(changes.take(b"ba"), Some(Change::Lost), "only in the base file");
        assert_eq!(changes.take(b"bb"), Some(Change::Record(record("new"))));
        assert_eq!(changes.take(b"f"), None);
        let rest: Vec<_> = changes.into_sorted();
        let rest: Vec<_> = rest.iter().map(|(key, change)| (key.as_slice(), change.clone())).collect();
        let (new, old) = (Change::Record(record("new")), Change::Record(record("old")));
        assert_eq!(rest, [(b"c".as_slice(), new), (b"d", Change::Deleted), (b"e", old)]);
    }

    #[test]
    fn many_ranges_are_merged() {
        let mut ranges = KeyRanges::default();
        for i in 1..=MAX_RANGES {
            let key = format!("{i:03}").into_bytes();
            ranges.add((key.clone(), Some(key)));
        }
        assert!(ranges.contains(b"007") && !ranges.contains(b"0071"));
        ranges.add((b"5".to_vec(), Some(b"6".to_vec())));
        assert!(ranges.contains(b"0071") && ranges.contains(b"5") && !ranges.contains(b"000"));
    }
}
