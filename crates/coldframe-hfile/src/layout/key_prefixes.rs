//! Binary search over sorted rows, by numbers that lie side by side in memory.
//!
//! ```text
//! rows     record-000017, record-000018, record-000042 ..
//! common   record-0000
//! prefixes "17", "18", "42" ..: the eight bytes after the common part, as numbers with the same order
//! ```
//!
//! A search step over the rows themselves touches one or two cache lines. A step over prefixes touches fewer
//! cache lines, and the first steps use only every sixteenth prefix.

/// For each row, the first eight bytes after the part that all rows share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPrefixes {
    /// The first bytes that all rows have in common, as many as fit. These bytes are stored here, since
    /// following a pointer would cost another cache line.
    common: [u8; ROOM],
    common_len: usize,
    prefixes: Vec<u64>,
    /// One prefix in [`STEP`], starting with the first prefix.
    samples: Vec<u64>,
}

const ROOM: usize = 40;
const STEP: usize = 16;

impl KeyPrefixes {
    /// The prefixes of rows; `None` if the rows are not in byte order.
    pub(crate) fn new<'r>(rows: impl DoubleEndedIterator<Item = &'r [u8]> + Clone) -> Option<Self> {
        let (first, last) = (rows.clone().next()?, rows.clone().next_back()?);
        let common_len = first.iter().zip(last).take(ROOM).take_while(|(a, b)| a == b).count();
        let shared = first.get(..common_len)?;
        let mut common = [0; ROOM];
        common.get_mut(..common_len)?.copy_from_slice(shared);
        let prefixes: Vec<u64> =
            rows.map(|row| row.strip_prefix(shared).map(prefix_of)).collect::<Option<_>>()?;
        let samples = prefixes.iter().step_by(STEP).copied().collect();
        prefixes.is_sorted().then_some(Self { common, common_len, prefixes, samples })
    }

    /// The index of the first prefix, starting at `from`, that is at least `wanted`.
    #[inline]
    fn first_of(&self, from: usize, wanted: u64) -> usize {
        // The prefix is in the group that ends with the first sample that is at least `wanted`.
        let end = self.samples.partition_point(|prefix| *prefix < wanted).saturating_mul(STEP);
        let start = end.saturating_sub(STEP).max(from);
        let end = end.min(self.prefixes.len()).max(start);
        start + self.prefixes.get(start..end).unwrap_or_default().partition_point(|prefix| *prefix < wanted)
    }

    /// The first row, starting at `from`, that is not before `row`. `at` returns the row at an index.
    #[inline]
    pub(crate) fn lower_bound<'r>(&self, from: usize, row: &[u8], at: impl Fn(usize) -> &'r [u8]) -> usize {
        let common = self.common.get(..self.common_len).unwrap_or_default();
        let Some(rest) = row.strip_prefix(common) else {
            return if row < common { from } else { self.prefixes.len() };
        };
        let wanted = prefix_of(rest);
        let first = self.first_of(from, wanted);
        // Rows with equal prefixes are compared in full.
        let same =
            self.prefixes.get(first..).unwrap_or_default().iter().take_while(|h| **h == wanted).count();
        let (mut low, mut high) = (first, first + same);
        while low < high {
            let middle = low + (high - low) / 2;
            if at(middle) < row {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The first eight bytes, zero-padded, as a number with the same order.
#[inline]
fn prefix_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(prefix) => u64::from_be_bytes(*prefix),
        None => {
            let mut prefix = [0; 8];
            for (to, from) in prefix.iter_mut().zip(bytes) {
                *to = *from;
            }
            u64::from_be_bytes(prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_by_prefixes_equals_a_search_by_rows() {
        let rows: [&[u8]; 12] = [
            b"row-",
            b"row-\0",
            b"row-\0\0",
            b"row-a",
            b"row-a",
            b"row-a\0",
            b"row-abcdefgh",
            b"row-abcdefgh\0",
            b"row-abcdefghi",
            b"row-abcdefghi",
            b"row-b",
            b"row-\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ];
        let mut wanted: Vec<Vec<u8>> = vec![vec![], b"ro".to_vec(), b"rox".to_vec(), b"row.".to_vec()];
        for row in rows {
            wanted.extend([row.to_vec(), [row, b"\0"].concat(), [row, b"z"].concat()]);
            wanted.push(row[..row.len() - 1].to_vec());
        }
        let prefixes = KeyPrefixes::new(rows.into_iter()).unwrap();
        assert_eq!(&prefixes.common[..prefixes.common_len], b"row-");
        for row in &wanted {
            for from in 0..=rows.len() {
                let expected = from + rows[from..].partition_point(|r| *r < row.as_slice());
                assert_eq!(prefixes.lower_bound(from, row, |i| rows[i]), expected, "{row:?} {from}");
            }
        }
        // Many rows, some of them equal, whose common part is longer than `common` can hold.
        let many: Vec<Vec<u8>> =
            (0..500).map(|i| format!("{}{:04}", "x".repeat(38), i / 3 * 2).into_bytes()).collect();
        let long: Vec<Vec<u8>> = many.iter().map(|row| [&[b'y'; 50], row.as_slice()].concat()).collect();
        for rows in [many, long] {
            let prefixes = KeyPrefixes::new(rows.iter().map(Vec::as_slice)).unwrap();
            for wanted in rows.iter().flat_map(|row| [row.clone(), [row.as_slice(), b"!"].concat()]) {
                for from in [0, 1, 15, 16, 17, 250, 499, 500] {
                    let expected = from + rows[from..].partition_point(|r| *r < wanted);
                    assert_eq!(prefixes.lower_bound(from, &wanted, |i| rows[i].as_slice()), expected);
                }
            }
        }
        assert_eq!(KeyPrefixes::new([b"a".as_slice(), b"c", b"b"].into_iter()), None);
        assert_eq!(KeyPrefixes::new([b"ab".as_slice(), b"b", b"ac"].into_iter()), None);
        assert_eq!(KeyPrefixes::new(std::iter::empty()), None);
    }
}
