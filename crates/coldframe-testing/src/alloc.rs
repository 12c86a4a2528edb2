//! An allocator that counts, for tests that compare memory with a file's size.
//!
//! A test binary installs it for itself:
//!
//! ```
//! #[global_allocator]
//! static MEMORY: coldframe_testing::alloc::Counting = coldframe_testing::alloc::Counting;
//! ```
//!
//! The counts are of the whole process: [`Meter::start`] holds a lock, so that two measured stretches never overlap, and
//! the other tests of such a binary should be few and small.

#![expect(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
/// No request is granted that would leave more than this alive.
static CEILING: AtomicUsize = AtomicUsize::new(usize::MAX);
static TURN: Mutex<()> = Mutex::new(());

/// The system's allocator with counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

fn granted(size: usize) -> bool {
    let live = LIVE.fetch_add(size, Ordering::Relaxed).saturating_add(size);
    if live > CEILING.load(Ordering::Relaxed) {
        LIVE.fetch_sub(size, Ordering::Relaxed);
        return false;
    }
    TOTAL.fetch_add(size, Ordering::Relaxed);
    PEAK.fetch_max(live, Ordering::Relaxed);
    true
}

// SAFETY: each method hands its arguments to the system's allocator unchanged and returns what that returned, or null,
// which the contract allows for any request; the counters beside it are atomics that never allocate or unwind.
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
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` came from `System` with this layout, as `alloc` and `realloc` get it from there.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What moves is alive twice for a moment; counted is what the caller holds.
        if !granted(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` came from `System` with this layout, and the caller promises a valid new size.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Whether this process counts.
pub fn is_installed() -> bool {
    drop(std::hint::black_box(Box::new(1u64)));
    TOTAL.load(Ordering::Relaxed) > 0
}

/// One turn of whatever must not be measured together with anything else.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts from now on; one at a time.
#[derive(Debug)]
pub struct Meter<'a> {
    live: usize,
    total: usize,
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
        let live = LIVE.load(Ordering::Relaxed);
        PEAK.store(live, Ordering::Relaxed);
        CEILING.store(live.saturating_add(most), Ordering::Relaxed);
        Self { live, total: TOTAL.load(Ordering::Relaxed), _turn: turn }
    }

    /// Ends.
    pub(crate) fn stop(self) -> Memory {
        CEILING.store(usize::MAX, Ordering::Relaxed);
        Memory {
            peak: PEAK.load(Ordering::Relaxed).saturating_sub(self.live) as u64,
            total: TOTAL.load(Ordering::Relaxed).saturating_sub(self.total) as u64,
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        CEILING.store(usize::MAX, Ordering::Relaxed);
    }
}
