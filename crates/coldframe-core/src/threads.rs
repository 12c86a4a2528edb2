//! Threads that share the columns of a unit.
//!
//! ```text
//! unit 0 ──▶ thread of a scan ──▶ columns, without helpers while all threads have a unit
//! unit 1 ──▶ thread of a scan ──▶ columns ── with a helper once unit 0 is done
//! ```
//!
//! A scan may decode several units at once, one per thread. Units take precedence: the columns of a unit get
//! helper threads only while fewer threads are busy than were requested. So a scan of many units never
//! exceeds the requested threads, and the last unit, or the only unit of a file, can use all of them.
//!
//! A helper ends with the work that it was started for. So no helper is lost if the process forks, as Spark's
//! workers do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Maximum number of threads of a scan; more threads would not make it faster.
pub const MAX: usize = 256;

/// The number of the machine's processors, at most [`MAX`].
pub fn all() -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    *ALL.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(MAX))
}

/// The number of busy threads of this process that decode columns of a unit.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// A busy thread.
struct BusyThread;

impl BusyThread {
    fn start() -> Self {
        BUSY.fetch_add(1, Ordering::Relaxed);
        Self
    }

    /// Counts one more busy thread, but only if fewer than `most` are busy.
    fn start_below(most: usize) -> Option<Self> {
        let more = |busy: usize| (busy < most).then_some(busy + 1);
        BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for BusyThread {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls `work` with each of `items`, in order, on this thread and on helpers. The number of busy threads
/// stays within `threads` ([`crate::Scan::threads`]).
pub fn share<T: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    threads: usize,
    work: impl Fn(T) + Sync,
) {
    let this = BusyThread::start();
    let most_helpers = items.len().saturating_sub(1);
    let helpers: Vec<BusyThread> =
        std::iter::from_fn(|| BusyThread::start_below(threads.min(MAX))).take(most_helpers).collect();
    if helpers.is_empty() {
        items.for_each(work);
        return;
    }
    let queue = Mutex::new(items);
    let take = |busy: BusyThread| {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { break };
            work(item);
        }
        drop(busy);
    };
    std::thread::scope(|scope| {
        for helper in helpers {
            // If the system cannot start a thread, the other threads do its work.
            drop(std::thread::Builder::new().spawn_scoped(scope, || take(helper)));
        }
        take(this);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_item_is_processed_once() {
        // Other tests may start helpers at the same time, so only bounds are checked.
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
