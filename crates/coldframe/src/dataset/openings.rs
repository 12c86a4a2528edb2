//! Opens files in parallel, on the pool's threads and the caller's thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use coldframe_core::{Error, Result};

use crate::pool::{Job, Work, pool};

/// The number of threads that open files; more than the number of processors, since these threads mostly wait
/// for the disk or the network.
const OPENERS: usize = 16;

type Each<T> = Box<dyn Fn(usize) -> Result<T> + Send + Sync>;

struct Openings<T> {
    count: usize,
    open: Each<T>,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    next: usize,
    busy: usize,
    done: Vec<Option<T>>,
    /// The first failed file in file order, with its number and error.
    failed: Option<(usize, Error)>,
}

impl<T: Send + 'static> Openings<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next file to open.
    fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.next >= self.count || state.failed.is_some() {
            return None;
        }
        state.next += 1;
        state.busy += 1;
        Some(state.next - 1)
    }

    fn work(&self, at: usize) {
        let ended = AtEnd(self);
        let opened = (self.open)(at);
        let mut state = self.lock();
        match opened {
            Ok(opened) => {
                if let Some(place) = state.done.get_mut(at) {
                    *place = Some(opened);
                }
            }
            Err(e) => {
                if state.failed.as_ref().is_none_or(|(first, _)| at < *first) {
                    state.failed = Some((at, e));
                }
            }
        }
        drop(state);
        drop(ended);
    }
}

/// Lowers the number of busy threads when it is dropped, even if the work panics.
struct AtEnd<'a, T: Send + 'static>(&'a Openings<T>);

impl<T: Send + 'static> Drop for AtEnd<'_, T> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.changed.notify_one();
    }
}

impl<T: Send + 'static> Work for Openings<T> {
    fn claim(self: Arc<Self>) -> Option<Job> {
        let at = self.take()?;
        Some(Box::new(move || self.work(at)))
    }

    fn stop(&self) {
        self.lock().next = self.count;
    }

    fn threads(&self) -> usize {
        OPENERS.min(self.count)
    }
}

/// Calls `open` with each number below `count` and returns the results, or the error of the first number that
/// fails.
pub(crate) fn in_parallel<T: Send + 'static>(
    count: usize,
    open: impl Fn(usize) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let done = (0..count).map(|_| None).collect();
    let state = State { next: 0, busy: 0, done, failed: None };
    let all =
        Arc::new(Openings { count, open: Box::new(open), state: Mutex::new(state), changed: Condvar::new() });
    let (pool, work) = (pool()?, all.clone() as Arc<dyn Work>);
    pool.add(work.clone());
    (1..OPENERS.min(count)).for_each(|_| pool.wake());
    while let Some(at) = all.take() {
        all.work(at);
    }
    let mut state = all.lock();
    while state.busy > 0 {
        state = all.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let (done, failed) = (std::mem::take(&mut state.done), state.failed.take());
    drop(state);
    pool.remove(&work);
    if let Some((_, e)) = failed {
        return Err(e);
    }
    let done: Option<Vec<T>> = done.into_iter().collect();
    done.ok_or_else(|| Error::invalid("files were not opened: the program is ending, or a thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_open_or_the_first_error_is_returned() {
        let results = in_parallel(100, |at| Ok(at * 2)).unwrap();
        assert_eq!(results, (0..100).map(|at| at * 2).collect::<Vec<_>>());
        assert!(in_parallel(0, Ok).unwrap().is_empty());
        let e = in_parallel(50, |at| if at >= 7 { Err(Error::invalid(format!("{at}"))) } else { Ok(at) });
        assert_eq!(e.unwrap_err().to_string(), "7");
    }
}
