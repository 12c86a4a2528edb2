//! `ORDER BY column LIMIT n`: derives a filter that the first n rows pass, and usually few other rows.
//!
//! ```text
//! ORDER BY a DESC LIMIT 10     stripes with a in 0..99 (50 rows), 100..199 (50), 200..299 (50)
//!                              the last stripe has 50 rows with a >= 200: rows below cannot be among the first 10
//! ```
//! If the extremes of some units show that n rows are at or before a value, later rows are not needed, and the filter prunes
//! their files, stripes and row groups. Spark sorts the passing rows. Further columns in the ORDER BY only
//! decide between equal values.

use arrow_schema::DataType;
use coldframe::{Extremes, OnError, Result};
use serde_json::{Value as Json, json};

use super::statistics::ends;
use super::{MAX_OPENED, Request, Table, json};
use crate::filter;
use crate::types;

/// The first rows in the order of a column.
#[derive(Clone, Debug)]
struct Top {
    column: String,
    descending: bool,
    nulls_first: bool,
    rows: u64,
}

impl Top {
    fn parse(request: &Json) -> Option<Self> {
        let is = |name: &str| request.get(name)?.as_bool();
        Some(Self {
            column: request.get("name")?.as_str()?.to_owned(),
            descending: is("descending")?,
            nulls_first: is("nulls_first")?,
            rows: request.get("rows")?.as_u64().filter(|rows| *rows > 0)?,
        })
    }

    /// A value for which the units' metadata show that at least `rows` rows are at or before it; `None` if
    /// they show no such value.
    fn bound(&self, units: &[Extremes]) -> Option<i64> {
        let of = |unit: &Extremes| {
            let column = unit.columns.first().filter(|column| column.values > 0)?;
            let (low, high) = ends(column.ends.as_ref()?)?;
            Some((if self.descending { low } else { high }, column.values))
        };
        let mut known: Vec<(i64, u64)> = units.iter().filter_map(of).collect();
        known.sort_unstable_by_key(|(end, _)| *end);
        if self.descending {
            known.reverse();
        }
        let mut rows = 0u64;
        for (end, values) in known {
            rows = rows.saturating_add(values);
            if rows >= self.rows {
                return Some(end);
            }
        }
        None
    }
}

impl Table {
    /// A filter, as Spark's JSON, that keeps the first rows in the order of a column, as requested by `"top": {..}`; `None`
    /// if metadata do not show that a row can be left out.
    pub fn top(&self, request: &[u8]) -> Result<Option<String>> {
        let (request, top) = (Request::parse(request)?, json(request)?.get("top").and_then(Top::parse));
        let Some(top) = top else { return Ok(None) };
        // If damage or files that are gone are skipped, rows that the extremes include may be lost.
        let is_whole = self.options.on_error == OnError::Raise && !self.options.ignore_missing;
        let files = self.dataset.schema()?;
        let name = self.name_of(&top.column)?;
        let kinds = (files.field_with_name(&name), self.spark.field_with_name(&top.column));
        let (Ok(own), Ok(spark)) = kinds else { return Ok(None) };
        let is_same = own.data_type() == spark.data_type();
        let has_order = own.data_type().is_signed_integer() || *own.data_type() == DataType::Date32;
        if !(is_whole && is_same && has_order) {
            return Ok(None);
        }
        let scan = self.scan(&request, std::slice::from_ref(&name))?;
        let predicate = self.condition(&request)?.map(|condition| condition.bind(&files)).transpose()?;
        let mut asked = self.dataset.matching(predicate.as_ref())?;
        // If there are many files, only the first and the last files are opened, since files are often in the
        // order of their values.
        if asked.len() > MAX_OPENED {
            let half = MAX_OPENED / 2;
            asked.drain(half..asked.len() - half);
        }
        let (first, others) = asked.split_at(asked.len().min(1));
        let mut known = scan.extremes(first, true)?;
        // The first file shows whether the format has such metadata.
        if known.iter().all(Option::is_none) {
            return Ok(None);
        }
        known.extend(scan.extremes(others, true)?);
        let units: Vec<Extremes> = known.into_iter().flatten().flatten().collect();
        let Some(bound) = top.bound(&units) else { return Ok(None) };
        let op = if top.descending { ">=" } else { "<=" };
        let column = json!({"name": [top.column]});
        let value = json!({"type": types::type_to_spark(spark.data_type())?, "value": bound.to_string()});
        let mut made = json!({"op": op, "args": [column, value]});
        if top.nulls_first {
            made = json!({"op": "OR", "args": [made, {"op": "IS_NULL", "args": [column]}]});
        }
        let made = made.to_string();
        let is_taken = filter::condition(&made, self.columns()).is_some();
        Ok(is_taken.then_some(made))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array};
    use coldframe::ColumnExtremes;

    use super::*;

    fn unit(values: u64, low: i32, high: i32) -> Extremes {
        let ends: ArrayRef = Arc::new(Int32Array::from(vec![low, high]));
        Extremes { rows: values, columns: vec![ColumnExtremes { values, ends: Some(ends) }] }
    }

    fn top(rows: u64, descending: bool) -> Top {
        let request = json!({"name": "a", "descending": descending, "nulls_first": false, "rows": rows});
        Top::parse(&request).unwrap()
    }

    #[test]
    fn enough_rows_are_at_or_before_the_bound() {
        let mut units = vec![unit(5, 0, 9), unit(5, 20, 29), unit(5, 5, 14), unit(0, 99, -99)];
        for (rows, ascending, descending) in [(1, 9, 20), (5, 9, 20), (6, 14, 5), (11, 29, 0)] {
            assert_eq!(top(rows, false).bound(&units), Some(ascending), "{rows}");
            assert_eq!(top(rows, true).bound(&units), Some(descending), "{rows}");
        }
        assert_eq!(top(16, false).bound(&units), None);
        // Units with unknown extremes are ignored.
        units[0].columns[0].ends = None;
        assert_eq!(top(6, false).bound(&units), Some(29));
        assert!(
            Top::parse(&json!({"name": "a", "descending": true, "nulls_first": true, "rows": 0})).is_none()
        );
    }
}
