//! Rows of which cells may be lost: the cells that other files have of them may be outdated, or deleted since.
//!
//! ```text
//! blocks     | a .. c | c .. f |    | k .. m |        each cannot be read
//! lost       | a ........... f |    | k .. m |        adjacent blocks become one range: all blocks of a file may be lost
//! ```

use std::cmp::Ordering;

use coldframe_hfile::RowOrder;

use super::feed::Piece;

/// Rows of a family of which cells may be lost.
#[derive(Clone, Debug)]
pub(crate) struct LostRows {
    pub(crate) family: usize,
    pub(crate) lower: Vec<u8>,
    /// The last row, which is lost as well, or the end (excluded).
    pub(crate) upper: Option<Vec<u8>>,
    pub(crate) through: bool,
    /// Whether a whole file is lost. It is then unknown which files it had replaced, so none of them counts in any
    /// view.
    pub(crate) whole: bool,
}

impl LostRows {
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
pub(super) fn lose(lost: &mut Vec<LostRows>, family: usize, block: Piece, order: RowOrder) {
    let Piece { first, last, .. } = block;
    let before = lost.iter_mut().rfind(|l| l.family == family).filter(|l| l.through && !l.whole);
    if let Some(before) = before
        && before.holds(&first, order)
    {
        let reaches = last.as_ref().is_none_or(|last| before.ends_before(last, order));
        if before.upper.is_some() && reaches {
            before.upper = last;
        }
        return;
    }
    lost.push(LostRows { family, lower: first, upper: last, through: true, whole: false });
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_hfile::BlockRef;

    #[test]
    fn blocks_that_go_on_are_one_range() {
        let mut lost = Vec::new();
        let mut add = |family: usize, first: &str, last: Option<&str>| {
            let last = last.map(|row| row.as_bytes().to_vec());
            let block =
                Piece { block: BlockRef { offset: 0, size: 0 }, first: first.as_bytes().to_vec(), last };
            lose(&mut lost, family, block, RowOrder::Bytes);
        };
        add(0, "a", Some("c"));
        add(1, "b", Some("c"));
        add(0, "c", Some("f"));
        add(0, "d", Some("e"));
        add(0, "k", Some("m"));
        add(1, "c", None);
        add(1, "x", Some("y"));
        let text = |row: &[u8]| String::from_utf8_lossy(row).into_owned();
        let found: Vec<_> =
            lost.iter().map(|l| (l.family, text(&l.lower), l.upper.as_deref().map(text))).collect();
        let expected = [(0, "a", Some("f")), (1, "b", None), (0, "k", Some("m"))];
        assert_eq!(found, expected.map(|(f, a, b)| (f, a.to_owned(), b.map(str::to_owned))));
        let held = |row: &[u8]| lost.iter().any(|l| l.family == 0 && l.holds(row, RowOrder::Bytes));
        assert!(held(b"a") && held(b"f") && held(b"m") && !held(b"fa") && !held(b"A"));
    }

    #[test]
    fn what_ends_before_a_row_ends_at_it() {
        let rows =
            |through| LostRows { family: 0, lower: vec![2], upper: Some(vec![5]), through, whole: true };
        let ends = |through, row: u8| rows(through).ends_before(&[row], RowOrder::Bytes);
        assert_eq!([ends(true, 4), ends(true, 5), ends(true, 6)], [false, false, true]);
        assert_eq!([ends(false, 4), ends(false, 5), ends(false, 6)], [false, true, true]);
    }
}
