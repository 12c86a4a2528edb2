//! When the writer checks whether a row group is full.
//!
//! Computing the size of all columns is expensive, so the reference checks first at row 100, and then at the
//! row where the group would have nine tenths of `row_group_bytes` if all rows were as large as the rows so
//! far. After that row the reference checks at nearly every row. The row of the next check is not reset when
//! a row group ends. The reference computes the size of a row with 32-bit floating point numbers; this code
//! does the same, so that files have the same bytes.

/// Keeps the row of the next check.
#[derive(Debug)]
pub(super) struct SizeCheck {
    row_group_bytes: u64,
    next: u64,
}

impl SizeCheck {
    pub(super) fn new(row_group_bytes: u64) -> Self {
        Self { row_group_bytes, next: 100 }
    }

    /// How many rows follow before the next check; `None` if a check is due after each row.
    pub(super) fn rows_left(&self, rows: u64) -> Option<u64> {
        self.next.checked_sub(rows).filter(|n| *n > 0)
    }

    /// Checks whether a row group of `rows` rows is full.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Java's conversions, which round and saturate in the same way; no value is negative"
    )]
    pub(super) fn is_full(&mut self, rows: u64, counted: impl FnOnce() -> u64) -> bool {
        if rows < self.next {
            return false;
        }
        let counted = counted();
        let row = counted as f32 / rows as f32;
        self.next = (self.row_group_bytes as f64 * 0.9 / f64::from(row)) as u64;
        counted > self.row_group_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of row groups, and the number of checks, for rows of equal size.
    fn groups(row: u64, row_group_bytes: u64, rows: u64) -> (Vec<u64>, usize) {
        let mut check = SizeCheck::new(row_group_bytes);
        let (mut groups, mut checks, mut held) = (Vec::new(), 0, 0);
        for _ in 0..rows {
            held += 1;
            let full = check.is_full(held, || {
                checks += 1;
                held * row
            });
            if full {
                groups.push(held);
                held = 0;
            }
        }
        (groups, checks)
    }

    #[test]
    fn the_first_check_is_at_row_100_and_the_others_from_nine_tenths_on() {
        assert_eq!(groups(8, 8, 99), (vec![], 0));
        assert_eq!(groups(8, 8, 100), (vec![100], 1));
        // After row 100, a check at each row, since each row has more than nine tenths of the limit.
        assert_eq!(groups(8, 8, 104), (vec![100, 2, 2], 5));
        // A check at row 100, then one at each row from 900 to 1001.
        assert_eq!(groups(10, 10_000, 1001), (vec![1001], 1 + 102));
        assert_eq!(groups(10, 10_000, 2002), (vec![1001, 1001], 1 + 102 + 102));
        // Nothing is counted for rows without levels and values.
        assert_eq!(groups(0, 10, 100_000), (vec![], 1));
    }
}
