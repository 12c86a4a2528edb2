//! Returns the exact part of a file's statistics: the results equal `count`, `min` and `max` over the decoded
//! rows.
//!
//! | | exact where |
//! |---|---|
//! | number of values | the writer has counted all rows, and `hasNull` fits the count |
//! | ends of integers, dates, truth values | [`bounds`] trusts them; dates of the hybrid calendar from 1582-10-15 on |
//! | other ends | never: they are truncated (text), rounded (instants), wrong in one version (decimals), or ignore NaN |
//!
//! A file with wrong statistics of stripes, or with possibly missing stripes, has no exact statistics.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use coldframe_core::{ColumnExtremes, Extremes, Result};

use super::{UnitStatistics, believed, of_stripes, units};
use crate::layout::proto::ColumnStatistics;
use crate::layout::quirks::Quirks;
use crate::open::Shape;
use crate::prune::Stored;
use crate::prune::bounds::bounds;
use crate::prune::filter::top_level_column;

/// A requested column, with its type.
struct Requested {
    id: usize,
    data_type: DataType,
    stored: Stored,
}

/// The extremes of each stripe that begins in `range`, or of the file if `range` has all stripes and
/// `by_unit` is false.
pub(crate) fn extremes(
    shape: &Shape,
    range: &Range<u64>,
    columns: &[String],
    by_unit: bool,
) -> Result<Option<Vec<Extremes>>> {
    if !shape.lost.is_empty() || shape.recovered.is_some() || !shape.quirks.merged_statistics {
        return Ok(None);
    }
    let requested = |name: &String| {
        let (id, data_type, stored) = top_level_column(name, &shape.schema, &shape.tree, shape.quirks)?;
        Some(Requested { id, data_type, stored })
    };
    let Some(columns) = columns.iter().map(requested).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let of_stripes = if by_unit { of_stripes(shape, range)? } else { None };
    let Some(units) = of_stripes.map_or_else(|| units(shape, range), |known| Ok(Some(known)))? else {
        return Ok(None);
    };
    let units: Vec<UnitStatistics> = units.into_iter().map(|unit| believed(shape, unit)).collect();
    let inside: Vec<u64> =
        shape.stripes.iter().filter(|s| range.contains(&s.bytes.start)).map(|stripe| stripe.rows).collect();
    let all = inside.iter().fold(0, |all: u64, rows| all.saturating_add(*rows));
    // One list for the whole file, or one for each stripe.
    let rows = if units.len() == inside.len() { inside } else { vec![all] };
    let known = units.iter().zip(rows).map(|(unit, rows)| of_unit(unit, rows, &columns, shape.quirks));
    Ok(known.collect())
}

/// The extremes of a unit; `None` if its rows must be decoded.
fn of_unit(unit: &UnitStatistics, rows: u64, columns: &[Requested], quirks: Quirks) -> Option<Extremes> {
    let of = |id: usize| unit.get(id).and_then(Option::as_ref);
    // Without indexes, Java's writer counts nothing and writes zeros.
    if rows > 0 && of(0)?.number_of_values != Some(rows) {
        return None;
    }
    let columns = columns.iter().map(|requested| of_column(of(requested.id)?, rows, requested, quirks));
    Some(Extremes { rows, columns: columns.collect::<Option<_>>()? })
}

fn of_column(
    stats: &ColumnStatistics,
    rows: u64,
    requested: &Requested,
    quirks: Quirks,
) -> Option<ColumnExtremes> {
    if rows == 0 {
        return Some(ColumnExtremes { values: 0, ends: Some(new_null_array(&requested.data_type, 2)) });
    }
    let values = stats.number_of_values?;
    let fits = match stats.has_null {
        Some(has_null) => values <= rows && has_null == (values < rows),
        // Not every writer states `has_null`. Without it, a count of 0 may mean that nothing was counted.
        None => (1..=rows).contains(&values),
    };
    if !fits {
        return None;
    }
    if values == 0 {
        return Some(ColumnExtremes { values, ends: Some(new_null_array(&requested.data_type, 2)) });
    }
    Some(ColumnExtremes { values, ends: ends(stats, requested, quirks) })
}

fn ends(stats: &ColumnStatistics, requested: &Requested, quirks: Quirks) -> Option<ArrayRef> {
    if !(requested.data_type.is_signed_integer()
        || matches!(requested.data_type, DataType::Date32 | DataType::Boolean))
    {
        return None;
    }
    let exact = bounds(stats, &requested.data_type, requested.stored, quirks);
    let (min, max): (ArrayRef, ArrayRef) = (exact.min?, exact.max?);
    let both = concat(&[min.as_ref(), max.as_ref()]).ok()?;
    (both.len() == 2 && both.null_count() == 0).then_some(both)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Int8Type};

    use super::*;
    use crate::layout::proto::{
        BucketStatistics, DateStatistics, Footer, IntegerStatistics, PostScript, StringStatistics,
    };

    fn quirks() -> Quirks {
        Quirks::new(
            &Footer::default(),
            &PostScript { writer_version: Some(9), ..PostScript::default() },
            None,
        )
    }

    fn requested(data_type: DataType, stored: Stored) -> Requested {
        Requested { id: 1, data_type, stored }
    }

    fn root(rows: u64) -> Option<ColumnStatistics> {
        Some(ColumnStatistics { number_of_values: Some(rows), ..ColumnStatistics::default() })
    }

    fn extremes_of(
        root: Option<ColumnStatistics>,
        stats: ColumnStatistics,
        column: Requested,
    ) -> Option<Extremes> {
        of_unit(&vec![root, Some(stats)], 10, &[column], quirks())
    }

    fn bytes(minimum: i64, maximum: i64) -> ColumnStatistics {
        ColumnStatistics {
            number_of_values: Some(7),
            has_null: Some(true),
            int_statistics: Some(IntegerStatistics {
                minimum: Some(minimum),
                maximum: Some(maximum),
                sum: None,
            }),
            ..ColumnStatistics::default()
        }
    }

    #[test]
    fn integers_have_exact_ends() {
        let unit = extremes_of(root(10), bytes(-3, 40), requested(DataType::Int8, Stored::Plain)).unwrap();
        assert_eq!((unit.rows, unit.columns[0].values), (10, 7));
        let ends = unit.columns[0].ends.clone().unwrap();
        assert_eq!(ends.as_primitive::<Int8Type>().values(), &[-3, 40]);
    }

    #[test]
    fn no_extremes_where_the_writer_did_not_count() {
        let column = || requested(DataType::Int8, Stored::Plain);
        assert!(extremes_of(None, bytes(-3, 40), column()).is_none());
        assert!(extremes_of(root(0), bytes(-3, 40), column()).is_none());
        assert!(extremes_of(root(11), bytes(-3, 40), column()).is_none());
        let no_null = ColumnStatistics { has_null: Some(false), ..bytes(-3, 40) };
        assert!(extremes_of(root(10), no_null, column()).is_none(), "seven values of ten rows, and no null");
        let unknown = ColumnStatistics { number_of_values: Some(0), has_null: None, ..bytes(0, 0) };
        assert!(extremes_of(root(10), unknown, column()).is_none());
        let all_null = ColumnStatistics { number_of_values: Some(0), ..bytes(0, 0) };
        let unit = extremes_of(root(10), all_null, column()).unwrap();
        assert_eq!(unit.columns[0].ends.as_ref().unwrap().null_count(), 2);
    }

    #[test]
    fn ends_that_are_not_exact_are_left_out() {
        let ends = |stats, column| extremes_of(root(10), stats, column).unwrap().columns[0].ends.clone();
        assert!(ends(bytes(0, 255), requested(DataType::Int8, Stored::Plain)).is_none(), "255 is no tinyint");
        let texts = ColumnStatistics {
            string_statistics: Some(StringStatistics {
                minimum: Some(b"a".to_vec()),
                maximum: Some(b"b".to_vec()),
                ..StringStatistics::default()
            }),
            ..bytes(0, 0)
        };
        assert!(ends(texts, requested(DataType::Utf8, Stored::Plain)).is_none());
        let days = |minimum| ColumnStatistics {
            int_statistics: None,
            date_statistics: Some(DateStatistics { minimum: Some(minimum), maximum: Some(5) }),
            ..bytes(0, 0)
        };
        assert!(ends(days(-150_000), requested(DataType::Date32, Stored::HybridDate)).is_none());
        let new = ends(days(-3), requested(DataType::Date32, Stored::HybridDate)).unwrap();
        assert_eq!(new.as_primitive::<Date32Type>().values(), &[-3, 5]);
        let truths = ColumnStatistics {
            int_statistics: None,
            bucket_statistics: Some(BucketStatistics { count: vec![7] }),
            ..bytes(0, 0)
        };
        let truths = ends(truths, requested(DataType::Boolean, Stored::Plain)).unwrap();
        assert_eq!(truths.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(true)]);
    }
}
