//! Returns all statistics of a file as plain data: the statistics of the file, its stripes and their row
//! groups.
//!
//! If a key decrypts a column, its statistics replace the statistics of the masked values. They are encrypted
//! like streams: `EncryptionVariant.fileStatistics`, and before the metadata one stream per column with an
//! entry per stripe.

mod columns;
pub(crate) mod extremes;

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{ColumnSummary, Result, Value};

use crate::layout::proto::{self, ColumnStatistics, RowIndex};
use crate::layout::stripe::Stripe;
use crate::layout::types::{Column, Kind};
use crate::layout::values::decimal_text;
use crate::open::Shape;
use crate::prune::bounds::instant;

/// All statistics of the file, its stripes and row groups.
pub(crate) fn statistics(shape: &Shape) -> Result<Value> {
    let limits = &shape.options.limits;
    let mut of_file = shape.tail.footer.statistics.clone();
    for (root, statistics) in shape.encryption.file_statistics(
        &shape.tail.footer,
        shape.tail.compression,
        limits,
        shape.tail.file_len,
    )? {
        for (place, own) in of_file.iter_mut().skip(root).zip(statistics.column) {
            *place = own;
        }
    }
    let metadata = unless_damaged(shape.metadata())?.unwrap_or_default();
    let mut of_stripes: Vec<Vec<Bytes>> = metadata.stripe_stats.into_iter().map(|s| s.col_stats).collect();
    for (column, own) in unless_damaged(shape.encrypted_metadata())?.unwrap_or_default() {
        for (stripe, own) in of_stripes.iter_mut().zip(own) {
            if let Some(place) = stripe.get_mut(column) {
                *place = own;
            }
        }
    }
    let mut stripes = Vec::with_capacity(shape.stripes.len());
    for stripe in &shape.stripes {
        let columns = of_stripes
            .get(stripe.number)
            .map_or(Value::Null, |s| by_column(shape, s.iter().map(proto::statistics)));
        stripes.push(Value::map([
            ("rows", Value::from(stripe.rows)),
            ("columns", columns),
            ("row_groups", row_groups(shape, stripe)?),
        ]));
    }
    let of_file = by_column(shape, of_file.iter().map(proto::statistics));
    Ok(Value::map([("file", of_file), ("stripes", Value::List(stripes))]))
}

/// The statistics of the columns of the stripes that begin in `range`: a list of columns for each stripe, or
/// one for the file if `range` has all stripes. Encrypted columns are omitted: the values may be masked.
pub(crate) fn stated(shape: &Shape, range: &Range<u64>) -> Result<Value> {
    let units = units(shape, range)?.map(|units| {
        Value::List(units.into_iter().map(|stats| by_column(shape, stats.into_iter())).collect())
    });
    Ok(units.unwrap_or(Value::Null))
}

/// The statistics of the same stripes for top-level columns, with their types.
pub(crate) fn column_summaries(shape: &Shape, range: &Range<u64>) -> Result<Vec<Vec<ColumnSummary>>> {
    let columns = |stats: UnitStatistics| {
        columns::column_summaries(shape.tree.columns().iter().zip(believed(shape, stats)), shape.quirks)
    };
    Ok(units(shape, range)?.unwrap_or_default().into_iter().map(columns).collect())
}

/// The statistics of each column of a stripe or of the file; `None` for encrypted columns, whose values may
/// be masked.
type UnitStatistics = Vec<Option<ColumnStatistics>>;

/// Which of the writer's statistics can be trusted.
fn believed(shape: &Shape, stats: UnitStatistics) -> UnitStatistics {
    stats.into_iter().map(|stats| stats.map(|stats| shape.quirks.believed(stats))).collect()
}

/// The statistics of the stripes that begin in `range`; one entry for the file if these are all stripes.
fn units(shape: &Shape, range: &Range<u64>) -> Result<Option<Vec<UnitStatistics>>> {
    if shape.stripes.iter().all(|stripe| range.contains(&stripe.bytes.start)) {
        let of_file = &shape.tail.footer.statistics;
        return Ok(Some(vec![unencrypted(shape, of_file)]));
    }
    of_stripes(shape, range)
}

/// The statistics of the stripes that begin in `range`; `None` if a stripe has no statistics, or if the
/// statistics are wrong.
fn of_stripes(shape: &Shape, range: &Range<u64>) -> Result<Option<Vec<UnitStatistics>>> {
    if !shape.quirks.stripe_statistics {
        return Ok(None);
    }
    let inside = shape.stripes.iter().filter(|stripe| range.contains(&stripe.bytes.start));
    let metadata = unless_damaged(shape.metadata())?.unwrap_or_default();
    Ok(inside
        .map(|stripe| Some(unencrypted(shape, &metadata.stripe_stats.get(stripe.number)?.col_stats)))
        .collect())
}

/// Decodes the statistics, except the statistics of encrypted columns.
fn unencrypted(shape: &Shape, encoded: &[Bytes]) -> UnitStatistics {
    let is_plain = |at: usize| shape.encryption.variant_of(at).is_none();
    let encoded = encoded.iter().enumerate();
    encoded.map(|(at, stored)| proto::statistics(stored).filter(|_| is_plain(at))).collect()
}

/// `None` for damaged or too large statistics: they cost only themselves, and [`crate::verify`] reports damage.
fn unless_damaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(e) if e.is_confined() => Ok(None),
        Err(e) => Err(e),
    }
}

/// One list of columns for each row group; empty without indexes.
fn row_groups(shape: &Shape, stripe: &Stripe) -> Result<Value> {
    let columns: Vec<usize> = (0..shape.tree.columns().len()).collect();
    let Some(layout) = unless_damaged(shape.layout(stripe))? else { return Ok(Value::Null) };
    let indexes = match unless_damaged(shape.row_indexes::<RowIndex>(stripe, &layout, &columns))? {
        Some(indexes) => indexes,
        // A damaged index does not affect the other indexes.
        None => {
            let index_of = |column: &usize| {
                let index = unless_damaged(shape.row_indexes(stripe, &layout, &[*column]))?;
                Ok(index.and_then(|mut index| index.pop().flatten()))
            };
            columns.iter().map(index_of).collect::<Result<_>>()?
        }
    };
    let count = indexes.iter().flatten().map(|i| i.entry.len()).max().unwrap_or(0);
    let mut groups: Vec<Vec<Value>> = vec![Vec::new(); count];
    for (column, index) in shape.tree.columns().iter().zip(&indexes) {
        let entries = index.iter().flat_map(|index| &index.entry);
        for (group, entry) in groups.iter_mut().zip(entries) {
            group.extend(entry.statistics.as_ref().map(|stats| of_column(column, stats)));
        }
    }
    Ok(Value::List(groups.into_iter().map(Value::List).collect()))
}

/// One map for each column that has statistics.
fn by_column(shape: &Shape, stats: impl Iterator<Item = Option<ColumnStatistics>>) -> Value {
    let columns = shape.tree.columns().iter().zip(stats);
    Value::List(columns.filter_map(|(column, stats)| Some(of_column(column, &stats?))).collect())
}

fn of_column(column: &Column, stats: &ColumnStatistics) -> Value {
    let mut out =
        vec![("column".to_owned(), Value::from(column.id)), ("path".to_owned(), column.path.clone().into())];
    // Text that is declared as binary: its statistics use the order of text, and may be truncated.
    let is_bytes = column.kind == Kind::Binary && stats.string_statistics.is_some();
    let bytes = is_bytes.then(|| ColumnStatistics { string_statistics: None, ..stats.clone() });
    out.extend(to_fields(bytes.as_ref().unwrap_or(stats)));
    Value::Map(out)
}

/// Text, or bytes if they are not text.
fn text(stored: Option<&[u8]>) -> Value {
    stored.map_or(Value::Null, Value::text_or_bytes)
}

/// The statistics as plain data, under the specification's names.
fn to_fields(stats: &ColumnStatistics) -> Vec<(String, Value)> {
    let mut out: Vec<(String, Value)> = Vec::new();
    let mut put = |name: &str, value: Value| {
        if value != Value::Null {
            out.push((name.to_owned(), value));
        }
    };
    put("number_of_values", stats.number_of_values.into());
    put("has_null", stats.has_null.into());
    put("bytes_on_disk", stats.bytes_on_disk.into());
    if let Some(s) = &stats.int_statistics {
        put("min", s.minimum.into());
        put("max", s.maximum.into());
        put("sum", s.sum.into());
    }
    if let Some(s) = &stats.double_statistics {
        put("min", s.minimum.into());
        put("max", s.maximum.into());
        put("sum", s.sum.into());
    }
    if let Some(s) = &stats.string_statistics {
        put("min", text(s.minimum.as_deref()));
        put("max", text(s.maximum.as_deref()));
        put("lower_bound", text(s.lower_bound.as_deref()));
        put("upper_bound", text(s.upper_bound.as_deref()));
        put("total_length", s.sum.into());
    }
    if let Some(s) = &stats.bucket_statistics {
        put("true_count", s.count.first().copied().into());
    }
    if let Some(s) = &stats.decimal_statistics {
        put("min", text(s.minimum.as_deref()));
        put("max", text(s.maximum.as_deref()));
        put("sum", text(s.sum.as_deref()));
    }
    if let Some(s) = &stats.date_statistics {
        put("min_days", s.minimum.map(i64::from).into());
        put("max_days", s.maximum.map(i64::from).into());
    }
    if let Some(s) = &stats.binary_statistics {
        put("total_length", s.sum.into());
    }
    if let Some(s) = &stats.timestamp_statistics {
        // In the writer's zone; files since ORC-135 have the fields in UTC.
        put("min_millis_local", s.minimum.into());
        put("max_millis_local", s.maximum.into());
        let seconds = |ns: Option<i128>| ns.map(|ns| decimal_text(ns, 9));
        put("min_seconds_utc", seconds(instant(s.minimum_utc, s.minimum_nanos, 0)).into());
        put("max_seconds_utc", seconds(instant(s.maximum_utc, s.maximum_nanos, 999_999)).into());
    }
    if let Some(s) = &stats.collection_statistics {
        put("min_children", s.min_children.into());
        put("max_children", s.max_children.into());
        put("total_children", s.total_children.into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::proto::IntegerStatistics;

    #[test]
    fn absent_statistics_are_left_out() {
        let ints = ColumnStatistics {
            int_statistics: Some(IntegerStatistics { minimum: Some(-3), maximum: Some(400), sum: None }),
            ..ColumnStatistics::default()
        };
        let value = Value::Map(to_fields(&ints));
        assert_eq!((value.get("min"), value.get("sum")), (Some(&Value::Int(-3)), None));
    }
}
