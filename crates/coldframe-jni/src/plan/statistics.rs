//! Estimates the size of a request's result, for Spark's choice of joins.
//!
//! ```text
//! bytes, rows, then for each column:  nulls, distinct values, 1 if the next two are known, smallest, largest      -1: unknown
//! ```
//! The number of distinct integers is estimated as the distance between their extremes. For partition
//! columns, the number of distinct values is known.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use coldframe::{ColumnExtremes, Extremes, Result};
use serde_json::Value as Json;

use super::{MAX_OPENED, Request, Table, json};

/// Statistics of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    nulls: u64,
    values: u64,
    ends: Option<(i64, i64)>,
    /// Whether the extremes of some unit that has values are unknown.
    is_open: bool,
}

impl Known {
    fn add(&mut self, rows: u64, more: &ColumnExtremes) {
        self.nulls = self.nulls.saturating_add(rows.saturating_sub(more.values));
        self.values = self.values.saturating_add(more.values);
        match more.ends.as_ref().and_then(ends) {
            Some((low, high)) => {
                self.ends = Some(
                    self.ends.map_or((low, high), |(least, greatest)| (least.min(low), greatest.max(high))),
                );
            }
            None => self.is_open |= more.values > 0,
        }
    }

    fn to_longs(self, folders: Option<u64>) -> [i64; 5] {
        let ends = self.ends.filter(|_| !self.is_open);
        let between = ends.map(|(low, high)| high.abs_diff(low).saturating_add(1).min(self.values));
        let (low, high) = ends.unwrap_or_default();
        [or_unknown(Some(self.nulls)), or_unknown(folders.or(between)), i64::from(ends.is_some()), low, high]
    }
}

fn or_unknown(known: Option<u64>) -> i64 {
    known.and_then(|known| i64::try_from(known).ok()).unwrap_or(-1)
}

impl Table {
    /// Estimates the bytes that a request reads, its rows, and the statistics of its columns. The files are opened only if
    /// the request wants columns (`"columns": true`) and there are not too many files; a single file is
    /// always opened.
    pub fn statistics(&self, request: &[u8]) -> Result<Vec<i64>> {
        let (request, asked) = (Request::parse(request)?, json(request)?);
        let of_columns = asked.get("columns").and_then(Json::as_bool).unwrap_or(false);
        // A file that may be gone is not opened to know more of it.
        let of_columns = of_columns && !self.options.ignore_missing;
        let files = self.dataset.schema()?;
        let predicate = self.condition(&request)?.map(|condition| condition.bind(&files)).transpose()?;
        let matching = self.dataset.matching(predicate.as_ref())?;
        let of = |at: &usize| self.dataset.entry(*at)?.known.as_ref().map(|known| known.len);
        let lengths: Option<Vec<u64>> = matching.iter().map(of).collect();
        let wanted = request.schema.fields().len().max(1) as u64;
        let all = files.fields().len().max(1) as u64;
        let bytes = lengths.map(|all| all.into_iter().fold(0, u64::saturating_add));
        let bytes = bytes.map(|bytes| bytes.saturating_mul(wanted.min(all)) / all);
        if !of_columns || matching.len() > MAX_OPENED {
            let rows = match (&*matching, predicate) {
                ([only], None) if !self.options.ignore_missing => self.dataset.open(*only)?.table.row_count(),
                _ => None,
            };
            return Ok(vec![or_unknown(bytes), or_unknown(rows)]);
        }
        let names = request.schema.fields().iter().map(|field| self.name_of(field.name()));
        let names = names.collect::<Result<Vec<_>>>()?;
        let known = self.scan(&request, &names)?.extremes(&matching, false)?;
        let mut rows = Some(0u64);
        for (at, units) in matching.iter().zip(&known) {
            let own = match units {
                Some(units) => Some(units.iter().fold(0, |rows: u64, unit| rows.saturating_add(unit.rows))),
                None if predicate.is_none() => {
                    self.dataset.open(*at).ok().and_then(|file| file.table.row_count())
                }
                None => None,
            };
            rows = rows.zip(own).map(|(rows, own)| rows.saturating_add(own));
        }
        let mut all = vec![or_unknown(bytes), or_unknown(rows)];
        if let Some(units) = known.into_iter().collect::<Option<Vec<Vec<Extremes>>>>() {
            let units: Vec<Extremes> = units.into_iter().flatten().collect();
            all.extend(self.of_columns(&names, &matching, &units));
        }
        Ok(all)
    }

    fn of_columns(&self, names: &[String], files: &[usize], units: &[Extremes]) -> Vec<i64> {
        let folders = self.values_of_folders(files);
        let column = |(at, name): (usize, &String)| {
            let mut known = Known::default();
            for unit in units {
                if let Some(more) = unit.columns.get(at) {
                    known.add(unit.rows, more);
                }
            }
            known.to_longs(folders.get(name.as_str()).map(|values| values.len() as u64))
        };
        names.iter().enumerate().flat_map(column).collect()
    }

    /// The distinct values of partition columns, as text.
    fn values_of_folders(&self, files: &[usize]) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for entry in files.iter().filter_map(|at| self.dataset.entry(*at)) {
            for (name, value) in &entry.pairs {
                all.entry(name).or_default().insert(value);
            }
        }
        all
    }
}

/// The extremes as integers, if they are integers in Spark.
pub(super) fn ends(both: &ArrayRef) -> Option<(i64, i64)> {
    fn of<T: ArrowPrimitiveType<Native: Into<i64>>>(both: &dyn Array) -> Option<(i64, i64)> {
        let both = both.as_primitive::<T>();
        Some((both.value(0).into(), both.value(1).into()))
    }
    if both.len() != 2 || both.null_count() > 0 {
        return None;
    }
    match both.data_type() {
        DataType::Int8 => of::<Int8Type>(both),
        DataType::Int16 => of::<Int16Type>(both),
        DataType::Int32 => of::<Int32Type>(both),
        DataType::Int64 => of::<Int64Type>(both),
        DataType::Date32 => of::<Date32Type>(both),
        DataType::Boolean => {
            let both = both.as_boolean();
            Some((both.value(0).into(), both.value(1).into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;

    use super::*;

    fn unit(values: u64, both: Option<Vec<Option<i32>>>) -> ColumnExtremes {
        ColumnExtremes { values, ends: both.map(|both| Arc::new(Int32Array::from(both)) as ArrayRef) }
    }

    #[test]
    fn statistics_of_units_are_added_up() {
        let mut known = Known::default();
        known.add(10, &unit(8, Some(vec![Some(-2), Some(3)])));
        known.add(5, &unit(0, Some(vec![None, None])));
        known.add(4, &unit(4, Some(vec![Some(0), Some(7)])));
        assert_eq!(known.to_longs(None), [7, 10, 1, -2, 7]);
        assert_eq!(known.to_longs(Some(3)), [7, 3, 1, -2, 7]);
        known.add(4, &unit(4, None));
        assert_eq!(known.to_longs(None), [7, -1, 0, 0, 0]);
        let mut few = Known::default();
        few.add(2, &unit(2, Some(vec![Some(i32::MIN), Some(i32::MAX)])));
        assert_eq!(few.to_longs(None)[1], 2);
    }
}
