//! Converts the statistics of a file, a stripe or a row group to bounds for pruning.
//!
//! ```text
//! Footer.statistics[column]                      the file
//! Metadata.stripeStats[stripe].colStats[column]  a stripe
//! RowIndex.entry[group].statistics               a row group, in the column's ROW_INDEX stream
//! ColumnStatistics = { numberOfValues, hasNull, one of: int, double, string, bucket, decimal, date, timestamp, .. }
//! ```
//!
//! ORC specification v1, "Column Statistics". Bounds that cannot be trusted are ignored, which only costs
//! time:
//!
//! | statistics | trap | treatment |
//! |---|---|---|
//! | all of the first Java writer (version 0) | maxima of stripes and files are wrong, strings compare in UTF-16 order | neither merged statistics nor strings are used |
//! | double | NaN may be the minimum, or be missing; zero has two signs | NaN in any field: no bounds; zeros are widened |
//! | string | long ones are truncated: lowerBound <= minimum, upperBound >= maximum | used as bounds |
//! | char | padded or not | the bounds of both |
//! | timestamp | before version 6 (ORC-135) in the writer's zone | not used |
//! | | read as an instant of some zone | widened by more than any zone's offset |
//! | | some writers round fractions before 1970, others are off by a second; zones before 1900 differ | widened by a second, not used before 1900 |
//! | date | hybrid calendar before 1582 | not used there |
//! | decimal of at most 18 digits | wrong in version 6 (ORC-517) | not used |
//! | hasNull | absent (Trino, old Hive) | unknown |
//! | numberOfValues 0 and no null | stripes without index (Java), columns for which a mask or a writer keeps no statistics | unknown |
//! | any bound | impossible: outside the type (0..255 for a tinyint, ORC-1725), a minimum above the maximum | [`impossible`]: no statistic of the column is used |

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use coldframe_core::ColumnBounds;

use super::Stored;
use crate::layout::proto::ColumnStatistics;
use crate::layout::quirks::Quirks;

/// First day of the Gregorian calendar, 1582-10-15.
const REFORM: i32 = -141_427;
/// 1900-01-01 in seconds.
const YEAR_1900: i128 = -2_208_988_800;
const SECOND: i128 = 1_000_000_000;

/// Maximum difference of local and UTC time of an instant, in milliseconds.
const ZONES: i64 = 26 * 3_600_000;

/// Whether the statistics are impossible: a bound outside the type, or a minimum above the maximum. In that
/// case the writer did not collect them from the column's values, so the other bound is also wrong.
pub(crate) fn impossible(stats: &ColumnStatistics, to: &DataType, stored: Stored, quirks: Quirks) -> bool {
    if stats.number_of_values == Some(0) {
        return false;
    }
    match to {
        DataType::Boolean => {
            let trues = stats.bucket_statistics.as_ref().and_then(|s| s.count.first());
            trues.zip(stats.number_of_values).is_some_and(|(trues, values)| *trues > values)
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let Some(s) = &stats.int_statistics else { return false };
            let foreign = |n: Option<i64>| n.is_some() && integer(n, to).is_none();
            foreign(s.minimum) || foreign(s.maximum) || is_above(s.minimum, s.maximum)
        }
        DataType::Float32 | DataType::Float64 => {
            let Some(s) = &stats.double_statistics else { return false };
            let foreign = |n: f64| *to == DataType::Float32 && !n.is_nan() && narrow(n).is_none();
            s.minimum.is_some_and(foreign) || s.maximum.is_some_and(foreign) || is_above(s.minimum, s.maximum)
        }
        DataType::Utf8 if quirks.string_statistics => impossible_strings(stats, stored),
        DataType::Date32 => stats.date_statistics.as_ref().is_some_and(|s| is_above(s.minimum, s.maximum)),
        DataType::Decimal128(precision, scale) if quirks.short_decimal_statistics || *precision > 18 => {
            let Some(s) = &stats.decimal_statistics else { return false };
            let most = 10u128.checked_pow((*precision).into()).unwrap_or(u128::MAX);
            let value = |text: &Option<Vec<u8>>, up| parse_decimal(as_text(text)?, *scale, up);
            let (low, high) = (value(&s.minimum, false), value(&s.maximum, true));
            let foreign = |text: &Option<Vec<u8>>, value: Option<i128>| {
                text.is_some() && value.is_none_or(|value| value.unsigned_abs() >= most)
            };
            foreign(&s.minimum, low) || foreign(&s.maximum, high) || is_above(low, high)
        }
        DataType::Timestamp(..) if quirks.timestamp_statistics => {
            let Some(s) = &stats.timestamp_statistics else { return false };
            let apart = |local: Option<i64>, utc: Option<i64>| {
                local.zip(utc).is_some_and(|(local, utc)| local.abs_diff(utc) > ZONES.unsigned_abs())
            };
            is_above(s.minimum_utc, s.maximum_utc)
                || apart(s.minimum, s.minimum_utc)
                || apart(s.maximum, s.maximum_utc)
        }
        _ => false,
    }
}

fn is_above<T: PartialOrd>(low: Option<T>, high: Option<T>) -> bool {
    low.zip(high).is_some_and(|(low, high)| low > high)
}

fn impossible_strings(stats: &ColumnStatistics, stored: Stored) -> bool {
    let Some(s) = &stats.string_statistics else { return false };
    let all = [&s.minimum, &s.maximum, &s.lower_bound, &s.upper_bound];
    // Bytes that are not UTF-8 have another order.
    if all.iter().any(|bound| bound.is_some() && as_text(bound).is_none()) {
        return true;
    }
    let trimmed = |t| if matches!(stored, Stored::Char(_)) { str::trim_end_matches(t, ' ') } else { t };
    let low = as_text(&s.minimum).or(as_text(&s.lower_bound)).map(trimmed);
    let high = as_text(&s.maximum).or(as_text(&s.upper_bound)).map(trimmed);
    is_above(low, high)
}

/// What the statistics guarantee about a column of the type `to`.
pub(crate) fn bounds(
    stats: &ColumnStatistics,
    to: &DataType,
    stored: Stored,
    quirks: Quirks,
) -> ColumnBounds {
    // If neither values nor nulls were counted, the writer did not count.
    let counted = stats.number_of_values.is_some_and(|n| n > 0) || stats.has_null == Some(true);
    let has_value = stats.number_of_values.map(|n| n > 0).filter(|_| counted);
    let has_null = stats.has_null.filter(|_| counted);
    let mut bounds = ColumnBounds { min: None, max: None, has_null, has_value };
    if impossible(stats, to, stored, quirks) {
        return ColumnBounds { has_null: None, has_value: None, ..bounds };
    }
    // If no value was counted, the bounds are the writer's initial values.
    if stats.number_of_values != Some(0)
        && let Some((min, max)) = ends(stats, to, stored, quirks)
    {
        (bounds.min, bounds.max) = (min, max);
    }
    bounds
}

type Ends = (Option<ArrayRef>, Option<ArrayRef>);

fn ends(stats: &ColumnStatistics, to: &DataType, stored: Stored, quirks: Quirks) -> Option<Ends> {
    match to {
        DataType::Boolean => booleans(stats),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let s = stats.int_statistics.as_ref()?;
            Some((integer(s.minimum, to), integer(s.maximum, to)))
        }
        DataType::Float32 | DataType::Float64 => doubles(stats, to),
        DataType::Utf8 if quirks.string_statistics => strings(stats, stored),
        DataType::Date32 => {
            let s = stats.date_statistics.as_ref()?;
            let day = |day: Option<i32>| {
                let day = day.filter(|d| stored != Stored::HybridDate || *d >= REFORM)?;
                Some(Arc::new(Date32Array::from(vec![day])) as ArrayRef)
            };
            Some((day(s.minimum), day(s.maximum)))
        }
        DataType::Decimal128(precision, scale) if quirks.short_decimal_statistics || *precision > 18 => {
            let s = stats.decimal_statistics.as_ref()?;
            let value = |text: &Option<Vec<u8>>, up| {
                let unscaled = parse_decimal(as_text(text)?, *scale, up)?;
                let array = Decimal128Array::from(vec![unscaled]);
                Some(Arc::new(array.with_precision_and_scale(*precision, *scale).ok()?) as ArrayRef)
            };
            Some((value(&s.minimum, false), value(&s.maximum, true)))
        }
        DataType::Timestamp(unit, zone) if quirks.timestamp_statistics => {
            let s = stats.timestamp_statistics.as_ref()?;
            let zones = i128::from(ZONES) * 1_000_000;
            let more = if stored == Stored::WallClock { zones } else { SECOND };
            let low = instant(s.minimum_utc, s.minimum_nanos, 0).map(|ns| ns - more);
            let high = instant(s.maximum_utc, s.maximum_nanos, 999_999).map(|ns| ns + more);
            let array = |ns: Option<i128>| timestamp(ns?, *unit, zone.clone());
            Some((array(low), array(high)))
        }
        _ => None,
    }
}

fn booleans(stats: &ColumnStatistics) -> Option<Ends> {
    let trues = *stats.bucket_statistics.as_ref()?.count.first()?;
    let falses = stats.number_of_values?.checked_sub(trues)?;
    let bound = |value: bool| Some(Arc::new(BooleanArray::from(vec![value])) as ArrayRef);
    Some((bound(falses == 0), bound(trues != 0)))
}

fn integer(value: Option<i64>, to: &DataType) -> Option<ArrayRef> {
    let value = value?;
    Some(match to {
        DataType::Int8 => Arc::new(Int8Array::from(vec![i8::try_from(value).ok()?])),
        DataType::Int16 => Arc::new(Int16Array::from(vec![i16::try_from(value).ok()?])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![i32::try_from(value).ok()?])),
        _ => Arc::new(Int64Array::from(vec![value])),
    })
}

fn doubles(stats: &ColumnStatistics, to: &DataType) -> Option<Ends> {
    let s = stats.double_statistics.as_ref()?;
    if [s.minimum, s.maximum, s.sum].iter().any(|v| v.is_some_and(f64::is_nan)) {
        return None;
    }
    let bound = |value: Option<f64>, zero: f64| -> Option<ArrayRef> {
        let value = value.map(|v| if v == 0.0 { zero } else { v })?;
        if *to == DataType::Float64 {
            return Some(Arc::new(Float64Array::from(vec![value])));
        }
        // A float's statistics are doubles with float values; other values cannot be its bounds.
        let short = narrow(value)?;
        Some(Arc::new(Float32Array::from(vec![short])))
    };
    Some((bound(s.minimum, -0.0), bound(s.maximum, 0.0)))
}

/// The float that equals `value`.
fn narrow(value: f64) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "compared below")]
    let short = value as f32;
    (f64::from(short) == value).then_some(short)
}

/// The bytes if they are UTF-8; other bytes have another order and guarantee nothing.
fn as_text(stored: &Option<Vec<u8>>) -> Option<&str> {
    std::str::from_utf8(stored.as_deref()?).ok()
}

fn strings(stats: &ColumnStatistics, stored: Stored) -> Option<Ends> {
    let s = stats.string_statistics.as_ref()?;
    let low = as_text(&s.minimum).or(as_text(&s.lower_bound));
    let high = as_text(&s.maximum).or(as_text(&s.upper_bound));
    let bound = |text: String| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let Stored::Char(width) = stored else {
        return Some((low.map(|t| bound(t.to_owned())), high.map(|t| bound(t.to_owned()))));
    };
    let low = low.map(|t| bound(t.trim_end_matches(' ').to_owned()));
    let high = high.map(|t| {
        let blanks = width.saturating_sub(t.chars().count()).min(1 << 16);
        bound(format!("{t}{:blanks$}", ""))
    });
    Some((low, high))
}

/// Nanoseconds of the wall clock (of the instant, with a zone). The last six digits are stored plus 1.
pub(crate) fn instant(millis: Option<i64>, nanos: Option<i32>, default: i32) -> Option<i128> {
    let nanos = nanos.map_or(default, |n| n.saturating_sub(1));
    Some(i128::from(millis?) * 1_000_000 + i128::from(nanos))
}

fn timestamp(ns: i128, unit: TimeUnit, zone: Option<Arc<str>>) -> Option<ArrayRef> {
    if ns < YEAR_1900 * SECOND {
        return None;
    }
    match unit {
        TimeUnit::Nanosecond => {
            let value = i64::try_from(ns).ok()?;
            Some(Arc::new(TimestampNanosecondArray::from(vec![value]).with_timezone_opt(zone)))
        }
        TimeUnit::Microsecond => {
            let value = i64::try_from(ns.div_euclid(1000)).ok()?;
            Some(Arc::new(TimestampMicrosecondArray::from(vec![value]).with_timezone_opt(zone)))
        }
        TimeUnit::Millisecond | TimeUnit::Second => None,
    }
}

/// Parses a decimal at `scale`; further digits are rounded down or up.
pub(crate) fn parse_decimal(text: &str, scale: i8, up: bool) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let scale = usize::try_from(scale).ok()?;
    let mut value = 0i128;
    let mut push = |digit: char| {
        let digit = digit.to_digit(10)?;
        value = value.checked_mul(10)?.checked_add(digit.into())?;
        Some(())
    };
    whole.chars().try_for_each(&mut push)?;
    fraction.chars().chain(std::iter::repeat('0')).take(scale).try_for_each(&mut push)?;
    let mut rest = fraction.chars().skip(scale);
    let inexact = rest.clone().any(|c| c != '0');
    rest.all(|c| c.is_ascii_digit()).then_some(())?;
    let value = if negative { -value } else { value };
    Some(match (inexact, negative, up) {
        (true, false, true) => value.checked_add(1)?,
        (true, true, false) => value.checked_sub(1)?,
        _ => value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::proto::{
        BucketStatistics, DateStatistics, DecimalStatistics, DoubleStatistics, Footer, IntegerStatistics,
        PostScript, StringStatistics, TimestampStatistics,
    };
    use crate::prune::nanoseconds;
    use coldframe_core::{Op, Predicate};

    const JAVA: u32 = 0;

    fn quirks(writer: u32, version: u32) -> Quirks {
        let footer = Footer { writer: Some(writer), ..Footer::default() };
        Quirks::new(&footer, &PostScript { writer_version: Some(version), ..PostScript::default() }, None)
    }

    fn with(fill: impl FnOnce(&mut ColumnStatistics)) -> ColumnStatistics {
        let mut stats =
            ColumnStatistics { number_of_values: Some(9), has_null: Some(false), ..Default::default() };
        fill(&mut stats);
        stats
    }

    fn may(stats: &ColumnStatistics, to: &DataType, stored: Stored, op: Op, value: ArrayRef) -> bool {
        let column = bounds(stats, to, stored, quirks(1, 6));
        Predicate::compare("x", op, value).may_match(&|_| Some(column.clone()))
    }

    #[test]
    fn bounds_of_wall_clocks_hold_in_any_zone() {
        let stats = with(|s| {
            s.timestamp_statistics = Some(TimestampStatistics {
                minimum_utc: Some(1_600_000_000_000),
                maximum_utc: Some(1_600_000_000_000),
                ..TimestampStatistics::default()
            });
        });
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let at = |hours: i64| {
            let micros = (1_600_000_000 + hours * 3600) * 1_000_000;
            Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")) as ArrayRef
        };
        for (hours, may_be) in [(0, true), (-18, true), (14, true), (-48, false), (48, false)] {
            assert_eq!(may(&stats, &kind, Stored::WallClock, Op::Eq, at(hours)), may_be, "{hours}");
        }
        assert!(!may(&stats, &kind, Stored::Plain, Op::Eq, at(14)), "an instant of the file");
    }

    #[test]
    fn zeros_are_widened_and_nan_gives_no_bounds() {
        let zero = |f: f64| Arc::new(Float64Array::from(vec![f])) as ArrayRef;
        let stats = |minimum, maximum, sum| {
            with(|s| {
                s.double_statistics =
                    Some(DoubleStatistics { minimum: Some(minimum), maximum: Some(maximum), sum: Some(sum) });
            })
        };
        let f64s = &DataType::Float64;
        assert!(may(&stats(-0.0, -0.0, 0.0), f64s, Stored::Plain, Op::Eq, zero(0.0)));
        assert!(may(&stats(0.0, 0.0, 0.0), f64s, Stored::Plain, Op::Eq, zero(-0.0)));
        assert!(!may(&stats(1.0, 2.0, 3.0), f64s, Stored::Plain, Op::Gt, zero(2.0)));
        assert!(may(&stats(1.0, 2.0, f64::NAN), f64s, Stored::Plain, Op::Gt, zero(2.0)));
        let float = bounds(&stats(0.1, 0.5, 3.0), &DataType::Float32, Stored::Plain, quirks(1, 6));
        assert!(float.min.is_none() && float.max.is_none());
    }

    #[test]
    fn bounds_of_truncated_and_padded_strings_are_used() {
        let text = |t: &str| Arc::new(StringArray::from(vec![t])) as ArrayRef;
        let cut = with(|s| {
            s.string_statistics = Some(StringStatistics {
                lower_bound: Some("ab".into()),
                upper_bound: Some("x".into()),
                ..Default::default()
            });
        });
        let utf8 = &DataType::Utf8;
        assert!(!may(&cut, utf8, Stored::Plain, Op::Eq, text("aa")));
        assert!(may(&cut, utf8, Stored::Plain, Op::Eq, text("b")));
        assert!(!may(&cut, utf8, Stored::Plain, Op::Eq, text("y")));
        let short = with(|s| {
            s.string_statistics = Some(StringStatistics {
                minimum: Some("b ".into()),
                maximum: Some("b".into()),
                ..Default::default()
            });
        });
        assert!(may(&short, utf8, Stored::Char(4), Op::Eq, text("b   ")));
        assert!(may(&short, utf8, Stored::Char(4), Op::Eq, text("b")));
        assert!(!may(&short, utf8, Stored::Char(4), Op::Eq, text("c")));
        // The first Java writer compared strings in UTF-16 order.
        let unknown = bounds(&cut, utf8, Stored::Plain, quirks(JAVA, 0));
        assert!(unknown.min.is_none() && unknown.max.is_none());
    }

    #[test]
    fn decimals_are_rounded_outwards() {
        for (text, scale, down, up) in [
            ("1.5", 2, 150, 150),
            ("-0.005", 2, -1, 0),
            ("0.005", 2, 0, 1),
            ("12", 0, 12, 12),
            (".5", 1, 5, 5),
            ("-7.10", 1, -71, -71),
        ] {
            assert_eq!(parse_decimal(text, scale, false), Some(down), "{text}");
            assert_eq!(parse_decimal(text, scale, true), Some(up), "{text}");
        }
        for text in ["", "-", "1e5", "x", "1.2x", &"9".repeat(60)] {
            assert_eq!(parse_decimal(text, 1, true), None, "{text}");
        }
        let stats = with(|s| {
            s.decimal_statistics =
                Some(DecimalStatistics { minimum: Some("1".into()), maximum: Some("2".into()), sum: None });
        });
        let to = &DataType::Decimal128(10, 2);
        assert!(bounds(&stats, to, Stored::Plain, quirks(JAVA, 7)).max.is_some());
        assert!(bounds(&stats, to, Stored::Plain, quirks(JAVA, 6)).max.is_none());
        assert!(bounds(&stats, &DataType::Decimal128(20, 2), Stored::Plain, quirks(JAVA, 6)).max.is_some());
    }

    #[test]
    fn strings_that_are_not_text_guarantee_nothing() {
        let latin = with(|s| {
            s.string_statistics = Some(StringStatistics {
                minimum: Some(b"a".to_vec()),
                maximum: Some(b"\xfcber".to_vec()),
                ..Default::default()
            });
        });
        let unknown = bounds(&latin, &DataType::Utf8, Stored::Plain, quirks(1, 6));
        assert!(unknown.min.is_none() && unknown.max.is_none());
    }

    #[test]
    fn untrusted_dates_and_timestamps_give_no_bounds() {
        let days =
            with(|s| s.date_statistics = Some(DateStatistics { minimum: Some(-150_000), maximum: Some(5) }));
        let range = bounds(&days, &DataType::Date32, Stored::HybridDate, quirks(JAVA, 9));
        assert!(range.min.is_none() && range.max.is_some());
        assert!(bounds(&days, &DataType::Date32, Stored::Plain, quirks(JAVA, 9)).min.is_some());
        let time = with(|s| {
            s.timestamp_statistics = Some(TimestampStatistics {
                minimum_utc: Some(-500),
                maximum_utc: Some(2000),
                minimum_nanos: Some(1),
                maximum_nanos: Some(8),
                ..Default::default()
            });
        });
        let ns = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let range = bounds(&time, &ns, Stored::Plain, quirks(JAVA, 9));
        let value = |a: &Option<ArrayRef>| nanoseconds(a.as_ref().unwrap(), TimeUnit::Nanosecond, 0).unwrap();
        assert_eq!((value(&range.min), value(&range.max)), (-1_500_000_000, 3_000_000_007));
        assert!(bounds(&time, &ns, Stored::Plain, quirks(JAVA, 5)).min.is_none());
        let local = with(|s| {
            s.timestamp_statistics = Some(TimestampStatistics { minimum: Some(1), ..Default::default() });
        });
        assert!(bounds(&local, &ns, Stored::Plain, quirks(JAVA, 9)).min.is_none());
    }

    #[test]
    fn impossible_bounds_are_detected() {
        let cannot = |to: &DataType, fill: &dyn Fn(&mut ColumnStatistics)| {
            impossible(&with(fill), to, Stored::Plain, quirks(JAVA, 9))
        };
        let ints = |minimum, maximum| IntegerStatistics {
            minimum: Some(minimum),
            maximum: Some(maximum),
            sum: None,
        };
        assert!(cannot(&DataType::Int8, &|s| s.int_statistics = Some(ints(5, 196))));
        assert!(cannot(&DataType::Int64, &|s| s.int_statistics = Some(ints(2, 1))));
        assert!(!cannot(&DataType::Int8, &|s| s.int_statistics = Some(ints(-60, 100))));
        let days = |minimum, maximum| DateStatistics { minimum: Some(minimum), maximum: Some(maximum) };
        assert!(cannot(&DataType::Date32, &|s| s.date_statistics = Some(days(2, 1))));
        let decimals = |low: &str, high: &str| DecimalStatistics {
            minimum: Some(low.into()),
            maximum: Some(high.into()),
            sum: None,
        };
        let decimal = &DataType::Decimal128(4, 2);
        assert!(cannot(decimal, &|s| s.decimal_statistics = Some(decimals("1", "100.5"))));
        assert!(cannot(decimal, &|s| s.decimal_statistics = Some(decimals("1", "0.5"))));
        assert!(!cannot(decimal, &|s| s.decimal_statistics = Some(decimals("0.5", "99.99"))));
        // A writer stored UTC nanoseconds as milliseconds: the local bound is in 2020, the UTC bound in the
        // year 50 million.
        let time = |minimum, minimum_utc| TimestampStatistics {
            minimum: Some(minimum),
            minimum_utc: Some(minimum_utc),
            ..Default::default()
        };
        let ns = &DataType::Timestamp(TimeUnit::Nanosecond, None);
        let then = 1_577_836_800_000;
        assert!(cannot(ns, &|s| s.timestamp_statistics = Some(time(then, then * 1_000_000))));
        assert!(!cannot(ns, &|s| s.timestamp_statistics = Some(time(then, then - 3_600_000))));
    }

    #[test]
    fn absent_statistics_guarantee_nothing() {
        let none = ColumnStatistics::default();
        let unknown = bounds(&none, &DataType::Int64, Stored::Plain, quirks(JAVA, 9));
        assert!(unknown.has_null.is_none() && unknown.has_value.is_none() && unknown.min.is_none());
        let masked =
            ColumnStatistics { number_of_values: Some(0), has_null: Some(false), ..Default::default() };
        let unknown = bounds(&masked, &DataType::Int64, Stored::Plain, quirks(JAVA, 9));
        assert!(unknown.has_value.is_none() && unknown.has_null.is_none());
        let nulls =
            ColumnStatistics { number_of_values: Some(0), has_null: Some(true), ..Default::default() };
        assert_eq!(bounds(&nulls, &DataType::Int64, Stored::Plain, quirks(JAVA, 9)).has_value, Some(false));
    }

    #[test]
    fn counts_of_booleans_and_bounds_of_small_integers_are_used() {
        let array = |v: bool| Arc::new(BooleanArray::from(vec![v])) as ArrayRef;
        let trues = with(|s| s.bucket_statistics = Some(BucketStatistics { count: vec![9] }));
        assert!(!may(&trues, &DataType::Boolean, Stored::Plain, Op::Eq, array(false)));
        assert!(may(&trues, &DataType::Boolean, Stored::Plain, Op::Eq, array(true)));
        let wrong = with(|s| s.bucket_statistics = Some(BucketStatistics { count: vec![10] }));
        assert!(may(&wrong, &DataType::Boolean, Stored::Plain, Op::Eq, array(false)));
        let ints = with(|s| {
            s.int_statistics = Some(IntegerStatistics { minimum: Some(-3), maximum: Some(400), sum: None });
        });
        // A maximum outside the type did not come from the column's values, and neither did the minimum.
        let unknown = bounds(&ints, &DataType::Int8, Stored::Plain, quirks(JAVA, 9));
        assert!(unknown.max.is_none() && unknown.min.is_none() && unknown.has_null.is_none());
    }
}
