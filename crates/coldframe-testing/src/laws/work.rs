//! The work that a file causes: reads, structures and allocations, but not time.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{DamageLog, Node, OnError, Result, Scan, ScanReader, Source, TableFile};

use super::{Opener, Watch};
use crate::alloc::{self, Meter};
use crate::counted::Counted;

/// The work of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The number of requests to the source.
    pub requests: u64,
    /// The number of bytes that the source returned.
    pub read: u64,
    /// The number of layout nodes, damage records and splits.
    pub built: u64,
    /// The sum of all allocations in bytes, which shows whether work is quadratic; 0 if allocations are not
    /// counted.
    pub allocated: u64,
    /// The largest number of live bytes.
    pub peak: u64,
}

/// A kind of work that must not grow faster than the file: its name, an amount that is always allowed, and
/// the function that returns it.
type Metric = (&'static str, u64, fn(&Work) -> u64);

const METRICS: [Metric; 5] = [
    ("requests", 64, |w| w.requests),
    ("bytes read", 1 << 20, |w| w.read),
    ("nodes, records and splits", 256, |w| w.built),
    ("bytes allocated", 8 << 20, |w| w.allocated),
    ("bytes alive", 8 << 20, |w| w.peak),
];

/// Memory that a reader may use in addition to four times the file.
const ALWAYS: u64 = 64 << 20;

fn count(node: &Node) -> u64 {
    1 + node.children.iter().map(count).sum::<u64>()
}

/// Scans everything and keeps nothing; returns the number of damage records.
fn drain(table: &dyn TableFile, on_error: OnError) -> Result<u64> {
    let log = DamageLog::default();
    for split in table.splits(u64::MAX)? {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(table, &scan, &split, log.clone())?;
        while reader.next_batch()?.is_some() {}
    }
    Ok(log.len() as u64)
}

/// A step after opening; returns how many structures it made.
type Step = fn(&dyn TableFile) -> Result<u64>;

const STEPS: [(&str, Step); 7] = [
    ("open", |_| Ok(0)),
    ("metadata", |t| t.metadata().and_then(|_| t.statistics()).map(|_| 0)),
    ("splits", |t| Ok(t.splits(1 << 16)?.len() as u64)),
    ("inspect", |t| Ok(count(&t.inspect()?))),
    ("read", |t| drain(t, OnError::Raise)),
    ("skip", |t| drain(t, OnError::Skip)),
    ("verify", |t| Ok(coldframe_core::scan::verify(t, |_| Ok(()))?.damage.len() as u64)),
];

/// Measures each step on a newly opened file. An error ends a step and is no violation; the work before it is
/// measured.
pub fn measure(name: &str, bytes: &Bytes, open: &Opener) -> Vec<(&'static str, Work)> {
    let turn = alloc::turn();
    let watch = Watch::start();
    let file = bytes.len() as u64;
    let measured = STEPS.iter().map(|(step, run)| {
        watch.next(format!("{name}, {file} bytes: {step}"));
        let source = Arc::new(Counted::new(bytes.clone()));
        let most = usize::try_from(8 * (4 * file + ALWAYS)).unwrap();
        let meter = Meter::start(&turn, most);
        let done = open(Source::file("memory", source.clone())).and_then(|table| run(table.as_ref()));
        let memory = meter.stop();
        let work = Work {
            requests: source.requests(),
            read: source.read(),
            built: done.unwrap_or(0),
            allocated: memory.total,
            peak: memory.peak,
        };
        (*step, work)
    });
    measured.collect()
}

/// How many times a step may read the whole file. A reader that requests a large range for every few bytes
/// would read it thousands of times.
const READ: u64 = 32;

/// Panics if a step uses more memory than four times the file and 64 MiB, or reads the file too many times.
/// Also panics if the test binary has not installed [`crate::alloc::Counting`].
pub fn assert_bounded(name: &str, bytes: &Bytes, open: &Opener) {
    assert!(alloc::is_installed(), "this test binary does not count what it allocates");
    let most = 4 * bytes.len() as u64 + ALWAYS;
    for (step, work) in measure(name, bytes, open) {
        assert!(work.peak <= most, "{name}: {step} of {} bytes takes {} bytes", bytes.len(), work.peak);
        let most = READ * bytes.len() as u64 + ALWAYS;
        assert!(work.read <= most, "{name}: {step} of {} bytes reads {} bytes", bytes.len(), work.read);
    }
}

/// Panics if the work of a step grows faster than the file. `files` have the same content in growing lengths,
/// each about twice the previous length. If the length doubles, the work may be a little more than double,
/// because a tree may get another level. For four times the length it may be not much more than four times
/// the work.
pub fn assert_linear(name: &str, files: &[Bytes], open: &Opener) {
    assert!(files.len() > 1, "{name}: expected several files of growing length");
    let measured: Vec<_> = files.iter().map(|bytes| measure(name, bytes, open)).collect();
    let first = files[0].len() as u64;
    let mut complaints = Vec::new();
    for (file, steps) in files.iter().zip(&measured).skip(1) {
        for ((step, work), (_, base)) in steps.iter().zip(&measured[0]) {
            for (metric, floor, of) in METRICS {
                // The limit is one and a half times the work that is in proportion to the length.
                let most = of(base).max(floor) * file.len() as u64 / first * 3 / 2;
                if of(work) > most {
                    complaints.push(format!(
                        "{step}: {metric}: {} for {first} bytes, {} for {}",
                        of(base),
                        of(work),
                        file.len()
                    ));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{name} is not linear:\n{}", complaints.join("\n"));
}
