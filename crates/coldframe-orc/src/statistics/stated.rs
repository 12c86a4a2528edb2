//! What the statistics of a file state about its top-level columns, to be compared with decoded values.
//!
//! Statistics that writers compute differently are left out: instants (in which zone?), bounds of texts (cut, or in another order),
//! sums of floating point numbers (the order of addition), bounds that are NaN. Java's writer states nothing without indexes, but says so by
//! zeros; its sums of decimals wrap at 64 bits, and one version has 0 among their ends, which is why these are bounds only.

use coldframe_core::{Bound, ColumnSummary};

use crate::layout::proto::ColumnStatistics;
use crate::layout::types::{Column, Kind};

/// The columns of one stripe or of the whole file; nothing where the rows as a whole were not counted.
pub(crate) fn columns<'a>(
    stats: impl Iterator<Item = (&'a Column, Option<ColumnStatistics>)>,
) -> Vec<ColumnSummary> {
    let mut all = stats;
    let says_something = all.next().and_then(|(_, root)| root).is_some_and(|root| {
        root.number_of_values.is_some_and(|n| n > 0) && root.collection_statistics.is_none()
    });
    if !says_something {
        return Vec::new();
    }
    // With a dot it may be the path of a field.
    let top = all.filter(|(column, _)| !column.path.is_empty() && !column.path.contains('.'));
    top.filter_map(|(column, stats)| Some(of_column(column, &stats?))).collect()
}

fn of_column(column: &Column, stats: &ColumnStatistics) -> ColumnSummary {
    let (name, values) = (column.path.clone(), stats.number_of_values);
    let mut stated = ColumnSummary { name, values, ..ColumnSummary::default() };
    if let Some(of) = &stats.int_statistics {
        stated.sum = of.sum;
        (stated.smallest, stated.largest) = (of.minimum.map(Bound::Whole), of.maximum.map(Bound::Whole));
    }
    if let Some(of) = &stats.double_statistics {
        let end = |end: Option<f64>| end.filter(|end| !end.is_nan()).map(Bound::Float);
        (stated.smallest, stated.largest) = (end(of.minimum), end(of.maximum));
    }
    if let Some(of) = &stats.decimal_statistics {
        let end = |end: &Option<Vec<u8>>| decimal(std::str::from_utf8(end.as_deref()?).ok()?);
        (stated.smallest, stated.largest) = (end(&of.minimum), end(&of.maximum));
    }
    if let Some(of) = &stats.date_statistics {
        (stated.smallest, stated.largest) = (of.minimum.map(Bound::Days), of.maximum.map(Bound::Days));
    }
    stated.trues = stats.bucket_statistics.as_ref().and_then(|of| of.count.first().copied());
    // Those of text that is declared as binary are of the text.
    let texts =
        stats.string_statistics.as_ref().filter(|_| column.kind != Kind::Binary).and_then(|of| of.sum);
    let blobs = stats.binary_statistics.as_ref().and_then(|of| of.sum);
    stated.bytes = texts.or(blobs).and_then(|bytes| u64::try_from(bytes).ok());
    stated
}

/// A decimal as it is written: an optional sign, digits, and perhaps more behind a point.
fn decimal(text: &str) -> Option<Bound> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = u8::try_from(fraction.len()).ok()?;
    format!("{whole}{fraction}").parse().ok().map(|digits| Bound::Decimal(digits, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_digits_with_a_point() {
        for (text, expected) in [
            ("1.50", Some((150, 2))),
            ("-7.25", Some((-725, 2))),
            ("3", Some((3, 0))),
            ("-0.5", Some((-5, 1))),
            ("1e3", None),
            ("1.-5", None),
            ("", None),
        ] {
            assert_eq!(
                decimal(text),
                expected.map(|(digits, scale)| Bound::Decimal(digits, scale)),
                "{text}"
            );
        }
    }
}
