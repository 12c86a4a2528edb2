//! A counting allocator, for tests that compare the memory used with the size of a file.
//!
//! A test binary installs it for itself:
//!
//! ```
//! #[global_allocator]
//! static MEMORY: coldframe_testing::alloc::Counting = coldframe_testing::alloc::Counting;
//! ```
//!
//! A [`Meter`] counts the allocations of its thread from start to stop. It does not count concurrent tests of
//! the binary, nor threads that the measured thread starts.

#![expect(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Live bytes of the measured section; negative if the section frees earlier allocations.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
/// A request fails if it would raise the live bytes above this.
static CEILING: AtomicIsize = AtomicIsize::new(isize::MAX);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread is being measured.
    static MEASURED: Cell<bool> = const { Cell::new(false) };
}

fn measured() -> bool {
    MEASURED.try_with(Cell::get).unwrap_or(false)
}

/// The system's allocator with counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

fn granted(size: usize) -> bool {
    INSTALLED.store(true, Ordering::Relaxed);
    if !measured() {
        return true;
    }
    let more = isize::try_from(size).unwrap_or(isize::MAX);
    let live = LIVE.fetch_add(more, Ordering::Relaxed).saturating_add(more);
    if live > CEILING.load(Ordering::Relaxed) {
        LIVE.fetch_sub(more, Ordering::Relaxed);
        return false;
    }
    TOTAL.fetch_add(size, Ordering::Relaxed);
    PEAK.fetch_max(live, Ordering::Relaxed);
    true
}

fn released(size: usize) {
    if measured() {
        LIVE.fetch_sub(isize::try_from(size).unwrap_or(isize::MAX), Ordering::Relaxed);
    }
}

// SAFETY: each method passes its arguments to the system's allocator unchanged and returns its result, or
// null, which the contract allows for any request. The counters are atomics, and the thread's flag has
// neither a destructor nor lazy initialisation, so nothing here allocates or unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !granted(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller guarantees for `layout` what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !granted(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        released(layout.size());
        // SAFETY: `alloc` and `realloc` got `at` from `System` with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While a block is moved it exists twice, but only one of the two is counted.
        if !granted(size) {
            return std::ptr::null_mut();
        }
        released(layout.size());
        // SAFETY: `at` came from `System` with this layout, and the caller guarantees a valid new size.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Whether this process uses the counting allocator.
pub(crate) fn is_installed() -> bool {
    drop(std::hint::black_box(Box::new(1u64)));
    INSTALLED.load(Ordering::Relaxed)
}

/// The lock that allows only one measurement at a time.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts the allocations of the thread that started it. Only one meter runs at a time.
#[derive(Debug)]
pub struct Meter<'a> {
    _turn: &'a MutexGuard<'static, ()>,
}

/// The result of a [`Meter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The largest number of live bytes, relative to the start.
    pub peak: u64,
    /// The sum of all requests.
    pub total: u64,
}

impl<'a> Meter<'a> {
    /// Starts counting. A request fails if it would raise the live bytes by more than `most`. That ends the
    /// process as if memory were exhausted, without exhausting the memory of the machine.
    pub(crate) fn start(turn: &'a MutexGuard<'static, ()>, most: usize) -> Self {
        LIVE.store(0, Ordering::Relaxed);
        PEAK.store(0, Ordering::Relaxed);
        TOTAL.store(0, Ordering::Relaxed);
        CEILING.store(isize::try_from(most).unwrap_or(isize::MAX), Ordering::Relaxed);
        MEASURED.set(true);
        Self { _turn: turn }
    }

    /// Stops counting.
    pub(crate) fn stop(self) -> Memory {
        let peak = PEAK.load(Ordering::Relaxed);
        Memory { peak: peak.unsigned_abs() as u64, total: TOTAL.load(Ordering::Relaxed) as u64 }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        MEASURED.set(false);
        CEILING.store(isize::MAX, Ordering::Relaxed);
    }
}
