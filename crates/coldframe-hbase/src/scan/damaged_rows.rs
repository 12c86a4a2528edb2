//! Rows with lost cells. If cells of a row are lost, its cells in other files may be outdated or deleted.
//!
//! ```text
//! blocks     | a .. c | c .. f |    | k .. m |        each cannot be read
//! damaged    | a ........... f |    | k .. m |        adjacent blocks become one range, as all blocks of a file may be damaged
//! ```

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use coldframe_hfile::{Cell, RowOrder};

use super::feed::Piece;

/// Rows of a family that may have lost cells.
#[derive(Clone, Debug)]
pub(crate) struct DamagedRows {
    pub(crate) family: usize,
    pub(crate) lower: Vec<u8>,
    /// The last row if `through`, otherwise the end of the range (excluded).
    pub(crate) upper: Option<Vec<u8>>,
    pub(crate) through: bool,
    /// Whether a whole file is lost. It is then unknown which files the lost file replaced, so no view shows
    /// cells of these rows.
    pub(crate) whole_file: bool,
    /// The timestamps that the lost cells may have; `None` if they are unknown.
    pub(crate) times: Option<RangeInclusive<i64>>,
}

impl DamagedRows {
    /// Whether a lost cell may have replaced or deleted `cell`. In a view of `all` stored cells, only a cell of the same
    /// column and timestamp replaces another.
    pub(super) fn may_hide(&self, cell: &Cell<'_>, family: usize, all: bool, order: RowOrder) -> bool {
        let same_time = self.times.as_ref().is_none_or(|times| times.contains(&cell.timestamp));
        self.family == family && (!all || self.whole_file || same_time) && self.holds(cell.row, order)
    }

    pub(super) fn holds(&self, row: &[u8], order: RowOrder) -> bool {
        order.compare(&self.lower, row).is_le() && !self.ends_before(row, order)
    }

    /// Whether the range ends before a row.
    pub(super) fn ends_before(&self, row: &[u8], order: RowOrder) -> bool {
        self.upper.as_ref().is_some_and(|upper| match order.compare(row, upper) {
            Ordering::Less => false,
            Ordering::Equal => !self.through,
            Ordering::Greater => true,
        })
    }
}

/// Adds the rows of a lost block of a family.
pub(super) fn add_block(
    damaged: &mut Vec<DamagedRows>,
    family: usize,
    block: Piece,
    times: Option<RangeInclusive<i64>>,
    order: RowOrder,
) {
    let Piece { first, last, .. } = block;
    let before = damaged
        .iter_mut()
        .rfind(|rows| rows.family == family)
        .filter(|rows| rows.through && !rows.whole_file && rows.times == times);
    if let Some(before) = before
        && before.holds(&first, order)
    {
        let reaches = last.as_ref().is_none_or(|last| before.ends_before(last, order));
        if before.upper.is_some() && reaches {
            before.upper = last;
        }
        return;
    }
    damaged.push(DamagedRows { family, lower: first, upper: last, through: true, whole_file: false, times });
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_hfile::BlockRef;

    #[test]
    fn adjacent_blocks_become_one_range() {
        let mut damaged = Vec::new();
        let mut add = |family: usize, first: &str, last: Option<&str>| {
            let last = last.map(|row| row.as_bytes().to_vec());
            let block =
                Piece { block: BlockRef { offset: 0, size: 0 }, first: first.as_bytes().to_vec(), last };
            add_block(&mut damaged, family, block, None, RowOrder::Bytes);
        };
        add(0, "a", Some("c"));
        add(1, "b", Some("c"));
        add(0, "c", Some("f"));
        add(0, "d", Some("e"));
        add(0, "k", Some("m"));
        add(1, "c", None);
        add(1, "x", Some("y"));
        let text = |row: &[u8]| String::from_utf8_lossy(row).into_owned();
        let ranges: Vec<_> =
            damaged.iter().map(|l| (l.family, text(&l.lower), l.upper.as_deref().map(text))).collect();
        let expected = [(0, "a", Some("f")), (1, "b", None), (0, "k", Some("m"))];
        assert_eq!(ranges, expected.map(|(f, a, b)| (f, a.to_owned(), b.map(str::to_owned))));
        let held = |row: &[u8]| damaged.iter().any(|l| l.family == 0 && l.holds(row, RowOrder::Bytes));
        assert!(held(b"a") && held(b"f") && held(b"m") && !held(b"fa") && !held(b"A"));
    }

    #[test]
    fn a_range_ends_before_rows_after_its_upper_bound() {
        let rows = |through| DamagedRows {
            family: 0,
            lower: vec![2],
            upper: Some(vec![5]),
            through,
            whole_file: true,
            times: None,
        };
        let ends = |through, row: u8| rows(through).ends_before(&[row], RowOrder::Bytes);
        assert_eq!([ends(true, 4), ends(true, 5), ends(true, 6)], [false, false, true]);
        assert_eq!([ends(false, 4), ends(false, 5), ends(false, 6)], [false, true, true]);
    }
}
