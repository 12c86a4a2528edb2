//! What Java holds by number. A number that stands for nothing is an error and no pointer, so that a reader that is closed twice, or
//! used after it, does no harm.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use coldframe::{Error, Result};

/// Things of one kind, by number.
pub(crate) struct Handles<T> {
    next: AtomicI64,
    known: LazyLock<Mutex<HashMap<i64, Arc<T>>>>,
    what: &'static str,
}

impl<T> Handles<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { next: AtomicI64::new(1), known: LazyLock::new(Mutex::default), what }
    }

    /// Keeps `one` until it is removed.
    pub(crate) fn add(&self, one: T) -> i64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::new(one));
        number
    }

    pub(crate) fn get(&self, number: i64) -> Result<Arc<T>> {
        let found = self.lock().get(&number).cloned();
        found.ok_or_else(|| Error::invalid(format!("{} {number} is closed", self.what)))
    }

    /// Removes it. Does nothing if it was removed already.
    pub(crate) fn remove(&self, number: i64) {
        let gone = self.lock().remove(&number);
        drop(gone);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Arc<T>>> {
        locked(&self.known)
    }
}

/// Locks what one thread uses at a time. A panic of an earlier one, which Java has seen, does not matter.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_gone_is_an_error() {
        let handles = Handles::new("thing");
        let number = handles.add("x");
        assert_eq!((*handles.get(number).unwrap(), handles.len()), ("x", 1));
        handles.remove(number);
        handles.remove(number);
        assert_eq!(handles.get(number).unwrap_err().to_string(), format!("thing {number} is closed"));
        assert_eq!(handles.len(), 0);
    }
}
