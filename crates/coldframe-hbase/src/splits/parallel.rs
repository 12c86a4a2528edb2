//! Does the same work for several regions of a table in parallel.

use std::sync::OnceLock;

use coldframe_core::{Error, Result, threads};

/// For how many regions at a time. Most of the time is spent waiting for a store.
const AT_ONCE: usize = 16;

/// Calls `work` for each of `items`, several in parallel.
pub(crate) fn map_each<I: Sync, T: Send + Sync>(
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let done: Vec<OnceLock<Result<T>>> = items.iter().map(|_| OnceLock::new()).collect();
    threads::share(items.iter().zip(&done), AT_ONCE, |(item, place)| drop(place.set(work(item))));
    let lost = || Err(Error::invalid("a worker thread ended early"));
    done.into_iter().map(|place| place.into_inner().unwrap_or_else(lost)).collect()
}
