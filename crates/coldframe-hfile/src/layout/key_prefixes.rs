//! Binary search over sorted rows, using numbers that are adjacent in memory.
//!
//! ```text
//! rows   record-000017, record-000018, record-000042 ..
//! common record-0000
//! heads  "17", "18", "42" ..: the eight bytes after the common prefix, as numbers with the same order
//! ```
//!
//! A step of a search over the rows themselves touches one or two cache lines. A step over heads touches fewer, and the first steps
//! use only every sixteenth head.

/// The distinguishing bytes of a block's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPrefixes {
    /// The prefix that all rows share, as far as it fits here: a pointer would cost one more cache line.
    common: [u8; ROOM],
    common_len: usize,
    heads: Vec<u64>,
    /// Every [`STEP`]th head, starting with the first.
    samples: Vec<u64>,
}

const ROOM: usize = 40;
const STEP: usize = 16;

impl KeyPrefixes {
    /// The heads of rows in byte order; `None` if the rows are not sorted so.
    pub(crate) fn new<'r>(rows: impl DoubleEndedIterator<Item = &'r [u8]> + Clone) -> Option<Self> {
        let (first, last) = (rows.clone().next()?, rows.clone().next_back()?);
        let common_len = first.iter().zip(last).take(ROOM).take_while(|(a, b)| a == b).count();
        let prefix = first.get(..common_len)?;
        let mut common = [0; ROOM];
        common.get_mut(..common_len)?.copy_from_slice(prefix);
        let heads: Vec<u64> = rows.map(|row| row.strip_prefix(prefix).map(head_of)).collect::<Option<_>>()?;
        let samples = heads.iter().step_by(STEP).copied().collect();
        heads.is_sorted().then_some(Self { common, common_len, heads, samples })
    }

    /// The first head, starting at `from`, that is not below `wanted`.
    #[inline]
    fn first_of(&self, from: usize, wanted: u64) -> usize {
        // The first head that is not below `wanted` is in the group that ends with the first such sample.
        let end = self.samples.partition_point(|head| *head < wanted).saturating_mul(STEP);
        let start = end.saturating_sub(STEP).max(from);
        let end = end.min(self.heads.len()).max(start);
        start + self.heads.get(start..end).unwrap_or_default().partition_point(|head| *head < wanted)
    }

    /// The first row, starting at `from`, that is not before `row`; `at` returns rows.
    #[inline]
    pub(crate) fn lower_bound<'r>(&self, from: usize, row: &[u8], at: impl Fn(usize) -> &'r [u8]) -> usize {
        let common = self.common.get(..self.common_len).unwrap_or_default();
        let Some(rest) = row.strip_prefix(common) else {
            return if row < common { from } else { self.heads.len() };
        };
        let wanted = head_of(rest);
        let first = self.first_of(from, wanted);
        // Rows with equal heads are compared in full.
        let same = self.heads.get(first..).unwrap_or_default().iter().take_while(|h| **h == wanted).count();
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
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            for (to, from) in head.iter_mut().zip(bytes) {
                *to = *from;
            }
            u64::from_be_bytes(head)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_by_heads_ends_where_one_by_rows_does() {
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
        let heads = KeyPrefixes::new(rows.into_iter()).unwrap();
        assert_eq!(&heads.common[..heads.common_len], b"row-");
        for row in &wanted {
            for from in 0..=rows.len() {
                let expected = from + rows[from..].partition_point(|r| *r < row.as_slice());
                assert_eq!(heads.lower_bound(from, row, |i| rows[i]), expected, "{row:?} {from}");
            }
        }
        // Many rows, some of them equal, with a common prefix longer than fits.
        let many: Vec<Vec<u8>> =
            (0..500).map(|i| format!("{}{:04}", "x".repeat(38), i / 3 * 2).into_bytes()).collect();
        let long: Vec<Vec<u8>> = many.iter().map(|row| [&[b'y'; 50], row.as_slice()].concat()).collect();
        for rows in [many, long] {
            let heads = KeyPrefixes::new(rows.iter().map(Vec::as_slice)).unwrap();
            for wanted in rows.iter().flat_map(|row| [row.clone(), [row.as_slice(), b"!"].concat()]) {
                for from in [0, 1, 15, 16, 17, 250, 499, 500] {
                    let expected = from + rows[from..].partition_point(|r| *r < wanted);
                    assert_eq!(heads.lower_bound(from, &wanted, |i| rows[i].as_slice()), expected);
                }
            }
        }
        assert_eq!(KeyPrefixes::new([b"a".as_slice(), b"c", b"b"].into_iter()), None);
        assert_eq!(KeyPrefixes::new([b"ab".as_slice(), b"b", b"ac"].into_iter()), None);
        assert_eq!(KeyPrefixes::new(std::iter::empty()), None);
    }
}
