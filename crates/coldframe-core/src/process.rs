//! State that belongs to a single process.
//!
//! Spark's workers fork. Neither threads nor the connections of a client survive that: the child has a copy of both in
//! memory, waits for threads that it does not have, and reads answers meant for its parent. So whatever holds them is
//! tied to a process id, and is created again in another process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_encoding::Result;

/// A value that is created once for each process that asks for it.
pub struct PerProcess<T> {
    slot: Mutex<Option<(u32, Arc<T>)>>,
}

impl<T> PerProcess<T> {
    /// Not created yet.
    pub const fn new() -> Self {
        Self { slot: Mutex::new(None) }
    }

    /// This process's own.
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = std::process::id();
        match slot.take() {
            Some((owner, made)) if owner == pid => {
                *slot = Some((owner, made.clone()));
                return Ok(made);
            }
            // Dropping it would wait for threads that this process does not have.
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
        // The state after a fork.
        *slot.slot.lock().unwrap() = Some((0, first));
        assert_eq!(*slot.get(|| Ok(3)).unwrap(), 3);
    }
}
