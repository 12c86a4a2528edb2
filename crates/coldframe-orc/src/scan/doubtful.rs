//! Doubtful rows: those that were decoded before the first contradiction, and that nothing proves.

use std::collections::VecDeque;
use std::ops::Range;

use coldframe_core::Result;

use super::decode::{Current, Ready, StripeBatches};

impl StripeBatches {
    /// The doubtful rows among rows whose losses are settled.
    pub(super) fn doubtful(&mut self, current: &mut Current, rows: &Range<u64>) -> Result<VecDeque<Ready>> {
        loop {
            let (mut ready, mut failed) = (VecDeque::new(), Vec::new());
            for rows in self.salvage.doubtful(rows.clone()) {
                failed.extend(self.attempt(current, rows, None, &mut ready)?);
            }
            current.open = None;
            if failed.is_empty() {
                return Ok(ready);
            }
            // Columns of rows that `skip` leaves out were not read before.
            self.settle(failed, rows.clone())?;
        }
    }
}
