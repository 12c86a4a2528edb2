//! One pool of threads per process, which decode for all streams.
//!
//! ```text
//! stream of a table   ──▶ job, job, ..  ──┐        ┌──▶ thread
//! stream of one file  ──▶ job, job, ..  ──┴─ pool ─┴──▶ thread     takes the first job of the stream whose turn it is
//! ```
//!
//! A job never waits for another one: if there is no room for its rows, it is set aside and resumed later
//! (see [`crate::stream`]). So a stream that nobody reads from holds no thread, and a bounded number of
//! threads serves all streams.
//!
//! Threads start when there is work, and end after some time without work. After a fork, the child process
//! has a pool of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use coldframe_core::process::PerProcess;
use coldframe_core::{Result, threads};

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(1);

/// A piece of work. The job runs until it is done or would have to wait.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A source of jobs.
pub(crate) trait Work: Send + Sync {
    /// The next job, if there is one and the source may use another thread.
    fn claim(self: Arc<Self>) -> Option<Job>;

    /// Stops the work: its results are no longer needed.
    fn stop(&self);

    /// Maximum number of threads that this source may use.
    fn threads(&self) -> usize;
}

/// The threads, and the sources of their jobs.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    works: Vec<Arc<dyn Work>>,
    /// The index of the source whose turn it is.
    turn: usize,
    threads: usize,
    idle: usize,
    /// Idle threads that were woken but have not looked for work yet.
    woken: usize,
    busy: usize,
}

impl State {
    fn claim(&mut self) -> Option<Job> {
        let count = self.works.len();
        for ahead in 0..count {
            let at = (self.turn + ahead) % count;
            if let Some(job) = self.works.get(at).and_then(|work| work.clone().claim()) {
                self.turn = (at + 1) % count;
                return Some(job);
            }
        }
        None
    }

    /// Maximum number of threads in total: the number of processors, or more if a source requests more.
    fn max_threads(&self) -> usize {
        let asked = self.works.iter().map(|work| work.threads()).max().unwrap_or(0);
        asked.max(threads::all()).min(threads::MAX)
    }
}

/// The pool of this process.
pub(crate) fn pool() -> Result<Arc<Pool>> {
    static POOL: PerProcess<Pool> = PerProcess::new();
    POOL.get(|| Ok(Pool { state: Mutex::default(), changed: Condvar::new() }))
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a source of jobs.
    pub(crate) fn add(&self, work: Arc<dyn Work>) {
        self.lock().works.push(work);
    }

    /// Removes a source of jobs. Running jobs end by themselves.
    pub(crate) fn remove(&self, work: &Arc<dyn Work>) {
        self.lock().works.retain(|other| !Arc::ptr_eq(other, work));
    }

    /// Wakes or starts a thread for one more job. The caller must not hold a lock that [`Work::claim`] takes.
    pub(crate) fn wake(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.idle > state.woken {
            state.woken += 1;
            self.changed.notify_one();
        } else if state.threads < state.max_threads() {
            let pool = self.clone();
            let name = "coldframe-read".to_owned();
            // If the system cannot start another thread, the thread that waits for rows decodes them itself.
            if thread::Builder::new().name(name).spawn(move || pool.run()).is_ok() {
                state.threads += 1;
            }
        }
    }

    fn run(&self) {
        let mut state = self.lock();
        let mut waited = false;
        loop {
            if let Some(job) = state.claim() {
                waited = false;
                state.busy += 1;
                drop(state);
                // A stream reports the panics of its jobs. Any other panic would end the thread without
                // notice.
                drop(catch_unwind(AssertUnwindSafe(job)));
                state = self.lock();
                state.busy -= 1;
                continue;
            }
            if waited {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            let (back, timeout) =
                self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.idle -= 1;
            state.woken = state.woken.saturating_sub(1);
            // After a time-out, looks for work once more: a job may have arrived at the same time.
            waited = timeout.timed_out();
        }
    }

    /// Stops all work, and waits until no thread is busy, for at most `patience`.
    fn stop(&self, patience: Duration) {
        let works = std::mem::take(&mut self.lock().works);
        works.iter().for_each(|work| work.stop());
        let end = Instant::now() + patience;
        while self.lock().busy > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Stops reading in all threads of this process. This is for programs that exit while a reading thread may be
/// calling their code.
pub fn stop_reading() {
    if let Ok(pool) = pool() {
        pool.stop(Duration::from_secs(60));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Count {
        left: AtomicUsize,
        done: AtomicUsize,
        threads: usize,
    }

    impl Work for Count {
        fn claim(self: Arc<Self>) -> Option<Job> {
            let less = |left: usize| left.checked_sub(1);
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
            Some(Box::new(move || {
                self.done.fetch_add(1, Ordering::Relaxed);
                assert!(self.done.load(Ordering::Relaxed) != 7, "a job that panics");
            }))
        }

        fn stop(&self) {
            self.left.store(0, Ordering::Relaxed);
        }

        fn threads(&self) -> usize {
            self.threads
        }
    }

    #[test]
    fn all_jobs_run_and_a_panic_ends_no_thread() {
        let pool = pool().unwrap();
        let works = [300, 10, 1]
            .map(|left| Arc::new(Count { left: left.into(), done: AtomicUsize::new(0), threads: 3 }));
        for work in &works {
            pool.add(work.clone());
        }
        for _ in 0..3 {
            pool.wake();
        }
        let end = Instant::now() + Duration::from_secs(20);
        while works.iter().map(|work| work.done.load(Ordering::Relaxed)).sum::<usize>() < 311 {
            assert!(Instant::now() < end, "the jobs were not done");
            thread::sleep(Duration::from_millis(1));
        }
        for work in works {
            pool.remove(&(work as Arc<dyn Work>));
        }
    }
}
