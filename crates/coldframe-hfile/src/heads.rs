//! Binary search over sorted rows by numbers that stand side by side.
//!
//! ```text
//! rows   record-000017, record-000018, record-000042 ..
//! common record-0000
//! heads  "17", "18", "42" ..: the eight bytes behind what all have in common, as numbers that sort like them
//! ```
//!
//! A step of a search over the rows themselves is a line of memory or two, one over these mostly none.

/// What tells rows apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    /// What all rows begin with.
    common: Vec<u8>,
    heads: Vec<u64>,
}

impl Heads {
    /// Those of rows in the order of their bytes; `None` if they are not.
    pub(crate) fn new<'r>(rows: impl DoubleEndedIterator<Item = &'r [u8]> + Clone) -> Option<Self> {
        let (first, last) = (rows.clone().next()?, rows.clone().next_back()?);
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let common = first.get(..common)?;
        let heads: Vec<u64> = rows.map(|row| row.strip_prefix(common).map(head_of)).collect::<Option<_>>()?;
        heads.is_sorted().then(|| Self { common: common.to_vec(), heads })
    }

    /// The first of the rows from `from` on that is not before `row`; `at` gives them.
    #[inline]
    pub(crate) fn lower_bound<'r>(&self, from: usize, row: &[u8], at: impl Fn(usize) -> &'r [u8]) -> usize {
        let Some(rest) = row.strip_prefix(self.common.as_slice()) else {
            return if row < self.common.as_slice() { from } else { self.heads.len() };
        };
        let wanted = head_of(rest);
        let behind = self.heads.get(from..).unwrap_or_default();
        let first = behind.partition_point(|head| *head < wanted);
        // Rows with the same head are told apart by themselves.
        let same = behind.get(first..).unwrap_or_default().iter().take_while(|head| **head == wanted).count();
        let (mut low, mut high) = (from + first, from + first + same);
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

/// The first eight bytes as a number that sorts like them; zeros for those that are missing.
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
        let heads = Heads::new(rows.into_iter()).unwrap();
        assert_eq!(heads.common, b"row-");
        for row in &wanted {
            for from in 0..=rows.len() {
                let expected = from + rows[from..].partition_point(|r| *r < row.as_slice());
                assert_eq!(heads.lower_bound(from, row, |i| rows[i]), expected, "{row:?} {from}");
            }
        }
        assert_eq!(Heads::new([b"a".as_slice(), b"c", b"b"].into_iter()), None);
        assert_eq!(Heads::new([b"ab".as_slice(), b"b", b"ac"].into_iter()), None);
        assert_eq!(Heads::new(std::iter::empty()), None);
    }
}
