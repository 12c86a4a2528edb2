//! The changes that the logs of a file group make, by key.
//!
//! Blocks apply in the order in which they were written. If one is lost, it may have changed or deleted anything that
//! older blocks and the base file state for its keys. Those keys have no known state until a later block states it in
//! full. Which keys a lost block held is known if an index tells; otherwise it may be any.

use std::collections::HashMap;

use coldframe_core::{Limits, Result};

use crate::merge::{self, Record};

/// The newest known change of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A record, to be merged with that of the base file.
    Record(Record),
    /// The key was deleted.
    Deleted,
    /// Unknown: its newest state was lost.
    Lost,
}

/// Keys from the first to the last, both included; without a last key, unbounded.
pub(crate) type Span = (Vec<u8>, Option<Vec<u8>>);

/// All keys.
pub(crate) const ALL: Span = (Vec::new(), None);

/// A few spans of keys. Beyond [`MAX_SPANS`] they are merged into one that covers them all.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<Span>);

const MAX_SPANS: usize = 64;

impl Spans {
    /// Adds a span.
    pub(crate) fn add(&mut self, span: Span) {
        if self.0.len() >= MAX_SPANS {
            let from = self.0.drain(..).map(|(from, _)| from).min().unwrap_or_default();
            self.0.push((from.min(span.0), None));
        } else {
            self.0.push(span);
        }
    }

    /// Whether any span contains the key.
    pub(crate) fn hold(&self, key: &[u8]) -> bool {
        self.0.iter().any(|span| holds(span, key))
    }
}

fn holds((from, to): &Span, key: &[u8]) -> bool {
    from.as_slice() <= key && to.as_ref().is_none_or(|to| key <= to.as_slice())
}

/// The changes of a file group.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    by_key: HashMap<Vec<u8>, Change>,
    /// Keys whose older states are invalid.
    lost: Spans,
}

impl Changes {
    /// Applies a newer record of a key, or its deletion. On an error the key is unchanged.
    pub(crate) fn apply(&mut self, key: Vec<u8>, newer: Option<Record>, limits: &Limits) -> Result<()> {
        let older = self.by_key.get(&key);
        let lost = || older.is_none() && self.lost.hold(&key);
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

    /// Notes a lost block that may have changed these keys.
    pub(crate) fn lose(&mut self, span: Span) {
        for (key, change) in &mut self.by_key {
            if holds(&span, key) {
                *change = Change::Lost;
            }
        }
        self.lost.add(span);
    }

    /// Removes and returns the change of a key of the base file; `None` if it has none.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Change> {
        let lost = || self.lost.hold(key).then_some(Change::Lost);
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

    /// Records of one string. A newer record replaces an older one.
    fn record(text: &str) -> Record {
        let json = br#"{"type":"record","name":"R","fields":[{"name":"v","type":"string"}]}"#;
        let schema = Arc::new(Schema::parse(json, &Limits::default()).unwrap());
        let mut datum = vec![u8::try_from(text.len() * 2).unwrap()];
        datum.extend(text.as_bytes());
        Record { datum: datum.into(), schema }
    }

    #[test]
    fn what_was_lost_uncovers_nothing_older() {
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
        assert_eq!(changes.take(b"ba"), Some(Change::Lost), "of the base file only");
        assert_eq!(changes.take(b"bb"), Some(Change::Record(record("new"))));
        assert_eq!(changes.take(b"f"), None);
        let rest: Vec<_> = changes.into_sorted();
        let rest: Vec<_> = rest.iter().map(|(key, change)| (key.as_slice(), change.clone())).collect();
        let (new, old) = (Change::Record(record("new")), Change::Record(record("old")));
        assert_eq!(rest, [(b"c".as_slice(), new), (b"d", Change::Deleted), (b"e", old)]);
    }

    #[test]
    fn many_spans_become_one() {
        let mut spans = Spans::default();
        for i in 1..=MAX_SPANS {
            let key = format!("{i:03}").into_bytes();
            spans.add((key.clone(), Some(key)));
        }
        assert!(spans.hold(b"007") && !spans.hold(b"0071"));
        spans.add((b"5".to_vec(), Some(b"6".to_vec())));
        assert!(spans.hold(b"0071") && spans.hold(b"5") && !spans.hold(b"000"));
    }
}
