//! What happened to rows after they were written: deletes and, before Hive 2.2, updates.
//!
//! A row's identity is (`originalTransaction`, `bucket`, `rowId`): the write that inserted it, the bucket property it had
//! then, its number there. An event names it. A delete ends the row; an update gives it new values, so that of all rows of
//! one identity the one of the last write counts.
//!
//! ```text
//! bucket property, Hive 3:  version (3 bits) = 1 | 0 (1) | bucket (12) | 0 (4) | statement (12)
//!                  before:  the bucket
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BooleanArray, RecordBatch};
use coldframe_core::{Error, Result};

use crate::write_ids::WriteIds;

/// `operation` of an inserted row, an updated one and a deleted one.
pub(crate) const INSERT: i32 = 0;
/// See [`INSERT`].
pub(crate) const UPDATE: i32 = 1;
/// See [`INSERT`].
pub(crate) const DELETE: i32 = 2;

/// The columns in front of a row's values.
pub(crate) const IDENTITY: [&str; 5] =
    ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"];

/// The last event of each row that had one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// By write and bucket property; sorted by row when complete.
    groups: BTreeMap<(i64, i32), Vec<Event>>,
    /// Which writes count; all without.
    ids: Option<Arc<WriteIds>>,
    /// Rows that may have had events which are lost.
    doubts: Vec<Doubt>,
}

/// Rows of which nobody knows whether they are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Those of this bucket, or of all.
    pub(crate) bucket: Option<i32>,
    /// That were written up to this write.
    pub(crate) up_to: i64,
}

impl Doubt {
    fn is_about(&self, write: i64, bucket: i32) -> bool {
        write <= self.up_to && self.bucket.is_none_or(|own| own == bucket)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    row: i64,
    /// A delete is never followed by anything.
    deletes: bool,
    write: i64,
    statement: i32,
}

/// The identity columns of a batch.
pub(crate) struct Identities<'a> {
    operation: &'a [i32],
    original: &'a [i64],
    bucket: &'a [i32],
    row: &'a [i64],
    current: &'a [i64],
}

impl<'a> Identities<'a> {
    /// Those of `batch`, which must have them without nulls.
    pub(crate) fn of(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            operation: values::<Int32Type>(batch, "operation")?,
            original: values::<Int64Type>(batch, "originalTransaction")?,
            bucket: values::<Int32Type>(batch, "bucket")?,
            row: values::<Int64Type>(batch, "rowId")?,
            current: values::<Int64Type>(batch, "currentTransaction")?,
        })
    }

    fn rows(&self) -> impl Iterator<Item = (i32, i64, i32, i64, i64)> {
        let ids = self.original.iter().zip(self.bucket).zip(self.row).zip(self.current);
        self.operation
            .iter()
            .zip(ids)
            .map(|(op, (((original, bucket), row), current))| (*op, *original, *bucket, *row, *current))
    }
}

/// The values of a column that an ACID file has without nulls.
pub(crate) fn values<'a, T: arrow_array::ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a [T::Native]> {
    let column = batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<T>()).ok_or_else(|| {
        Error::corrupt(format!(
            "expected the column `{name}` of {} in an ACID file, found none",
            T::DATA_TYPE
        ))
    })?;
    if column.null_count() > 0 {
        let message = format!(
            "expected no nulls in the column `{name}` of an ACID file, found {}",
            column.null_count()
        );
        return Err(Error::corrupt(message));
    }
    Ok(column.values())
}

impl Events {
    /// None yet, of the writes that count.
    pub(crate) fn new(ids: Option<Arc<WriteIds>>) -> Self {
        Self { ids, ..Self::default() }
    }

    fn counts(&self, write: i64) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.has(write))
    }

    /// Whether nothing happened.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many rows had events.
    pub(crate) fn len(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    /// Whether any row of this write and bucket had one.
    pub(crate) fn touch(&self, write: i64, bucket: i32) -> bool {
        self.groups.contains_key(&(write, bucket))
    }

    /// Adds the events of a batch of `statement`'s.
    pub(crate) fn add(&mut self, batch: &RecordBatch, statement: i32) -> Result<()> {
        for (operation, original, bucket, row, write) in Identities::of(batch)?.rows() {
            let deletes = match operation {
                INSERT => continue,
                UPDATE => false,
                DELETE => true,
                other => {
                    return Err(Error::corrupt(format!("expected an operation of 0 to 2, found {other}")));
                }
            };
            if !self.counts(write) {
                continue;
            }
            let event = Event { row, deletes, write, statement };
            self.groups.entry((original, bucket)).or_default().push(event);
        }
        Ok(())
    }

    /// The bucket properties of rows that had one.
    pub(crate) fn properties(&self) -> impl Iterator<Item = i32> + '_ {
        self.groups.keys().map(|(_, property)| *property)
    }

    /// Adds all that `other` has.
    pub(crate) fn extend(&mut self, other: Self) {
        for (key, group) in other.groups {
            self.groups.entry(key).or_default().extend(group);
        }
        self.doubts.extend(other.doubts);
    }

    /// Some rows may have had further events.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// Whether a row of this write and bucket may have had events that are lost.
    pub(crate) fn is_in_doubt(&self, write: i64, bucket: i32) -> bool {
        self.doubts.iter().any(|doubt| doubt.is_about(write, bucket))
    }

    /// Which rows of an ACID file's batch may have had events that are lost; `None` if nothing is lost at all.
    pub(crate) fn in_doubt(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        if self.doubts.is_empty() {
            return Ok(None);
        }
        let rows = Identities::of(batch)?;
        let pairs = rows.original.iter().zip(rows.bucket);
        Ok(Some(
            pairs
                .map(|(write, bucket)| Some(self.is_in_doubt(*write, bucket_of_property(*bucket))))
                .collect(),
        ))
    }

    /// Sorts; only the last event of a row stays.
    pub(crate) fn complete(&mut self) {
        for group in self.groups.values_mut() {
            group.sort_unstable();
            // Equal rows stand together, the last event behind the others.
            group.reverse();
            group.dedup_by_key(|e| e.row);
            group.reverse();
            group.shrink_to_fit();
        }
    }

    /// Which rows of an ACID file's batch are alive.
    pub(crate) fn live(&self, batch: &RecordBatch, statement: i32) -> Result<BooleanArray> {
        let mut at = Place::default();
        Ok(Identities::of(batch)?
            .rows()
            .map(|(operation, original, bucket, row, write)| {
                let event = self.find(&mut at, (original, bucket), row);
                let last = event.is_none_or(|e| !e.deletes && (write, statement) >= (e.write, e.statement));
                Some(operation != DELETE && last && self.counts(write))
            })
            .collect())
    }

    /// Which of `count` plain rows from number `first` on are alive: rows of `write` in `bucket`.
    pub(crate) fn live_plain(
        &self,
        write: i64,
        bucket: i32,
        statement: i32,
        first: i64,
        count: usize,
    ) -> BooleanArray {
        let mut places = [Place::default(), Place::default()];
        let properties = [bucket, bucket_property(bucket, statement)];
        (0..count)
            .zip(first..)
            .map(|(_, row)| {
                let mut both = places.iter_mut().zip(properties);
                Some(both.all(|(place, property)| self.find(place, (write, property), row).is_none()))
            })
            .collect()
    }

    /// The event of a row. Rows mostly come in order, so the search begins where the last one ended.
    fn find<'a>(&'a self, at: &mut Place<'a>, key: (i64, i32), row: i64) -> Option<&'a Event> {
        if at.key != Some(key) {
            *at = Place { key: Some(key), group: self.groups.get(&key).map_or(&[], Vec::as_slice), index: 0 };
        }
        if at.group.get(at.index).is_some_and(|e| e.row < row) {
            at.index += 1;
            if at.group.get(at.index).is_some_and(|e| e.row < row) {
                let rest = at.group.get(at.index..).unwrap_or_default();
                at.index += rest.partition_point(|e| e.row < row);
            }
        } else if at.index > 0 && at.group.get(at.index - 1).is_some_and(|e| e.row >= row) {
            at.index = at.group.partition_point(|e| e.row < row);
        }
        at.group.get(at.index).filter(|e| e.row == row)
    }
}

/// Where the last search ended: the first event at or behind its row.
#[derive(Default)]
struct Place<'a> {
    key: Option<(i64, i32)>,
    group: &'a [Event],
    index: usize,
}

/// The bucket property of Hive 3.
pub(crate) fn bucket_property(bucket: i32, statement: i32) -> i32 {
    1 << 29 | (bucket & 0xfff) << 16 | (statement & 0xfff)
}

/// The bucket of a bucket property, which before Hive 3 is the bucket itself.
pub(crate) fn bucket_of_property(property: i32) -> i32 {
    if property >> 29 == 1 { property >> 16 & 0xfff } else { property }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, Int64Array};
    use std::sync::Arc;

    fn batch(rows: &[(i32, i64, i32, i64, i64)]) -> RecordBatch {
        let int = |f: fn(&(i32, i64, i32, i64, i64)) -> i32| -> ArrayRef {
            Arc::new(rows.iter().map(f).collect::<Int32Array>())
        };
        let long = |f: fn(&(i32, i64, i32, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(rows.iter().map(f).collect::<Int64Array>())
        };
        RecordBatch::try_from_iter([
            ("operation", int(|r| r.0)),
            ("originalTransaction", long(|r| r.1)),
            ("bucket", int(|r| r.2)),
            ("rowId", long(|r| r.3)),
            ("currentTransaction", long(|r| r.4)),
        ])
        .unwrap()
    }

    fn live(events: &Events, rows: &[(i32, i64, i32, i64, i64)]) -> Vec<bool> {
        events.live(&batch(rows), 0).unwrap().iter().map(Option::unwrap).collect()
    }

    #[test]
    fn deletes_end_rows_and_updates_replace_them() {
        let mut events = Events::default();
        events.add(&batch(&[(2, 1, 7, 3, 5), (2, 1, 7, 1, 4), (0, 9, 9, 9, 9), (1, 2, 7, 0, 6)]), 0).unwrap();
        events.add(&batch(&[(1, 2, 7, 0, 8), (1, 1, 7, 3, 3)]), 0).unwrap();
        events.complete();
        assert_eq!(events.len(), 3);
        let rows: Vec<_> = (0..5).map(|row| (0, 1, 7, row, 1)).collect();
        assert_eq!(live(&events, &rows), [true, false, true, false, true]);
        let back: Vec<_> = rows.iter().rev().copied().collect();
        assert_eq!(live(&events, &back), [true, false, true, false, true]);
        // The row as inserted, as updated first, as updated last; a delete's own row.
        assert_eq!(
            live(&events, &[(0, 2, 7, 0, 2), (1, 2, 7, 0, 6), (1, 2, 7, 0, 8), (2, 1, 7, 3, 5)]),
            [false, false, true, false]
        );
        // Another bucket, another write.
        assert_eq!(live(&events, &[(0, 1, 8, 3, 1), (0, 3, 7, 3, 3)]), [true, true]);
    }

    #[test]
    fn plain_rows_have_either_bucket_property() {
        let mut events = Events::default();
        events.add(&batch(&[(2, 0, 2, 4, 5), (2, 0, bucket_property(2, 0), 6, 5)]), 0).unwrap();
        events.complete();
        let live = events.live_plain(0, 2, 0, 4, 4);
        assert_eq!(live.iter().map(Option::unwrap).collect::<Vec<_>>(), [false, true, false, true]);
        assert!(events.touch(0, 2) && events.touch(0, 536_870_912 | 2 << 16) && !events.touch(1, 2));
        assert_eq!(bucket_property(1, 3), 0x2001_0003);
        assert_eq!([0x2001_0003, 7].map(bucket_of_property), [1, 7]);
        let e = Events::default().add(&batch(&[(3, 0, 0, 0, 0)]), 0).unwrap_err();
        assert!(e.to_string().contains("operation"));
    }
}
