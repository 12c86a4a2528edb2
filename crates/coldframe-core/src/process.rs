//! Values that belong to a single process.
//!
//! Spark's workers fork. Threads and connections do not survive a fork: the child would wait for threads that
//! it does not have, and would read answers meant for its parent. So a value that holds threads or
//! connections is tied to a process id, and is created again in another process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_encoding::Result;

/// A value that each process creates for itself, on first use.
pub struct PerProcess<T> {
    slot: Mutex<Option<(u32, Arc<T>)>>,
}

impl<T> PerProcess<T> {
    /// A value that is not created yet.
    pub const fn new() -> Self {
        Self { slot: Mutex::new(None) }
    }

    /// The value of this process.
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = std::process::id();
        match slot.take() {
            Some((owner, made)) if owner == pid => {
                *slot = Some((owner, made.clone()));
                return Ok(made);
            }
            // Dropping the parent's value would wait for threads that this process does not have.
            Some((_, stale)) => std::mem::forget(stale),
            None => {}
        }
        let made = Arc::new(make()?);
        *slot = Some((pid, made.clone()));
        Ok(made)
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own_value() {
        let slot = PerProcess::new();
        let first = slot.get(|| Ok(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &slot.get(|| Ok(2)).unwrap()));
        // The state that a child process has after a fork.
        *slot.slot.lock().unwrap() = Some((0, first));
        assert_eq!(*slot.get(|| Ok(3)).unwrap(), 3);
    }
}
