//! A budget for walks that follow pointers in a file: index blocks, sync markers, directories.

use crate::{Error, Result};

/// Counts the steps of a walk, and fails if there are more than its length allows.
///
/// A pointer in a damaged file may lead anywhere: back to its block, or twice to the next block, which over
/// sixty levels is 2^60 visits. Code that follows pointers calls this before each step. The number of
/// visits is limited to the number of structures that fit into the file. If a format stores structures in
/// increasing order, an offset that does not increase is damage.
#[derive(Clone, Debug)]
pub struct Walk {
    what: &'static str,
    most: u64,
    left: u64,
    /// The smallest valid offset of the next structure.
    next: u64,
}

impl Walk {
    /// A walk of at most `most` visits. `what`: what is visited, such as `index block`.
    pub fn new(what: &'static str, most: u64) -> Self {
        Self { what, most, left: most, next: 0 }
    }

    /// A walk of at most as many visits as a file of `file_len` bytes can have structures, if each takes at
    /// least `smallest` bytes.
    pub fn of_file(what: &'static str, file_len: u64, smallest: u64) -> Self {
        Self::new(what, file_len / smallest.max(1) + 1)
    }

    /// Counts a visit; an error if there were too many.
    pub fn visit(&mut self) -> Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    /// Counts a visit of a structure at `offset` of `len` bytes, which must lie after the previous structure.
    pub fn rising(&mut self, offset: u64, len: u64) -> Result<()> {
        self.visit()?;
        if offset < self.next {
            let (what, next) = (self.what, self.next);
            return Err(Error::corrupt(format!("{what}: expected an offset of {next} or more")).at(offset));
        }
        self.next = offset.saturating_add(len.max(1));
        Ok(())
    }

    /// The number of visits so far.
    pub fn visited(&self) -> u64 {
        self.most - self.left
    }

    #[cold]
    #[inline(never)]
    fn exhausted(&self) -> Error {
        Error::corrupt(format!("{}: expected at most {}, found more", self.what, self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_fails_after_too_many_visits() {
        let mut walk = Walk::of_file("index block", 25, 10);
        assert!((0..3).all(|_| walk.visit().is_ok()));
        assert_eq!(walk.visit().unwrap_err().to_string(), "index block: expected at most 3, found more");
        assert_eq!(walk.visited(), 3);
    }

    #[test]
    fn a_rising_walk_goes_forward_only() {
        let mut walk = Walk::new("data block", 10);
        walk.rising(0, 5).unwrap();
        walk.rising(9, 0).unwrap();
        let e = walk.rising(9, 5).unwrap_err();
        assert_eq!(e.to_string(), "byte 9: data block: expected an offset of 10 or more");
        walk.rising(10, u64::MAX).unwrap();
        assert!(walk.rising(u64::MAX - 1, 1).is_err());
    }
}
