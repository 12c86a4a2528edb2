//! Objects that Java holds by number. A number is not a pointer, so closing a reader twice does no harm, and
//! using a closed reader is an error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use coldframe::{Error, Result};

/// Objects of one kind, by number.
pub(crate) struct Handles<T> {
    next: AtomicI64,
    known: LazyLock<Mutex<HashMap<i64, Arc<T>>>>,
    what: &'static str,
}

impl<T> Handles<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { next: AtomicI64::new(1), known: LazyLock::new(Mutex::default), what }
    }

    /// Keeps `object` until it is removed, and returns its number.
    pub(crate) fn add(&self, object: T) -> i64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::new(object));
        number
    }

    pub(crate) fn get(&self, number: i64) -> Result<Arc<T>> {
        let object = self.lock().get(&number).cloned();
        object.ok_or_else(|| Error::invalid(format!("{} {number} is closed", self.what)))
    }

    /// Removes an object. Does nothing if the object has already been removed.
    pub(crate) fn remove(&self, number: i64) {
        let gone = self.lock().remove(&number);
        drop(gone);
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Arc<T>>> {
        locked(&self.known)
    }
}

/// Locks an object that one thread uses at a time. If an earlier panic poisoned the lock, the poison is
/// ignored, since Java has got the panic as an exception.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_number_is_an_error() {
        let handles = Handles::new("thing");
        let number = handles.add("x");
        assert_eq!((*handles.get(number).unwrap(), handles.len()), ("x", 1));
        handles.remove(number);
        handles.remove(number);
        assert_eq!(handles.get(number).unwrap_err().to_string(), format!("thing {number} is closed"));
        assert_eq!(handles.len(), 0);
    }
}
