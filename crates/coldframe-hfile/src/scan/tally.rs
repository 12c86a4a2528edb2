//! Whether as many cells are read as the trailer says.
//!
//! The runs of a scan may be decoded in any order, and before the last of them is planned: whoever comes last compares.

use std::sync::{Arc, Mutex, PoisonError};

use coldframe_core::{Error, Result};

/// The cells of a scan of a whole file.
#[derive(Debug)]
pub(crate) struct Tally {
    expected: u64,
    /// Where the trailer stands.
    at: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cells: u64,
    lost: bool,
    /// Runs that were handed out and not read to their end.
    open: u64,
    /// Whether all runs were handed out.
    planned: bool,
}

/// What one run counts.
#[derive(Debug)]
pub(crate) struct Open {
    tally: Arc<Tally>,
    /// Cells so far.
    pub(crate) cells: u64,
    /// Whether any were lost.
    pub(crate) lost: bool,
}

impl Tally {
    /// A scan that is to find so many cells, by the trailer at `at`.
    pub(crate) fn new(expected: u64, at: u64) -> Self {
        Self { expected, at, state: Mutex::default() }
    }

    /// Begins a run.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open += 1;
        Open { tally: self.clone(), cells: 0, lost: false }
    }

    /// Notes that no run follows, and whether the plan gave bytes up.
    pub(crate) fn planned(&self, lost: bool) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.planned = true;
        state.lost |= lost;
        self.compare(&state)
    }

    /// An error if all is read and is not what the trailer says; what was lost may be what is missing.
    fn compare(&self, state: &State) -> Result<()> {
        let (expected, found) = (self.expected, state.cells);
        let fits = found == expected || (state.lost && found < expected);
        if !state.planned || state.open > 0 || fits {
            return Ok(());
        }
        let message = format!("expected {expected} cells, found {found} in the data blocks");
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
    fn whoever_comes_last_compares() {
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
