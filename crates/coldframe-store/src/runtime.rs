//! The async runtime of requests: one per process (see [`coldframe_core::process`]).

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "hdfs")]
use std::time::Duration;

use coldframe_core::process::PerProcess;
use coldframe_core::{Error, Result};
use tokio::runtime::{Handle, Runtime};

/// Maximum number of connections of a kind that are kept for reuse.
const KEPT: usize = 16;

/// The connection among `all` for which `same` is true, or a new connection.
pub(crate) fn kept<T: Clone>(all: &Mutex<Vec<T>>, same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> T {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|connection| same(connection)) {
        return known.clone();
    }
    let made = make();
    if all.len() >= KEPT {
        all.remove(0);
    }
    all.push(made.clone());
    made
}

fn runtime() -> Result<Arc<Runtime>> {
    static RUNTIME: PerProcess<Runtime> = PerProcess::new();
    RUNTIME.get(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Ok(builder.worker_threads(2).thread_name("coldframe-io").enable_all().build()?)
    })
}

/// The runtime of this process.
#[cfg(feature = "hdfs")]
pub(crate) fn handle() -> Result<Handle> {
    Ok(runtime()?.handle().clone())
}

/// Waits for a future. Must not be used in a thread of a runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> Result<T> {
    if Handle::try_current().is_ok() {
        return Err(Error::invalid(
            "reading from a store inside an asynchronous task: use a separate thread",
        ));
    }
    Ok(runtime()?.block_on(future))
}

/// Starts a future and does not wait for it.
pub(crate) fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<impl FnOnce() -> Result<T> + Send> {
    let task = runtime()?.spawn(future);
    Ok(move || wait(task)?.map_err(|e| Error::from(std::io::Error::other(e))))
}

/// Waits for a future with a time limit.
#[cfg(feature = "hdfs")]
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> std::io::Result<T> {
    tokio::time::timeout(limit, future).await.map_err(|_| {
        let message = format!("no answer within {} s (storage option `timeout`)", limit.as_secs_f64());
        std::io::Error::new(std::io::ErrorKind::TimedOut, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_future_can_be_waited_for_later() {
        let later = start(async { 7 }).unwrap();
        assert_eq!(later().unwrap(), 7);
        let inside = runtime().unwrap().block_on(async { wait(async { 1 }) });
        assert!(inside.is_err());
    }
}
