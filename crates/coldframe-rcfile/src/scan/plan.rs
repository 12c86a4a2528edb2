//! Finds the row groups of a byte range by going from one to the next; after damage, it continues at the next
//! readable group.
//!
//! A split `start..end` holds the groups from the first sync marker at or after `start` (from the first group, if
//! `start` is in the header) up to the first sync marker at or after `end`: a group without a marker belongs to
//! the marker before it. Hive's `RCFileRecordReader` does the same, so byte ranges that cover a file in any way
//! give each row exactly once.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::format::Fetch;
use coldframe_core::{
    Damage, DecodeUnit, Divided, Error, ErrorContext, OnError, Plan, PlanRequest, ReadAt, Result, Unit,
};
use coldframe_encoding::limits::UNBACKED_ROWS;

use super::columns::Decoders;
use super::decode::DecodeGroup;
use super::scout::ScoutGroup;
use crate::layout::key::{ColumnKey, count_cells};
use crate::layout::row_group::RowGroup;
use crate::walk::GroupWalk;

/// Walks the row groups of one split.
pub(crate) struct GroupPlan {
    walk: GroupWalk,
    source: Arc<dyn ReadAt>,
    decoders: Arc<Decoders>,
    /// How a filtered scan divides the columns: it decodes the filter's columns first.
    divided: Option<Arc<Divided>>,
    request: PlanRequest,
    /// Where the next group is expected; `None` before the first.
    at: Option<u64>,
    split: Range<u64>,
    /// The number of groups so far, which numbers the next group in errors.
    seen: u64,
}

impl GroupPlan {
    /// A plan of `split`; nothing is read until the first group is requested.
    pub(crate) fn new(
        walk: GroupWalk,
        source: Arc<dyn ReadAt>,
        decoders: Decoders,
        request: PlanRequest,
        split: Range<u64>,
    ) -> Result<Self> {
        // If values depend on earlier rows, all rows are decoded.
        let divided =
            if decoders.at_once { None } else { Divided::new(&request, &decoders.schema)?.map(Arc::new) };
        Ok(Self { walk, source, decoders: Arc::new(decoders), divided, request, at: None, split, seen: 0 })
    }

    fn skips(&self) -> bool {
        self.request.scan.on_error != OnError::Raise
    }

    /// The next group, or `None` at the end of the split.
    fn next_group(&mut self) -> Result<Option<RowGroup>> {
        loop {
            let at = match self.at {
                Some(at) => at,
                None => self.first()?,
            };
            // A group without a marker belongs to the split of the marker before it, even past the split's end.
            if at >= self.walk.file_len() || (self.seen == 0 && at >= self.split.end) {
                return Ok(None);
            }
            if at >= self.split.end && self.belongs_to_next_split(at)? {
                return Ok(None);
            }
            match self.read_group(at).and_then(|group| self.check(group)) {
                Ok(group) => {
                    self.at = Some(group.end());
                    self.seen += 1;
                    return Ok(Some(group));
                }
                Err(e) => self.resync(at, e)?,
            }
        }
    }

    /// Whether the group at `at`, past the split's end, belongs to the next split, readable or not. It
    /// belongs to the next split if the group begins with a marker, or if the marker that starts the next
    /// split precedes the group. (If bytes are damaged, the walk may not see that marker.)
    fn belongs_to_next_split(&mut self, at: u64) -> Result<bool> {
        Ok(self.walk.begins_split(at) || self.walk.sync(self.split.end)? <= at)
    }

    /// The group at `at`. A plain read does not look for an anchor: it reads on, and so meets the bytes after
    /// the group.
    fn read_group(&mut self, at: u64) -> Result<RowGroup> {
        if self.skips() { self.walk.read_anchored_group(at) } else { self.walk.read_group(at) }
    }

    fn first(&mut self) -> Result<u64> {
        let at = self.walk.sync(self.split.start)?;
        self.at = Some(at);
        Ok(at)
    }

    /// Refuses a group with more rows than allowed and, if nothing else counts the cells, a group whose cells
    /// contradict its number of rows.
    fn check(&self, group: RowGroup) -> Result<RowGroup> {
        let rows = group.key.rows;
        let is_counted =
            |column: &ColumnKey| count_cells(&column.lengths).is_ok_and(|(cells, _)| cells == rows);
        // A wrong number of rows that no column confirms would cost much time.
        if rows > UNBACKED_ROWS && !group.key.columns.iter().any(is_counted) {
            let message = format!("expected the lengths of {rows} cells in a column, found other numbers");
            return Err(Error::corrupt(message).at(group.key_bytes.start).within("key"));
        }
        self.walk.limits().unit_rows("a row group", rows).at(group.key_bytes.start).within(|| "key")?;
        // Decoding finds missing cells and keeps the others, but a scan that only counts rows does not
        // decode.
        let counted = group.key.columns.iter().find(|c| !c.lengths.is_empty());
        if let Some(column) = counted.filter(|_| self.decoders.is_empty() && !self.skips()) {
            let cells = count_cells(&column.lengths).map(|(cells, _)| cells).unwrap_or(0);
            if cells != rows {
                let message = format!("expected lengths of {rows} cells, found {cells}");
                return Err(Error::corrupt(message).at(group.key_bytes.start).within("key"));
            }
        }
        Ok(group)
    }

    /// Records the damage at `at` and continues after it, or returns the error.
    fn resync(&mut self, at: u64, e: Error) -> Result<()> {
        let e = e.within(format!("row group {}", self.seen)).at(at);
        if !self.skips() || !e.is_damage() {
            return Err(e);
        }
        let (next, is_marker) = self.walk.resume(at)?;
        self.request.damage.push(Damage::from_error(&e, at..next, None));
        self.seen += 1;
        // Data with a marker past the split's end belongs to the next split.
        self.at = Some(if is_marker && next >= self.split.end { self.walk.file_len() } else { next });
        Ok(())
    }

    fn unit(&self, group: RowGroup) -> Unit {
        let number = self.seen.saturating_sub(1);
        let ranges: Vec<Range<u64>> = group.column_ranges().collect();
        let wanted = self.decoders.file_columns();
        let fetch = wanted
            .filter_map(|i| ranges.get(i))
            .map(|range| Fetch { source: self.source.clone(), range: range.clone() })
            .collect();
        let (bytes, rows) = (group.start()..group.end(), Some(group.key.rows));
        let all = DecodeGroup::new(self.decoders.clone(), group, &self.request, number);
        let decode: Box<dyn DecodeUnit> = match &self.divided {
            Some(columns) => Box::new(ScoutGroup { columns: columns.clone(), all }),
            None => Box::new(all),
        };
        Unit { fetch, bytes, rows, structure: format!("row group {number}"), decode }
    }
}

impl Plan for GroupPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        Ok(self.next_group()?.map(|group| self.unit(group)))
    }
}
