//! The order of rows: bytewise, except in HBase's own table `hbase:meta`.
//!
//! ```text
//! row of hbase:meta | table | "," | start key | "," | region id |        part by part, each bytewise
//! ```
//!
//! HBase: `CellComparatorImpl`, `MetaCellComparator`.

use std::cmp::Ordering;

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RowOrder {
    /// By the rows' bytes, unsigned.
    #[default]
    Bytes,
    /// The order of `hbase:meta`.
    Meta,
}

impl RowOrder {
    /// The order of the comparator class that a trailer names.
    pub fn of_comparator(class: &str) -> Self {
        if class.contains("Meta") { Self::Meta } else { Self::Bytes }
    }

    /// Compares two rows.
    #[inline]
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytes => bytes(a, b),
            Self::Meta => meta(a, b),
        }
    }
}

/// Compares bytewise. Rows are short: a few comparisons of eight bytes each are faster than a call of the
/// library's comparison.
#[inline]
fn bytes(a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (a, b);
    for _ in 0..4 {
        let (Some((x, a_rest)), Some((y, b_rest))) = (a.split_first_chunk(), b.split_first_chunk()) else {
            break;
        };
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
        (a, b) = (a_rest, b_rest);
    }
    match a.len() {
        len if len != b.len() => a.cmp(b),
        0 => Ordering::Equal,
        1 => ends::<1>(a, b),
        2..=3 => ends::<2>(a, b),
        4..=7 => ends::<4>(a, b),
        _ => a.cmp(b),
    }
}

/// Compares two strings of the same length, `N` to `2 * N` bytes: first the first `N` bytes, then the last
/// `N`.
#[inline(always)]
fn ends<const N: usize>(a: &[u8], b: &[u8]) -> Ordering {
    a.first_chunk::<N>().cmp(&b.first_chunk()).then_with(|| a.last_chunk::<N>().cmp(&b.last_chunk()))
}

fn meta(a: &[u8], b: &[u8]) -> Ordering {
    let first = |row: &[u8]| row.iter().position(|c| *c == b',');
    let last = |row: &[u8]| row.iter().rposition(|c| *c == b',');
    compare_parts(a, b, first, |a, b| compare_parts(a, b, last, <[u8]>::cmp))
}

/// `find` returns the position of a delimiter. Compares the parts before the delimiter, then whether there is
/// a delimiter, then the parts after it.
fn compare_parts(
    a: &[u8],
    b: &[u8],
    find: impl Fn(&[u8]) -> Option<usize>,
    behind: impl FnOnce(&[u8], &[u8]) -> Ordering,
) -> Ordering {
    let split = |row: &'_ [u8]| find(row).and_then(|at| Some((at, row.len().checked_sub(at + 1)?)));
    let (a_at, b_at) = (split(a), split(b));
    let front = |row: &'_ [u8], at: Option<(usize, usize)>| at.map_or(row.len(), |(at, _)| at);
    let (a_front, b_front) = (front(a, a_at), front(b, b_at));
    let fronts = a.get(..a_front).cmp(&b.get(..b_front));
    fronts.then(a_at.is_some().cmp(&b_at.is_some())).then_with(|| match (a_at, b_at) {
        (Some((i, _)), Some((j, _))) => {
            behind(a.get(i + 1..).unwrap_or_default(), b.get(j + 1..).unwrap_or_default())
        }
        _ => Ordering::Equal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_lengths_are_ordered_by_bytes() {
        for len in 0..70_usize {
            let row: Vec<u8> = (0..70).map(|i| 100 + i % 9).take(len).collect();
            assert_eq!(RowOrder::Bytes.compare(&row, &row.clone()), Ordering::Equal);
            for other in (0..len).map(|n| row[..n].to_vec()) {
                assert_eq!(RowOrder::Bytes.compare(&row, &other), row.cmp(&other));
            }
            for (at, by) in (0..len).flat_map(|at| [(at, 0x55), (at, 0xff)]) {
                let mut other = row.clone();
                other[at] ^= by;
                assert_eq!(RowOrder::Bytes.compare(&row, &other), row.cmp(&other));
                assert_eq!(RowOrder::Bytes.compare(&other, &row), other.cmp(&row));
            }
        }
    }

    #[test]
    fn rows_of_meta_are_compared_by_their_parts() {
        let sorted: [&[u8]; 8] =
            [b"a", b"a,,1", b"a,,2", b"a,k,1", b"a,k,x,0", b"a,k,x,1", b"a#b,,0", b"b,,0"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(
                    RowOrder::Meta.compare(a, b),
                    i.cmp(&j),
                    "{} {}",
                    a.escape_ascii(),
                    b.escape_ascii()
                );
            }
        }
        assert_eq!(RowOrder::Bytes.compare(b"a#b,,0", b"a,k"), Ordering::Less);
    }
}
