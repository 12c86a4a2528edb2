//! A pool of decompressors.
//!
//! A zstd context takes 160 KiB and several system calls to create: too much for each of many small files, or
//! for each short-lived thread. So the process keeps a few decompressors for reuse.

use std::sync::{Mutex, TryLockError};

use super::Decompressor;

/// Maximum number of idle decompressors, which take 3 MiB of memory.
const MAX_IDLE: usize = 16;

static IDLE: Mutex<Vec<Decompressor>> = Mutex::new(Vec::new());

/// Runs `task` with an idle decompressor, or with a new one. Never waits for the lock: a child process that
/// was forked while another thread held the lock would wait forever.
pub fn with_decompressor<T>(task: impl FnOnce(&mut Decompressor) -> T) -> T {
    let mut decompressor = idle(Vec::pop).flatten().unwrap_or_default();
    let result = task(&mut decompressor);
    idle(|kept| {
        if kept.len() < MAX_IDLE {
            kept.push(decompressor);
        }
    });
    result
}

/// Calls `access` with the idle decompressors; `None` while another thread holds the lock.
fn idle<T>(access: impl FnOnce(&mut Vec<Decompressor>) -> T) -> Option<T> {
    match IDLE.try_lock() {
        Ok(mut kept) => Some(access(&mut kept)),
        Err(TryLockError::Poisoned(kept)) => Some(access(&mut kept.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Algorithm, Compressor};

    #[test]
    fn decompressors_survive_failures_nesting_and_many_threads() {
        let content = b"rows and more rows, and more rows".repeat(99);
        let packed = Algorithm::ALL.map(|algorithm| {
            let mut packed = Vec::new();
            Compressor::new().compress(algorithm, None, &content, &mut packed).unwrap();
            (algorithm, packed)
        });
        let check = |codec: &mut Decompressor| {
            for (algorithm, packed) in &packed {
                let mut out = Vec::new();
                let half = &packed[..packed.len() / 2];
                let _ = codec.decompress_bounded(*algorithm, half, content.len(), &mut out);
                out.clear();
                codec.decompress_exact(*algorithm, packed, content.len(), &mut out).unwrap();
                assert_eq!(out, content, "{algorithm}");
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 * MAX_IDLE {
                scope.spawn(|| {
                    for _ in 0..3 {
                        with_decompressor(|outer| with_decompressor(|inner| (check(outer), check(inner))));
                    }
                });
            }
        });
        let kept = idle(|kept| kept.len()).unwrap();
        assert!((1..=MAX_IDLE).contains(&kept), "{kept}");
    }
}
