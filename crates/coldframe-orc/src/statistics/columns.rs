//! Returns the statistics of top-level columns in their types, to compare them with decoded values.
//!
//! Statistics that writers compute differently are left out: instants (in which zone?), bounds of texts
//! (truncated, or in another order), sums of floating point numbers (the order of addition), bounds that are
//! NaN. Without indexes, Java's writer writes zeros; its sums of decimals wrap at 64 bits, and one version
//! includes 0 in their bounds, so decimals have bounds only.

use coldframe_core::{Bound, ColumnSummary};

use crate::layout::proto::ColumnStatistics;
use crate::layout::quirks::Quirks;
use crate::layout::types::{Column, Kind};

/// The columns of one stripe or of the whole file; empty if the writer did not count the rows.
pub(crate) fn column_summaries<'a>(
    stats: impl Iterator<Item = (&'a Column, Option<ColumnStatistics>)>,
    quirks: Quirks,
) -> Vec<ColumnSummary> {
    let mut all = stats;
    let has_counts = all.next().and_then(|(_, root)| root).is_some_and(|root| {
        root.number_of_values.is_some_and(|n| n > 0) && root.collection_statistics.is_none()
    });
    if !has_counts && quirks.counts {
        return Vec::new();
    }
    // A path with a dot may belong to a nested field.
    let top = all.filter(|(column, _)| !column.path.is_empty() && !column.path.contains('.'));
    top.filter_map(|(column, stats)| Some(of_column(column, &stats?, quirks))).collect()
}

fn of_column(column: &Column, stats: &ColumnStatistics, quirks: Quirks) -> ColumnSummary {
    let (name, values) = (column.path.clone(), stats.number_of_values);
    let mut out = ColumnSummary { name, values, ..ColumnSummary::default() };
    if let Some(of) = &stats.int_statistics {
        out.sum = of.sum;
        (out.smallest, out.largest) = (of.minimum.map(Bound::Whole), of.maximum.map(Bound::Whole));
    }
    if let Some(of) = &stats.double_statistics {
        let end = |end: Option<f64>| end.filter(|end| !end.is_nan()).map(Bound::Float);
        (out.smallest, out.largest) = (end(of.minimum), end(of.maximum));
    }
    let is_short = column.precision <= 18 && !quirks.short_decimal_statistics;
    if let Some(of) = stats.decimal_statistics.as_ref().filter(|_| !is_short) {
        let end = |end: &Option<Vec<u8>>| decimal(std::str::from_utf8(end.as_deref()?).ok()?);
        (out.smallest, out.largest) = (end(&of.minimum), end(&of.maximum));
    }
    if let Some(of) = &stats.date_statistics {
        (out.smallest, out.largest) = (of.minimum.map(Bound::Days), of.maximum.map(Bound::Days));
    }
    out.trues = stats.bucket_statistics.as_ref().and_then(|of| of.count.first().copied());
    // The statistics of text that is declared as binary are the statistics of the text.
    let texts =
        stats.string_statistics.as_ref().filter(|_| column.kind != Kind::Binary).and_then(|of| of.sum);
    let blobs = stats.binary_statistics.as_ref().and_then(|of| of.sum);
    out.bytes = texts.or(blobs).and_then(|bytes| u64::try_from(bytes).ok());
    if !quirks.merged_statistics {
        (out.smallest, out.largest) = (None, None);
    }
    out
}

/// Parses a decimal: an optional sign, digits, and optionally a point and more digits.
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
    fn decimals_are_parsed_as_digits_with_a_point() {
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
