//! The package's allocator and how long it keeps memory.
//! A scan allocates and frees several megabytes for each row group, and a dropped table is often followed by
//! one of the same size. The system's allocator returns such memory to the kernel, which clears it page by
//! page for the next allocation; that takes more time than decoding (`benches/README.md`). mimalloc keeps
//! memory, by default for a second. [`PURGE_DELAY_MS`] is longer, and has made consecutive reads of 300 MB
//! tables 1.1 to 1.4 times as fast. `MIMALLOC_PURGE_DELAY` in the environment overrides this time.

#![expect(unsafe_code, reason = "mimalloc's options are set by a C function")]

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long unused memory is kept before it is returned to the kernel.
const PURGE_DELAY_MS: core::ffi::c_long = 10_000;

/// `mi_option_purge_delay` of mimalloc 3's `mimalloc.h`; the crate has no constant for it.
const PURGE_DELAY: mi_option_t = 15;

/// Sets [`PURGE_DELAY_MS`]; a delay in the environment takes precedence.
pub(crate) fn keep_memory() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the function stores a number in a table of options, and checks the index; it may be called at any time.
        unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
    }
}
