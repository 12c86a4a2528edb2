//! Events: deletes and, before Hive 2.2, updates of rows that were written earlier.
//!
//! A row's identity is (`originalTransaction`, `bucket`, `rowId`): the write that inserted it, its bucket
//! property at that time, and its number in that bucket. An event refers to a row by its identity. A delete
//! removes the row. An update gives it new values: of all rows with the same identity, only the row of the
//! last write is live.
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

/// The values of the column `operation`, for an inserted, an updated and a deleted row.
pub(crate) const INSERT: i32 = 0;
/// See [`INSERT`].
pub(crate) const UPDATE: i32 = 1;
/// See [`INSERT`].
pub(crate) const DELETE: i32 = 2;

/// The identity columns that precede a row's values.
pub(crate) const IDENTITY: [&str; 5] =
    ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"];

/// The last event of each row that has events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// The events by write and bucket property; sorted by row once they are complete.
    groups: BTreeMap<(i64, i32), Vec<Event>>,
    /// The visible writes; `None` if all writes are visible.
    ids: Option<Arc<WriteIds>>,
    /// Rows to which lost events may refer.
    doubts: Vec<Doubt>,
}

/// Rows that may have been deleted or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The bucket of the rows; `None` for all buckets.
    pub(crate) bucket: Option<i32>,
    /// The last write of the rows.
    pub(crate) up_to: i64,
}

impl Doubt {
    fn covers(&self, write: i64, bucket: i32) -> bool {
        write <= self.up_to && self.bucket.is_none_or(|only| only == bucket)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    row: i64,
    /// Whether this is a delete. No later event refers to the row.
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
    /// The identity columns of `batch`. The columns must exist and have no nulls.
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

/// The values of a column that has no nulls in an ACID file.
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
    /// An empty collection. Only events of the writes `ids` will be added to it.
    pub(crate) fn new(ids: Option<Arc<WriteIds>>) -> Self {
        Self { ids, ..Self::default() }
    }

    fn counts(&self, write: i64) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.has(write))
    }

    /// Whether there are no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of rows with events.
    pub(crate) fn len(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    /// Whether any row of this write and bucket has an event.
    pub(crate) fn has_any(&self, write: i64, bucket: i32) -> bool {
        self.groups.contains_key(&(write, bucket))
    }

    /// Adds the events of a batch that `statement` wrote.
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

    /// The bucket properties of rows with events.
    pub(crate) fn properties(&self) -> impl Iterator<Item = i32> + '_ {
        self.groups.keys().map(|(_, property)| *property)
    }

    /// The writes and buckets of rows with events of a write after `base`, each with the number of these rows.
    pub(crate) fn referred(&self, base: i64) -> BTreeMap<(i64, i32), u64> {
        let mut referred = BTreeMap::new();
        for ((original, property), group) in &self.groups {
            let later = group.iter().filter(|event| event.write > base).count() as u64;
            if later > 0 {
                *referred.entry((*original, bucket_of_property(*property))).or_default() += later;
            }
        }
        referred
    }

    /// Adds the events of `other`.
    pub(crate) fn extend(&mut self, other: Self) {
        for (key, group) in other.groups {
            self.groups.entry(key).or_default().extend(group);
        }
        self.doubts.extend(other.doubts);
    }

    /// Records rows that may have further events, which are lost.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// Whether lost events may refer to a row of this write and bucket.
    pub(crate) fn is_in_doubt(&self, write: i64, bucket: i32) -> bool {
        self.doubts.iter().any(|doubt| doubt.covers(write, bucket))
    }

    /// To which rows of an ACID file's batch lost events may refer; `None` if no events are lost.
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

    /// Sorts the events and keeps only the last event of each row.
    pub(crate) fn complete(&mut self) {
        for group in self.groups.values_mut() {
            group.sort_unstable();
            // Events of the same row are adjacent; the last event is at the end.
            group.reverse();
            group.dedup_by_key(|e| e.row);
            group.reverse();
            group.shrink_to_fit();
        }
    }

    /// Which rows of an ACID file's batch are live.
    pub(crate) fn live(&self, batch: &RecordBatch, statement: i32) -> Result<BooleanArray> {
        let mut at = SearchPosition::default();
        Ok(Identities::of(batch)?
            .rows()
            .map(|(operation, original, bucket, row, write)| {
                let event = self.find(&mut at, (original, bucket), row);
                let last = event.is_none_or(|e| !e.deletes && (write, statement) >= (e.write, e.statement));
                Some(operation != DELETE && last && self.counts(write))
            })
            .collect())
    }

    /// Which of `count` rows of a plain file are live. The rows are numbered from `first`, and belong to
    /// `write` and `bucket`.
    pub(crate) fn live_plain(
        &self,
        write: i64,
        bucket: i32,
        statement: i32,
        first: i64,
        count: usize,
    ) -> BooleanArray {
        let mut places = [SearchPosition::default(), SearchPosition::default()];
        let properties = [bucket, bucket_property(bucket, statement)];
        (0..count)
            .zip(first..)
            .map(|(_, row)| {
                let mut both = places.iter_mut().zip(properties);
                Some(both.all(|(place, property)| self.find(place, (write, property), row).is_none()))
            })
            .collect()
    }

    /// The event of a row. Rows are mostly in order, so a search starts where the previous search ended.
    fn find<'a>(&'a self, at: &mut SearchPosition<'a>, key: (i64, i32), row: i64) -> Option<&'a Event> {
        if at.key != Some(key) {
            *at = SearchPosition {
                key: Some(key),
                group: self.groups.get(&key).map_or(&[], Vec::as_slice),
                index: 0,
            };
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

/// Where the previous search ended: at the first event for its row or a later row.
#[derive(Default)]
struct SearchPosition<'a> {
    key: Option<(i64, i32)>,
    group: &'a [Event],
    index: usize,
}

/// The bucket property as Hive 3 encodes it.
pub(crate) fn bucket_property(bucket: i32, statement: i32) -> i32 {
    1 << 29 | (bucket & 0xfff) << 16 | (statement & 0xfff)
}

/// The bucket in a bucket property. Before Hive 3 the property is the bucket itself.
pub(crate) fn bucket_of_property(property: i32) -> i32 {
    if property >> 29 == 1 { property >> 16 & 0xfff } else { property }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, Int64Array};
    use std::sync::Arc;

    pub(crate) fn batch(rows: &[(i32, i64, i32, i64, i64)]) -> RecordBatch {
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
        // The row as it was inserted, after the first update, and after the last update; and a row of the
        // same write as the delete.
        assert_eq!(
            live(&events, &[(0, 2, 7, 0, 2), (1, 2, 7, 0, 6), (1, 2, 7, 0, 8), (2, 1, 7, 3, 5)]),
            [false, false, true, false]
        );
        // Rows of another bucket and of another write have no events.
        assert_eq!(live(&events, &[(0, 1, 8, 3, 1), (0, 3, 7, 3, 3)]), [true, true]);
    }

    #[test]
    fn plain_rows_have_either_bucket_property() {
        let mut events = Events::default();
        events.add(&batch(&[(2, 0, 2, 4, 5), (2, 0, bucket_property(2, 0), 6, 5)]), 0).unwrap();
        events.complete();
        let live = events.live_plain(0, 2, 0, 4, 4);
        assert_eq!(live.iter().map(Option::unwrap).collect::<Vec<_>>(), [false, true, false, true]);
        assert!(events.has_any(0, 2) && events.has_any(0, 536_870_912 | 2 << 16) && !events.has_any(1, 2));
        assert_eq!(bucket_property(1, 3), 0x2001_0003);
        assert_eq!([0x2001_0003, 7].map(bucket_of_property), [1, 7]);
        let e = Events::default().add(&batch(&[(3, 0, 0, 0, 0)]), 0).unwrap_err();
        assert!(e.to_string().contains("operation"));
    }
}
