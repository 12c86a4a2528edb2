//! An allocator that counts, for tests that compare memory with a file's size.
//!
//! A test binary installs it for itself:
//!
//! ```
//! #[global_allocator]
//! static MEMORY: coldframe_testing::alloc::Counting = coldframe_testing::alloc::Counting;
//! ```
//!
//! Counted is what the thread of a [`Meter`] does from its start to its end, so that other tests of the binary, which run
//! beside it, do not count; nor do threads that the measured one starts.

#![expect(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of the measured stretch; what it frees of before makes it negative.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
/// No request is granted that would leave more than this alive.
static CEILING: AtomicIsize = AtomicIsize::new(isize::MAX);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread is the one that is measured.
    static MEASURED: Cell<bool> = const { Cell::new(false) };
}

fn measured() -> bool {
    MEASURED.try_with(Cell::get).unwrap_or(false)
}

/// The system's allocator with counts.
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

// SAFETY: each method hands its arguments to the system's allocator unchanged and returns what that returned, or null,
// which the contract allows for any request; the counters beside it are atomics, and a thread's flag without a destructor
// or a lazy start, so that nothing here allocates or unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !granted(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about `layout` is the one that is asked for here.
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
        // SAFETY: `at` came from `System` with this layout, as `alloc` and `realloc` get it from there.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What moves is alive twice for a moment; counted is what the caller holds.
        if !granted(size) {
            return std::ptr::null_mut();
        }
        released(layout.size());
        // SAFETY: `at` came from `System` with this layout, and the caller promises a valid new size.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Whether this process counts.
pub fn is_installed() -> bool {
    drop(std::hint::black_box(Box::new(1u64)));
    INSTALLED.load(Ordering::Relaxed)
}

/// One turn of whatever must not be measured together with anything else.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts from now on; one at a time, on the thread that started it.
#[derive(Debug)]
pub struct Meter<'a> {
    _turn: &'a MutexGuard<'static, ()>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The most that was alive at a time, beyond what was at the start.
    pub peak: u64,
    /// All that was ever asked for.
    pub total: u64,
}

impl<'a> Meter<'a> {
    /// Starts; what leaves more than `most` bytes beyond the present ones alive is refused, which ends the process as
    /// a lack of memory would, and the machine is spared.
    pub(crate) fn start(turn: &'a MutexGuard<'static, ()>, most: usize) -> Self {
        LIVE.store(0, Ordering::Relaxed);
        PEAK.store(0, Ordering::Relaxed);
        TOTAL.store(0, Ordering::Relaxed);
        CEILING.store(isize::try_from(most).unwrap_or(isize::MAX), Ordering::Relaxed);
        MEASURED.set(true);
        Self { _turn: turn }
    }

    /// Ends.
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
