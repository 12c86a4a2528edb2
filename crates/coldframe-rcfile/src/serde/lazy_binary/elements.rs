//! How much memory the elements of lists may take: a null takes one bit of a cell.

use coldframe_encoding::{Cursor, Limits, Result};

use super::cells::Run;
use crate::hive_type::HiveType;
use crate::serde::expansion::{element_bytes, per_bit};

/// Elements that together take at most this much memory are decoded without being counted first.
const UNCOUNTED_BYTES: u64 = 32 << 20;

/// The memory for the elements in a column's cells.
pub(super) struct ListBytes {
    /// Bytes of an element of the outermost list; `None` if the cells are no lists.
    element: Option<u64>,
    /// The maximum bytes of the elements that one bit within the outermost list, or within a cell, adds.
    per_bit: u64,
}

impl ListBytes {
    pub(super) fn new(hive_type: &HiveType) -> Self {
        match hive_type {
            HiveType::Array(element) => {
                Self { element: Some(element_bytes(element)), per_bit: per_bit(element) }
            }
            other => Self { element: None, per_bit: per_bit(other) },
        }
    }

    /// The maximum number of bytes that the elements take: for the outermost lists as the lists state, and
    /// for lists within as if all bytes were bitmaps.
    pub(super) fn most(&self, run: &Run<'_>) -> u64 {
        let bits = (run.bytes().len() as u64).saturating_mul(8);
        let outer = self.element.map_or(0, |bytes| stated(run, bytes));
        let inner = bits.saturating_mul(self.per_bit);
        outer.saturating_add(if inner > UNCOUNTED_BYTES { inner } else { 0 })
    }
}

/// Refuses lists whose elements, of `bytes` bytes each, take more than a block may.
pub(super) fn check(run: &Run<'_>, bytes: u64, limits: &Limits) -> Result<()> {
    limits.block("the elements of lists", stated(run, bytes)).map(drop)
}

/// The bytes of as many elements as the lists state, of `bytes` bytes each; 0 if there can be only few. A
/// list has at most as many elements as bits.
fn stated(run: &Run<'_>, bytes: u64) -> u64 {
    let most = (run.bytes().len() as u64).saturating_mul(8).saturating_mul(bytes);
    if most <= UNCOUNTED_BYTES {
        return 0;
    }
    let counts = run.cells().map(|cell| {
        let count = Cursor::new(cell, 0).hadoop_vint().ok().and_then(|count| u64::try_from(count).ok());
        count.unwrap_or(0).min((cell.len() as u64).saturating_mul(8))
    });
    counts.sum::<u64>().saturating_mul(bytes)
}
