//! Collects statistics of a row group, and merges them into the statistics of the stripe and of the file.
//!
//! ORC specification v1, "Column Statistics". The statistics are the same as Java's, with these differences:
//! a sum of integers is left out only if the final sum overflows, not if an intermediate one does; NaN is no
//! bound, but is added to the sum, so that readers do not trust the bounds; children of lists and maps are
//! counted by list, not by batch.

use std::cmp::Ordering;

use crate::layout::proto;
use crate::layout::values::decimal_text;

/// Text is truncated after this many bytes.
const MAX_TEXT: usize = 1024;

/// The statistics of one column.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    /// Number of values that are not null.
    pub(super) values: u64,
    /// Whether there was a null.
    pub(super) has_null: bool,
    /// Number of bytes of the column's streams as stored.
    pub(super) bytes_on_disk: u64,
    /// The part that depends on its type.
    pub(super) of_type: OfType,
}

/// The part of the statistics that depends on the column's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OfType {
    /// struct, union
    Nothing,
    /// How many values are true.
    Boolean(u64),
    /// tinyint, smallint, int, bigint
    Integer(Range<i64>, i128),
    /// float, double
    Double(Range<f64>, f64),
    /// string, char, varchar
    Text(Range<Vec<u8>>, u64),
    /// The sum of the lengths.
    Binary(u64),
    /// Range and sum of the unscaled numbers, and the scale; the sum is `None` if it overflows.
    Decimal(Range<i128>, Option<i128>, i8),
    /// The range of the days.
    Date(Range<i64>),
    /// The range of the milliseconds, with the nanoseconds within them.
    Timestamp(Range<(i64, i32)>),
    /// list, map: of the numbers of children.
    Collection(Range<u64>, u64),
}

/// The least and the largest value.
pub(super) type Range<T> = Option<(T, T)>;

impl Statistics {
    /// The statistics of no values.
    pub(super) fn new(of_type: OfType) -> Self {
        Self { values: 0, has_null: false, bytes_on_disk: 0, of_type }
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        let of_type = match &self.of_type {
            OfType::Nothing => OfType::Nothing,
            OfType::Boolean(_) => OfType::Boolean(0),
            OfType::Integer(..) => OfType::Integer(None, 0),
            OfType::Double(..) => OfType::Double(None, 0.0),
            OfType::Text(..) => OfType::Text(None, 0),
            OfType::Binary(_) => OfType::Binary(0),
            OfType::Decimal(_, _, scale) => OfType::Decimal(None, Some(0), *scale),
            OfType::Date(_) => OfType::Date(None),
            OfType::Timestamp(_) => OfType::Timestamp(None),
            OfType::Collection(..) => OfType::Collection(None, 0),
        };
        *self = Self::new(of_type);
    }

    /// Adds the statistics of another part of the column.
    pub(super) fn add(&mut self, other: &Self) {
        self.values += other.values;
        self.has_null |= other.has_null;
        self.bytes_on_disk += other.bytes_on_disk;
        match (&mut self.of_type, &other.of_type) {
            (OfType::Boolean(a), OfType::Boolean(b)) | (OfType::Binary(a), OfType::Binary(b)) => *a += b,
            (OfType::Integer(a, sum), OfType::Integer(b, other)) => {
                widen(a, b.as_ref());
                *sum += other;
            }
            (OfType::Double(a, sum), OfType::Double(b, other)) => {
                widen(a, b.as_ref());
                *sum += other;
            }
            (OfType::Text(a, sum), OfType::Text(b, other)) => {
                widen(a, b.as_ref());
                *sum += other;
            }
            (OfType::Decimal(a, sum, _), OfType::Decimal(b, other, _)) => {
                widen(a, b.as_ref());
                *sum = sum.zip(*other).and_then(|(a, b)| decimal_sum(a, b));
            }
            (OfType::Date(a), OfType::Date(b)) => widen(a, b.as_ref()),
            (OfType::Timestamp(a), OfType::Timestamp(b)) => widen(a, b.as_ref()),
            (OfType::Collection(a, sum), OfType::Collection(b, other)) => {
                widen(a, b.as_ref());
                *sum += other;
            }
            _ => {}
        }
    }

    /// The statistics as the file stores them.
    pub(super) fn to_proto(&self) -> proto::ColumnStatistics {
        let mut to = proto::ColumnStatistics {
            number_of_values: Some(self.values),
            has_null: Some(self.has_null),
            bytes_on_disk: (self.bytes_on_disk > 0).then_some(self.bytes_on_disk),
            ..Default::default()
        };
        match &self.of_type {
            OfType::Nothing => {}
            OfType::Boolean(count) => {
                to.bucket_statistics = Some(proto::BucketStatistics { count: vec![*count] });
            }
            OfType::Integer(range, sum) => {
                to.int_statistics = Some(proto::IntegerStatistics {
                    minimum: range.map(|r| r.0),
                    maximum: range.map(|r| r.1),
                    sum: i64::try_from(*sum).ok(),
                });
            }
            OfType::Double(range, sum) => {
                // The outer zeros: readers that compare by bits, such as Java's, find zeros of either sign.
                let outer = |bound: f64, zero: f64| if bound == 0.0 { zero } else { bound };
                to.double_statistics = Some(proto::DoubleStatistics {
                    minimum: range.map(|r| outer(r.0, -0.0)),
                    maximum: range.map(|r| outer(r.1, 0.0)),
                    sum: Some(*sum),
                });
            }
            OfType::Text(range, sum) => to.string_statistics = Some(text(range.as_ref(), *sum)),
            OfType::Binary(sum) => {
                to.binary_statistics = Some(proto::BinaryStatistics { sum: Some(sum.cast_signed()) });
            }
            OfType::Decimal(range, sum, scale) => {
                let text = |v: i128| trimmed_decimal(v, *scale).into_bytes();
                to.decimal_statistics = Some(proto::DecimalStatistics {
                    minimum: range.map(|r| text(r.0)),
                    maximum: range.map(|r| text(r.1)),
                    sum: sum.map(text),
                });
            }
            OfType::Date(range) => {
                let day = |day: i64| i32::try_from(day).ok();
                to.date_statistics = Some(proto::DateStatistics {
                    minimum: range.and_then(|r| day(r.0)),
                    maximum: range.and_then(|r| day(r.1)),
                });
            }
            OfType::Timestamp(range) => to.timestamp_statistics = Some(timestamp(*range)),
            OfType::Collection(range, sum) => {
                to.collection_statistics = Some(proto::CollectionStatistics {
                    min_children: range.map(|r| r.0),
                    max_children: range.map(|r| r.1),
                    total_children: (*sum > 0).then_some(*sum),
                });
            }
        }
        to
    }
}

/// Nanoseconds are stored plus one, and omitted if they are 0 in the minimum or 999,999 in the maximum.
fn timestamp(range: Range<(i64, i32)>) -> proto::TimestampStatistics {
    proto::TimestampStatistics {
        minimum_utc: range.map(|r| r.0.0),
        maximum_utc: range.map(|r| r.1.0),
        minimum_nanos: range.map(|r| r.0.1).filter(|n| *n != 0).map(|n| n + 1),
        maximum_nanos: range.map(|r| r.1.1).filter(|n| *n != 999_999).map(|n| n + 1),
        ..Default::default()
    }
}

fn text(range: Option<&(Vec<u8>, Vec<u8>)>, sum: u64) -> proto::StringStatistics {
    let mut to = proto::StringStatistics::default();
    let Some((min, max)) = range else { return to };
    to.sum = Some(sum.cast_signed());
    match (std::str::from_utf8(min), cut(min)) {
        (Ok(min), None) => to.minimum = Some(min.into()),
        (_, front) => to.lower_bound = front.map(Vec::from),
    }
    match (std::str::from_utf8(max), cut(max)) {
        (Ok(max), None) => to.maximum = Some(max.into()),
        (_, front) => to.upper_bound = front.and_then(successor).map(String::into_bytes),
    }
    to
}

/// The start of a text that is too long for statistics; `None` for a shorter text.
fn cut(text: &[u8]) -> Option<&str> {
    let front = text.get(..MAX_TEXT).filter(|_| text.len() > MAX_TEXT)?;
    match std::str::from_utf8(front) {
        Ok(front) => Some(front),
        Err(e) => front.get(..e.valid_up_to()).and_then(|f| std::str::from_utf8(f).ok()),
    }
}

/// The smallest text, of at most as many characters, that is greater than all texts that begin with `front`.
fn successor(front: &str) -> Option<String> {
    let mut chars: Vec<char> = front.chars().collect();
    while let Some(last) = chars.pop() {
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// The text of a decimal without trailing zeros, as Hive writes it.
pub(super) fn trimmed_decimal(value: i128, scale: i8) -> String {
    let text = decimal_text(value, scale);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The sum, if it has no more than 38 digits.
pub(super) fn decimal_sum(a: i128, b: i128) -> Option<i128> {
    const LIMIT: u128 = 10u128.pow(38);
    a.checked_add(b).filter(|sum| sum.unsigned_abs() < LIMIT)
}

/// Extends a range to include another range.
pub(super) fn widen<T: PartialOrd + Clone>(range: &mut Range<T>, other: Option<&(T, T)>) {
    match (range.as_mut(), other) {
        (_, None) => {}
        (None, Some(other)) => *range = Some(other.clone()),
        (Some((min, max)), Some((other_min, other_max))) => {
            if other_min.partial_cmp(min) == Some(Ordering::Less) {
                min.clone_from(other_min);
            }
            if other_max.partial_cmp(max) == Some(Ordering::Greater) {
                max.clone_from(other_max);
            }
        }
    }
}

/// The range of the values that can be ordered.
pub(super) fn range_of<T: PartialOrd + Copy>(values: &[T]) -> Range<T> {
    let (first, rest) = values.split_first()?;
    let range = rest.iter().fold((*first, *first), |(min, max), v| {
        (if *v < min { *v } else { min }, if *v > max { *v } else { max })
    });
    Some(range)
}

/// The sum of integers with the range `range`.
pub(super) fn sum_of(values: &[i64], range: Range<i64>) -> i128 {
    const SMALL: u64 = 1 << 40;
    let small = range.is_none_or(|(min, max)| min.unsigned_abs().max(max.unsigned_abs()) < SMALL);
    if small && values.len() < 1 << 22 {
        return values.iter().sum::<i64>().into();
    }
    values.iter().map(|v| i128::from(*v)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_between_characters() {
        let long = "\u{e4}".repeat(600) + "x";
        let max = "\u{10ffff}".repeat(300);
        let mut all = Statistics::new(OfType::Text(None, 0));
        all.add(&Statistics {
            values: 2,
            ..Statistics::new(OfType::Text(Some((long.clone().into(), max.into())), 9))
        });
        let stored = all.to_proto().string_statistics.unwrap();
        assert_eq!((stored.minimum, stored.maximum, stored.sum), (None, None, Some(9)));
        assert_eq!(stored.lower_bound.unwrap(), "\u{e4}".repeat(512).into_bytes());
        assert_eq!(stored.upper_bound, None); // no text is greater
        assert_eq!(successor("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(successor("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(cut(&long.as_bytes()[..1024]), None);
    }

    #[test]
    fn bounds_of_zero_are_the_outer_zeros() {
        let bounds = |min: f64, max: f64| {
            let all = Statistics::new(OfType::Double(Some((min, max)), 0.0));
            let stored = all.to_proto().double_statistics.unwrap();
            [stored.minimum, stored.maximum].map(|bound| bound.unwrap().to_bits())
        };
        let bits = |min: f64, max: f64| [min, max].map(f64::to_bits);
        assert_eq!(bounds(0.0, -0.0), bits(-0.0, 0.0));
        assert_eq!(bounds(0.0, 5.0), bits(-0.0, 5.0));
        assert_eq!(bounds(-5.0, -0.0), bits(-5.0, 0.0));
    }

    #[test]
    fn sums_out_of_range_are_left_out() {
        let of = |values: &[i64]| {
            let range = range_of(values);
            Statistics::new(OfType::Integer(range, sum_of(values, range)))
        };
        let mut all = of(&[i64::MAX, 1]);
        assert_eq!(all.to_proto().int_statistics.unwrap().sum, None);
        all.add(&of(&[-2]));
        let stored = all.to_proto().int_statistics.unwrap();
        assert_eq!(
            (stored.minimum, stored.maximum, stored.sum),
            (Some(-2), Some(i64::MAX), Some(i64::MAX - 1))
        );
        assert_eq!(decimal_sum(10i128.pow(38) - 1, 1), None);
    }

    #[test]
    fn nanoseconds_are_stored_plus_1() {
        let stored = timestamp(Some(((-1, 0), (5, 999_999))));
        assert_eq!((stored.minimum_utc, stored.maximum_utc), (Some(-1), Some(5)));
        assert_eq!((stored.minimum_nanos, stored.maximum_nanos), (None, None));
        let stored = timestamp(Some(((-1, 1), (5, 0))));
        assert_eq!((stored.minimum_nanos, stored.maximum_nanos), (Some(2), Some(1)));
    }

    #[test]
    fn decimals_are_printed_as_hive_does() {
        for (value, scale, text) in [(0, 2, "0"), (12_340, 3, "12.34"), (-100, 2, "-1"), (100, 0, "100")] {
            assert_eq!(trimmed_decimal(value, scale), text);
        }
    }
}
