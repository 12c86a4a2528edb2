//! The lengths of keys, values and rows: the figures that HBase's `hfile -s` prints, for all cells, in one
//! pass.
//!
//! ```text
//! key_bytes     of each cell: row, family, qualifier, timestamp and type as a key holds them, or the key of a pair
//! value_bytes   of each cell
//! row_bytes     of each row: its cells with the eight bytes of their lengths
//! row_cells     of each row: how many cells it has
//! ```
//!
//! Counts, extremes, means and deviations are exact. Percentiles below [`EXACT`] are exact; larger ones
//! are rounded down by less than 0.1 %, so that memory does not grow with the file.

use std::sync::Arc;

use coldframe_core::{Result, Value};

use crate::layout::cell::KEY_OVERHEAD;
use crate::open::RawFile;
use crate::options::View;
use crate::scan::cells::CellReader;

/// Each length below this has a bucket of its own.
const EXACT: u64 = 2048;
/// The number of buckets from one power of two to the next, for lengths from `EXACT` on.
const STEPS: u64 = 1024;
const EXACT_BITS: u32 = EXACT.trailing_zeros();
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// The number of bytes before a cell's key: two integers, the lengths of key and value.
const CELL_OVERHEAD: u64 = 8;
const PERCENTILES: [(&str, f64); 6] =
    [("median", 0.5), ("p75", 0.75), ("p95", 0.95), ("p98", 0.98), ("p99", 0.99), ("p999", 0.999)];
/// The number of cells between two calls of `tick`.
const TICK: u64 = 1 << 16;

/// How often each length occurs.
#[derive(Debug, Default)]
struct Lengths {
    counts: Vec<u64>,
    count: u64,
    min: Option<u64>,
    max: u64,
    sum: u128,
    squares: u128,
}

/// The bucket that counts a length.
fn bucket(length: u64) -> usize {
    if length < EXACT {
        return usize::try_from(length).unwrap_or(0);
    }
    let power = length.ilog2();
    let step = (length >> (power - STEP_BITS)) - STEPS;
    usize::try_from(EXACT + u64::from(power - EXACT_BITS) * STEPS + step).unwrap_or(0)
}

/// The smallest length of a bucket.
fn smallest(bucket: u64) -> u64 {
    if bucket < EXACT {
        return bucket;
    }
    let (power, step) = ((bucket - EXACT) / STEPS, (bucket - EXACT) % STEPS);
    let shift = u32::try_from(power).unwrap_or(0) + EXACT_BITS - STEP_BITS;
    (STEPS + step) << shift
}

impl Lengths {
    fn add(&mut self, length: u64) {
        let bucket = bucket(length);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.min = Some(self.min.map_or(length, |min| min.min(length)));
        self.max = self.max.max(length);
        self.sum += u128::from(length);
        self.squares = self.squares.saturating_add(u128::from(length) * u128::from(length));
    }

    /// The length at the quantile `share`.
    fn at(&self, share: f64) -> u64 {
        let rank = (share * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in (0u64..).zip(&self.counts) {
            seen += count;
            if seen as f64 >= rank {
                return smallest(bucket).max(self.min.unwrap_or(0));
            }
        }
        self.max
    }

    /// A count for each power of two, with the range of lengths that it covers.
    fn histogram(&self) -> Value {
        let mut bars: Vec<(u64, u64, u64)> = Vec::new();
        for (bucket, count) in (0u64..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            let length = smallest(bucket);
            let from = if length == 0 { 0 } else { 1u64 << length.ilog2() };
            let to = if length == 0 { 0 } else { from + (from - 1) };
            match bars.last_mut() {
                Some((first, _, total)) if *first == from => *total += count,
                _ => bars.push((from, to, *count)),
            }
        }
        let bar = |(from, to, count): (u64, u64, u64)| {
            Value::map([("from", Value::from(from)), ("to", to.into()), ("count", count.into())])
        };
        Value::List(bars.into_iter().map(bar).collect())
    }

    fn value(&self) -> Value {
        let count = self.count as f64;
        let mean = (self.count > 0).then(|| self.sum as f64 / count);
        // The sample standard deviation, as in HBase's tool.
        let deviation = mean.filter(|_| self.count > 1).map(|mean| {
            let spread = self.squares as f64 - self.sum as f64 * mean;
            (spread / (count - 1.0)).max(0.0).sqrt()
        });
        let mut fields = vec![
            ("count", Value::from(self.count)),
            ("min", self.min.into()),
            ("max", self.min.map(|_| self.max).into()),
            ("mean", mean.into()),
            ("stddev", deviation.into()),
        ];
        let percentile = |share: f64| self.min.map(|_| self.at(share)).into();
        fields.extend(PERCENTILES.map(|(name, share)| (name, percentile(share))));
        fields.push(("histogram", self.histogram()));
        Value::map(fields)
    }
}

/// The lengths of all cells and rows of a file.
#[derive(Debug, Default)]
struct Measured {
    keys: Lengths,
    values: Lengths,
    row_bytes: Lengths,
    row_cells: Lengths,
    row: Vec<u8>,
    bytes: u64,
    cells: u64,
    biggest: Option<(u64, Vec<u8>)>,
}

impl Measured {
    fn add(&mut self, row: &[u8], key: u64, value: u64, tags: u64) {
        if self.cells > 0 && self.row != row {
            self.end_row();
        }
        if self.cells == 0 {
            self.row.clear();
            self.row.extend_from_slice(row);
        }
        self.keys.add(key);
        self.values.add(value);
        self.cells += 1;
        self.bytes = self.bytes.saturating_add(CELL_OVERHEAD + key + value + tags);
    }

    fn end_row(&mut self) {
        if self.cells == 0 {
            return;
        }
        self.row_bytes.add(self.bytes);
        self.row_cells.add(self.cells);
        if self.biggest.as_ref().is_none_or(|(bytes, _)| self.bytes > *bytes) {
            self.biggest = Some((self.bytes, self.row.clone()));
        }
        (self.bytes, self.cells) = (0, 0);
    }

    fn value(mut self) -> Value {
        self.end_row();
        let biggest = self.biggest.map(|(_, row)| Value::text_or_bytes(&row));
        Value::map([
            ("key_bytes", self.keys.value()),
            ("value_bytes", self.values.value()),
            ("row_bytes", self.row_bytes.value()),
            ("row_cells", self.row_cells.value()),
            ("biggest_row", biggest.unwrap_or(Value::Null)),
        ])
    }
}

/// Measures a file, reading it block by block.
pub(crate) fn lengths(
    file: &Arc<RawFile>,
    view: View,
    tick: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Value> {
    file.check()?;
    let with_tags = file.context.layout.tags;
    let mut reader = CellReader::new(file.clone());
    let mut measured = Measured::default();
    let mut cells = 0u64;
    while let Some(cell) = reader.next()? {
        let key = match view {
            View::KeyValue => cell.row.len(),
            View::Cells => KEY_OVERHEAD + cell.row.len() + cell.family.len() + cell.qualifier.len(),
        };
        // HBase measures cells as they are in memory, where a cell without tags does not store the length of
        // its tags.
        let tags = if with_tags && !cell.tags.is_empty() { 2 + cell.tags.len() } else { 0 };
        measured.add(cell.row, key as u64, cell.value.len() as u64, tags as u64);
        cells += 1;
        if cells.is_multiple_of(TICK) {
            tick(cells)?;
        }
    }
    tick(cells)?;
    Ok(measured.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_up_to_a_length_and_then_close() {
        for length in (0..5000).chain([65_535, 65_536, 1 << 31, u64::MAX >> 1, u64::MAX]) {
            let start = smallest(bucket(length) as u64);
            assert!(start <= length && (length - start) as f64 <= length as f64 / 1000.0, "{length} {start}");
            assert!(length >= EXACT || start == length);
        }
    }

    #[test]
    fn statistics_of_lengths_are_as_defined() {
        let mut lengths = Lengths::default();
        (1..=100).for_each(|length| lengths.add(length));
        let value = lengths.value();
        let get = |name: &str| value.get(name).unwrap().clone();
        assert_eq!((get("min"), get("max"), get("median")), (Value::Int(1), Value::Int(100), Value::Int(50)));
        assert_eq!(
            (get("p95"), get("p999"), get("mean")),
            (Value::Int(95), Value::Int(100), Value::Float(50.5))
        );
        let Value::Float(deviation) = get("stddev") else { panic!() };
        assert!((deviation - 29.011).abs() < 0.001);
        let Value::List(bars) = get("histogram") else { panic!() };
        assert_eq!(bars.len(), 7);
        assert_eq!(bars[6].get("count"), Some(&Value::Int(37)));
        assert_eq!(Lengths::default().value().get("min"), Some(&Value::Null));
    }

    #[test]
    fn each_row_is_measured() {
        let mut measured = Measured::default();
        for (row, value) in [("a", 1), ("a", 2), ("b", 30), ("c", 4)] {
            measured.add(row.as_bytes(), 10, value, 0);
        }
        let value = measured.value();
        let of = |what: &str, name: &str| value.get(what).unwrap().get(name).unwrap().clone();
        assert_eq!(of("row_cells", "count"), Value::Int(3));
        assert_eq!((of("row_cells", "max"), of("row_bytes", "max")), (Value::Int(2), Value::Int(48)));
        assert_eq!(value.get("biggest_row"), Some(&Value::Str("b".to_owned())));
    }
}
