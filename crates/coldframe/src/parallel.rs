//! The rows of several splits, decoded by several threads and handed out in order.
//!
//! ```text
//! splits ──▶ jobs ──▶ thread ──▶ batches of split 0 ──┐
//!                └──▶ thread ──▶ batches of split 1 ──┴──▶ one after the other
//! ```
//!
//! No more than twice as many splits as threads are under way, so that memory is bounded by them and not by the table.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use coldframe_core::{Damage, DamageLog, Error, Result, Scan, Split};

use crate::File;

/// What a thread has of a split.
enum Message {
    Batch(RecordBatch),
    /// What was lost; nothing follows.
    End(Vec<Damage>),
    Failed(Error),
}

/// A split to decode, and where its rows go.
struct Job {
    split: Split,
    rows: Sender<Message>,
}

/// Threads at work on the splits of a scan.
pub(crate) struct Workers {
    /// Dropped when no split is left, which ends the threads.
    jobs: Option<Sender<Job>>,
    waiting: VecDeque<Split>,
    under_way: VecDeque<Receiver<Message>>,
}

impl Workers {
    /// Starts `threads` threads.
    pub(crate) fn start(file: &File, scan: &Scan, splits: Vec<Split>, threads: usize) -> Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let (file, scan, queue) = (file.clone(), scan.clone(), queue.clone());
            thread::Builder::new().name("coldframe-read".to_owned()).spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { break };
                    run(&file, &scan, &job);
                }
            })?;
        }
        let mut workers = Self {
            jobs: Some(jobs),
            waiting: splits.into(),
            under_way: VecDeque::with_capacity(2 * threads),
        };
        for _ in 0..2 * threads {
            workers.enqueue();
        }
        Ok(workers)
    }

    fn enqueue(&mut self) {
        let Some(split) = self.waiting.pop_front() else {
            self.jobs = None;
            return;
        };
        let (rows, receiver) = channel();
        // Where all threads are gone, the receiver says so.
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(Job { split, rows }));
        }
        self.under_way.push_back(receiver);
    }

    /// The next batch in the order of the splits.
    pub(crate) fn next_batch(&mut self, damage: &DamageLog) -> Result<Option<RecordBatch>> {
        while let Some(split) = self.under_way.front() {
            match split.recv() {
                Ok(Message::Batch(batch)) => return Ok(Some(batch)),
                Ok(Message::End(lost)) => {
                    lost.into_iter().for_each(|d| damage.push(d));
                    self.under_way.pop_front();
                    self.enqueue();
                }
                Ok(Message::Failed(e)) => {
                    self.stop();
                    return Err(e);
                }
                Err(_) => {
                    self.stop();
                    return Err(Error::invalid("a reading thread ended before its split did"));
                }
            }
        }
        Ok(None)
    }

    /// Threads end when nobody takes what they send.
    fn stop(&mut self) {
        self.jobs = None;
        self.waiting.clear();
        self.under_way.clear();
    }
}

fn run(file: &File, scan: &Scan, job: &Job) {
    let damage = DamageLog::default();
    let read = || -> Result<bool> {
        let mut reader = file.scan_logged(scan, &job.split, damage.clone())?;
        while let Some(batch) = reader.next_batch()? {
            if job.rows.send(Message::Batch(batch)).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let last = match read() {
        Ok(true) => Message::End(damage.records()),
        Ok(false) => return,
        Err(e) => Message::Failed(e),
    };
    // Nobody waits for it any more where this fails.
    drop(job.rows.send(last));
}
