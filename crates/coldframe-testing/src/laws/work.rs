//! The work that a file makes: what is read, built and allocated, not how long it takes.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{DamageLog, Node, OnError, Result, Scan, ScanReader, Source, TableFile};

use super::{Opener, Watch};
use crate::alloc::{self, Meter};
use crate::counted::Counted;

/// What one step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Requests to the source.
    pub requests: u64,
    /// Bytes that it handed out.
    pub read: u64,
    /// Nodes of a layout, records of damage, splits.
    pub built: u64,
    /// All memory that was asked for, summed: what is done for each pair of things shows here. 0 where nobody counts.
    pub allocated: u64,
    /// The most that was alive.
    pub peak: u64,
}

/// What must not grow faster than the file, and how much of it is no matter.
type Metric = (&'static str, u64, fn(&Work) -> u64);

const METRICS: [Metric; 5] = [
    ("requests", 64, |w| w.requests),
    ("bytes read", 1 << 20, |w| w.read),
    ("nodes, records and splits", 256, |w| w.built),
    ("bytes allocated", 8 << 20, |w| w.allocated),
    ("bytes alive", 8 << 20, |w| w.peak),
];

/// Beside four times the file, a reader may have so much in memory.
const ALWAYS: u64 = 64 << 20;

fn count(node: &Node) -> u64 {
    1 + node.children.iter().map(count).sum::<u64>()
}

/// A whole scan that keeps nothing; how many records of damage it made.
fn drain(table: &dyn TableFile, on_error: OnError) -> Result<u64> {
    let log = DamageLog::default();
    for split in table.splits(u64::MAX)? {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(table, &scan, &split, log.clone())?;
        while reader.next_batch()?.is_some() {}
    }
    Ok(log.len() as u64)
}

/// A step behind opening: what it built.
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

/// Each step, on a file opened for it alone. An error ends a step and is no complaint: the work until then counts.
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

/// How often a step may read the bytes of a file: what reads a window for each few bytes reads it thousands of times.
const READ: u64 = 32;

/// Panics where a step has more in memory at a time than four times the file and 64 MiB, or reads the file many times. Says nothing where the test
/// binary has not installed [`crate::alloc::Counting`], and so refuses to run there.
pub fn assert_bounded(name: &str, bytes: &Bytes, open: &Opener) {
    assert!(alloc::is_installed(), "this test binary does not count what it allocates");
    let most = 4 * bytes.len() as u64 + ALWAYS;
    for (step, work) in measure(name, bytes, open) {
        assert!(work.peak <= most, "{name}: {step} of {} bytes takes {} bytes", bytes.len(), work.peak);
        let most = READ * bytes.len() as u64 + ALWAYS;
        assert!(work.read <= most, "{name}: {step} of {} bytes reads {} bytes", bytes.len(), work.read);
    }
}

/// Panics where the work of a step grows faster than the file: `files` are the same thing in growing lengths, the
/// next about twice the one before. Twice the length may make a bit more than twice the work (a tree grows a level),
/// four times the length not much more than four times.
pub fn assert_linear(name: &str, files: &[Bytes], open: &Opener) {
    assert!(files.len() > 1, "{name}: one file grows not");
    let measured: Vec<_> = files.iter().map(|bytes| measure(name, bytes, open)).collect();
    let first = files[0].len() as u64;
    let mut complaints = Vec::new();
    for (file, steps) in files.iter().zip(&measured).skip(1) {
        for ((step, work), (_, base)) in steps.iter().zip(&measured[0]) {
            for (metric, floor, of) in METRICS {
                // Half as much again as the length allows.
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
