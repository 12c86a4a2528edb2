//! Memory with an inaccessible page on either side: an access outside ends the process.
//!
//! ```text
//! | page: no access | page .. page: the values, at the end or at the start | page: no access |
//! ```
//!
//! This is for tests of decoders that copy through pointers. Each end of their input and output is placed
//! next to an inaccessible page, so that an access one byte out of bounds is a segmentation fault in the test
//! that causes it.

#![expect(unsafe_code, reason = "memory is mapped by the system's own calls")]

use std::ops::{Deref, DerefMut};

/// Values between two inaccessible pages.
#[derive(Debug)]
pub struct Guarded<T: Copy> {
    map: *mut libc::c_void,
    size: usize,
    values: *mut T,
    len: usize,
}

/// A multiple of the page size of every machine that this runs on.
const PAGE: usize = 1 << 16;

impl<T: Copy> Guarded<T> {
    /// `values`, the last directly before an inaccessible page.
    pub fn at_end(values: &[T]) -> Self {
        Self::new(values, true)
    }

    /// `values`, the first directly after an inaccessible page.
    pub fn at_start(values: &[T]) -> Self {
        Self::new(values, false)
    }

    fn new(values: &[T], at_end: bool) -> Self {
        let bytes = size_of_val(values);
        let inner = bytes.next_multiple_of(PAGE).max(PAGE);
        let size = inner + 2 * PAGE;
        // SAFETY: a new private anonymous mapping at an address that the system chooses overlaps nothing.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(map != libc::MAP_FAILED, "no memory for a test");
        // SAFETY: `PAGE` and the `inner` bytes after it are whole pages inside the mapping, which nothing
        // else uses.
        let open = unsafe { libc::mprotect(map.byte_add(PAGE), inner, libc::PROT_READ | libc::PROT_WRITE) };
        assert!(open == 0, "no access to memory for a test");
        let skip = if at_end { inner - bytes } else { 0 };
        // SAFETY: the address is inside the pages opened above, with `bytes` bytes available from there. It
        // is aligned for `T`: pages are, and `bytes` is a multiple of the size of `T`, which is a multiple of
        // its alignment.
        let place = unsafe { map.byte_add(PAGE + skip).cast::<T>() };
        // SAFETY: `values` has that many elements, and does not overlap the new pages.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) };
        Self { map, size, values: place, len: values.len() }
    }
}

impl<T: Copy> Deref for Guarded<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `len` values there. They live as long as the mapping, which lives as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.values, self.len) }
    }
}

impl<T: Copy> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `self` is borrowed exclusively for as long.
        unsafe { std::slice::from_raw_parts_mut(self.values, self.len) }
    }
}

impl<T: Copy> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made, and no reference into it outlives `self`.
        let gone = unsafe { libc::munmap(self.map, self.size) };
        debug_assert!(gone == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_there_and_can_be_changed() {
        for make in [Guarded::<u64>::at_end, Guarded::at_start] {
            for len in [0, 1, 9, 8192, 8193] {
                let values: Vec<u64> = (0..len).collect();
                let mut guarded = make(&values);
                assert_eq!(&guarded[..], &values[..]);
                guarded.fill(7);
                assert!(guarded.iter().all(|v| *v == 7));
            }
        }
        let end = Guarded::at_end(&[1u8, 2, 3]);
        assert_eq!(end.as_ptr_range().end.addr() % 4096, 0);
        assert_eq!(Guarded::at_start(&[1u8]).as_ptr().addr() % 4096, 0);
    }

    /// Shows that the page has an effect: the system ends a child process that reads out of bounds.
    #[test]
    fn a_read_out_of_bounds_ends_the_process() {
        if std::env::var_os("COLDFRAME_TOO_FAR").is_some() {
            let end = Guarded::at_end(&[1u8; 100]);
            // SAFETY: this is not safe. The test shows, in a separate process, that this access is fatal.
            let byte = unsafe { end.as_ptr().add(100).read_volatile() };
            assert_eq!(byte, 0, "read without being stopped");
            return;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "guarded::tests::a_read_out_of_bounds_ends_the_process"])
            .env("COLDFRAME_TOO_FAR", "1")
            .output()
            .unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(libc::SIGSEGV));
    }
}
