//! Checks that the number of cells that were read equals the number in the trailer.
//!
//! Runs are decoded in any order, some of them before the last run is planned. The run that finishes last compares
//! the counts.

use std::sync::{Arc, Mutex, PoisonError};

use coldframe_core::{Error, Result};

/// Counts the cells of a scan of a whole file.
#[derive(Debug)]
pub(crate) struct Tally {
    expected: u64,
    /// The offset of the trailer.
    at: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cells: u64,
    lost: bool,
    /// Runs that are planned but not finished.
    open: u64,
    /// Whether all runs were planned.
    planned: bool,
}

/// The counter of one run.
#[derive(Debug)]
pub(crate) struct Open {
    tally: Arc<Tally>,
    /// The number of cells so far.
    pub(crate) cells: u64,
    /// Whether cells of the run were lost.
    pub(crate) lost: bool,
}

impl Tally {
    /// Creates a tally for a file whose trailer, at offset `at`, states `expected` cells.
    pub(crate) fn new(expected: u64, at: u64) -> Self {
        Self { expected, at, state: Mutex::default() }
    }

    /// Begins a run.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open += 1;
        Open { tally: self.clone(), cells: 0, lost: false }
    }

    /// Records that all runs are planned, and whether the plan skipped damaged bytes.
    pub(crate) fn planned(&self, lost: bool) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.planned = true;
        state.lost |= lost;
        self.compare(&state)
    }

    /// Fails if all runs have been read and the counts differ. If cells were lost, the counts are not
    /// compared, since the lost cells may be the difference.
    fn compare(&self, state: &State) -> Result<()> {
        let (expected, actual) = (self.expected, state.cells);
        let fits = actual == expected || (state.lost && actual < expected);
        if !state.planned || state.open > 0 || fits {
            return Ok(());
        }
        let message = format!("expected {expected} cells, found {actual} in the data blocks");
        Err(Error::corrupt(message).at(self.at).within("trailer"))
    }
}

impl Open {
    /// Ends the run.
    pub(crate) fn close(self) -> Result<()> {
        let mut state = self.tally.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open -= 1;
        state.cells = state.cells.saturating_add(self.cells);
        state.lost |= self.lost;
        self.tally.compare(&state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_compares_the_counts() {
        let tally = Arc::new(Tally::new(5, 9));
        let (mut a, mut b) = (tally.open(), tally.open());
        (a.cells, b.cells) = (2, 4);
        b.close().unwrap();
        tally.planned(false).unwrap();
        let e = a.close().unwrap_err();
        assert_eq!(e.to_string(), "byte 9: trailer: expected 5 cells, found 6 in the data blocks");

        let tally = Arc::new(Tally::new(5, 9));
        let mut a = tally.open();
        (a.cells, a.lost) = (2, true);
        a.close().unwrap();
        tally.planned(false).unwrap();

        let tally = Arc::new(Tally::new(5, 9));
        assert!(tally.planned(false).is_err());
        assert!(Tally::new(0, 9).planned(false).is_ok());
    }
}
