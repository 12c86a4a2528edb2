//! Threads that decode the columns of a batch side by side.
//!
//! ```text
//! stripe 0 ──▶ thread of a scan ──▶ columns, alone while all processors have a stripe
//! stripe 1 ──▶ thread of a scan ──▶ columns ── and with a helper once stripe 0 is done
//! ```
//!
//! Whoever scans may decode several stripes at once, each on a thread of its own. That comes first: columns get helpers only for
//! processors that have no stripe, so a scan of many stripes has no more threads at work than were asked for, and the last stripe of
//! it, or the only one of a file, still has them all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads of this process that decode columns.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// One thread at work.
struct Working;

impl Working {
    fn start() -> Self {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        Self
    }

    /// One more, if there are fewer than `most`.
    fn start_below(most: usize) -> Option<Self> {
        let more = |at_work: usize| (at_work < most).then_some(at_work + 1);
        AT_WORK.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does `work` on each of `items`, in their order, on this thread and as many helpers as keep the threads at work within `threads`.
pub(crate) fn share<T: Send>(items: impl Iterator<Item = T> + Send, threads: usize, work: impl Fn(T) + Sync) {
    let this = Working::start();
    let helpers: Vec<Working> = std::iter::from_fn(|| Working::start_below(threads)).collect();
    if helpers.is_empty() {
        items.for_each(work);
        return;
    }
    let queue = Mutex::new(items);
    let take = |working: Working| {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { break };
            work(item);
        }
        drop(working);
    };
    std::thread::scope(|scope| {
        for helper in helpers {
            scope.spawn(|| take(helper));
        }
        take(this);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_is_done_once_and_helpers_leave() {
        // Other tests decode at the same time: only what this one adds is known.
        for threads in [0, 1, 64] {
            let done = Mutex::new(Vec::new());
            let by = Mutex::new(HashSet::new());
            share(0..200, threads, |n| {
                done.lock().unwrap().push(n);
                by.lock().unwrap().insert(std::thread::current().id());
                std::thread::sleep(std::time::Duration::from_micros(200));
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..200).collect::<Vec<_>>());
            let by = by.into_inner().unwrap().len();
            assert!(if threads < 2 { by == 1 } else { by > 1 }, "{threads}: {by}");
        }
    }
}
