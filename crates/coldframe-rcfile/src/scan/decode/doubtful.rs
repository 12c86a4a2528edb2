//! The doubtful rows of a row group that `skip` leaves out: those whose cells lie in front of the first contradiction
//! of each column.
//!
//! ```text
//! lengths say     | 3 | 3 | 9 | 3 |      18 bytes
//! bytes           | 3 | 3 | ...          12 bytes: two cells are whole, the third or another length is wrong
//! ```
//!
//! Also all rows of a group that is not anchored, and those of a column whose cells contradict their type, which costs
//! only these cells here; without a codec, those between such cells.

use bytes::Bytes;
use coldframe_core::salvage::{Loss, Salvage};
use coldframe_core::{BatchIter, DamageLog, OnError, Result};

use super::batches::Batches;
use super::{ColumnCells, DecodeGroup, Places};
use crate::layout::key::{CellLengths, count_cells, count_whole_cells};

impl DecodeGroup {
    /// The doubtful rows of the group; `stored` are the bytes of the columns.
    pub(super) fn decode_doubtful(mut self, stored: &[Option<Bytes>]) -> Result<BatchIter> {
        let (mut cells, failed) = self.split(stored)?;
        if failed.is_empty() && self.is_anchored && !self.has_contradiction(&cells)? {
            let fates =
                if self.decoders.is_plain() { self.doubtful_only(&cells)? } else { Default::default() };
            return Ok(Box::new(Batches::new(self, cells, fates)));
        }
        let rows = self.trusted_rows();
        self.group.key.rows = rows;
        let mut salvage = Salvage::new(OnError::Skip, cells.iter().map(|_| true), DamageLog::default());
        for (place, e) in failed {
            let disk = stored.get(place).and_then(Option::as_ref);
            let Some((whole, column)) = disk.and_then(|disk| self.whole_cells(place, disk)) else {
                return Ok(Box::new(std::iter::empty()));
            };
            salvage.lose(place, Loss::from_error(&e, self.bytes(), whole.min(rows)..rows));
            if let Some(place) = cells.get_mut(place) {
                *place = Some(column);
            }
        }
        let stretches = salvage.stretches(0..rows);
        Ok(Box::new(Batches::new(self, cells, stretches)))
    }

    /// Whether cells contradict their type, so that `skip` loses their column.
    fn has_contradiction(&self, cells: &[Option<ColumnCells>]) -> Result<bool> {
        if !self.decoders.spreads_damage() {
            return Ok(false);
        }
        for (place, cells) in cells.iter().enumerate() {
            if let Some(cells) = cells
                && self.contradiction(place, cells)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The cells of a column that contradicts its key, and how many of the first ones are whole.
    fn whole_cells(&self, place: usize, disk: &Bytes) -> Option<(u64, ColumnCells)> {
        let key = self.key(self.columns().get(place)?)?;
        let data = self.decoders.decompress(key, disk).ok()?;
        let whole = count_whole_cells(&key.lengths, data.len() as u64);
        Some((whole, ColumnCells { data, places: Places::Lengths(CellLengths::new(key.lengths.clone())) }))
    }

    /// How many rows of the group have cells: as many as the key states if a column has as many, or else as all
    /// columns have.
    fn trusted_rows(&self) -> u64 {
        let key = &self.group.key;
        let columns = key.columns.iter().filter(|column| !column.lengths.is_empty());
        // A key whose length differs from its header's may not be a key at all.
        let is_key = usize::try_from(self.group.header.key_len).ok() == Some(key.len);
        let is_counted = columns
            .clone()
            .any(|column| count_cells(&column.lengths).is_ok_and(|(cells, _)| cells == key.rows));
        if is_key && is_counted {
            return key.rows;
        }
        columns.map(|column| count_whole_cells(&column.lengths, column.data_len)).fold(key.rows, u64::min)
    }
}
