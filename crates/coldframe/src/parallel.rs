//! The rows of several splits, decoded by several threads and handed out in order.
//!
//! ```text
//! splits ──▶ jobs ──▶ thread ──▶ batches of split 0 ──┐
//!                └──▶ thread ──▶ batches of split 1 ──┴──▶ one after the other
//! ```
//!
//! No more than twice as many splits as threads are under way, and what they have decoded waits for its turn within a
//! bound: so memory depends neither on the length of the table nor on how slowly its rows are taken.
//!
//! Units come first: the columns of one are shared among threads ([`coldframe_core::threads`]) that have no split of their own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use arrow_array::{Array, ArrayRef, RecordBatch};
use coldframe_core::{Damage, DamageLog, Error, Result, Scan, ScanReader, Split};

use crate::File;

/// What a thread has of a split.
enum Message {
    /// Rows, and the bytes that [`Room`] counts for them.
    Batch(RecordBatch, u64),
    /// What was lost; nothing follows.
    End(Vec<Damage>),
    Failed(Error),
}

/// A split to decode, and where its rows go.
struct Job {
    split: Split,
    /// How many splits come before it.
    number: u64,
    rows: Sender<Message>,
}

/// The next job, once there is one; none where there will be none.
fn awaited(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Takes a job only if one is ready. A thread that waits for a job holds the lock: blocking on it in the middle of a split could
/// deadlock, since the next job may come only after this split's rows are taken.
fn at_hand(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    match queue.try_lock() {
        Ok(queue) => queue.try_recv().ok(),
        Err(TryLockError::Poisoned(queue)) => queue.into_inner().try_recv().ok(),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The bytes that wait to be taken.
struct Room {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    most: u64,
}

#[derive(Default)]
struct Waiting {
    /// The number of the split whose rows are handed out now.
    first: u64,
    /// Bytes of that one, and of those behind it.
    of_first: u64,
    of_others: BTreeMap<u64, u64>,
    /// Nobody takes any more.
    stopped: bool,
}

impl Room {
    fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), changed: Condvar::new(), most })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for `bytes` of a split; false where nobody wants them any more.
    ///
    /// The first split waits for none but its own rows, which are being taken: so there is always a thread that can go on.
    fn enter(&self, number: u64, bytes: u64) -> bool {
        let mut waiting = self.lock();
        while !waiting.stopped {
            let is_first = number == waiting.first;
            let already = if is_first { waiting.of_first } else { waiting.of_others.values().sum() };
            if already == 0 || already.saturating_add(bytes) <= self.most {
                if is_first {
                    waiting.of_first += bytes;
                } else {
                    *waiting.of_others.entry(number).or_default() += bytes;
                }
                return true;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// `bytes` of the first split were taken.
    fn leave(&self, bytes: u64) {
        let mut waiting = self.lock();
        waiting.of_first = waiting.of_first.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// All rows of the first split were taken.
    fn next(&self) {
        let mut waiting = self.lock();
        waiting.first += 1;
        let first = waiting.first;
        waiting.of_first = waiting.of_others.remove(&first).unwrap_or_default();
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Threads at work on the splits of a scan.
pub(crate) struct Workers {
    /// Dropped when no split is left, which ends the threads.
    jobs: Option<Sender<Job>>,
    waiting: VecDeque<Split>,
    under_way: VecDeque<Receiver<Message>>,
    started: u64,
    room: Arc<Room>,
}

impl Workers {
    /// Starts `threads` threads; `most_waiting` decoded bytes may wait for their turn.
    pub(crate) fn start(
        file: &File,
        scan: &Scan,
        splits: Vec<Split>,
        threads: usize,
        most_waiting: u64,
    ) -> Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let room = Room::new(most_waiting);
        for _ in 0..threads {
            let (file, scan, queue, room) = (file.clone(), scan.clone(), queue.clone(), room.clone());
            thread::Builder::new().name("coldframe-read".to_owned()).spawn(move || {
                let begin = |job: Job| Begun::new(&file, &scan, job);
                let mut next: Option<Begun> = None;
                while let Some(begun) = next.take().or_else(|| awaited(&queue).map(begin)) {
                    // The bytes of the split behind come while this one is decoded, where it is worth asking early.
                    next = if begun.asks_early() { at_hand(&queue).map(begin) } else { None };
                    begun.run(&room);
                }
            })?;
        }
        let mut workers = Self {
            jobs: Some(jobs),
            waiting: splits.into(),
            under_way: VecDeque::with_capacity(2 * threads),
            started: 0,
            room,
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
            drop(jobs.send(Job { split, number: self.started, rows }));
        }
        self.started += 1;
        self.under_way.push_back(receiver);
    }

    /// The next batch in the order of the splits.
    pub(crate) fn next_batch(&mut self, damage: &DamageLog) -> Result<Option<RecordBatch>> {
        while let Some(split) = self.under_way.front() {
            match split.recv() {
                Ok(Message::Batch(batch, bytes)) => {
                    self.room.leave(bytes);
                    return Ok(Some(batch));
                }
                Ok(Message::End(lost)) => {
                    lost.into_iter().for_each(|d| damage.push(d));
                    self.under_way.pop_front();
                    self.room.next();
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
        self.room.stop();
        self.jobs = None;
        self.waiting.clear();
        self.under_way.clear();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A split whose first bytes were asked for.
struct Begun {
    job: Job,
    damage: DamageLog,
    reader: Result<ScanReader>,
}

impl Begun {
    fn new(file: &File, scan: &Scan, job: Job) -> Self {
        let damage = DamageLog::default();
        let mut reader = file.scan_logged(scan, &job.split, damage.clone());
        if let Ok(reader) = &mut reader {
            reader.prime();
        }
        Self { job, damage, reader }
    }

    fn asks_early(&self) -> bool {
        self.reader.as_ref().is_ok_and(ScanReader::asks_early)
    }

    fn run(self, room: &Room) {
        let Self { job, damage, reader } = self;
        let read = || -> Result<bool> {
            let mut reader = reader?;
            while let Some(batch) = reader.next_batch()? {
                let bytes = bytes_of(&batch);
                if !room.enter(job.number, bytes) || job.rows.send(Message::Batch(batch, bytes)).is_err() {
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
}

/// The bytes of the rows alone: batches of one unit may be parts of the same memory.
fn bytes_of(batch: &RecordBatch) -> u64 {
    let of = |column: &ArrayRef| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of).fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What waits is bounded, but the first split can always go on, and nobody waits for a reader that is gone.
    #[test]
    fn splits_wait_for_room_and_the_first_for_its_own_rows_only() {
        let room = Room::new(100);
        assert!(room.enter(1, 90));
        assert!(room.enter(0, 70));
        thread::scope(|scope| {
            let (done, first) = channel();
            let (room, blocked) = (&room, done.clone());
            scope.spawn(move || done.send((0, room.enter(0, 50))));
            scope.spawn(move || blocked.send((2, room.enter(2, 20))));
            assert!(first.recv_timeout(std::time::Duration::from_millis(50)).is_err());
            room.leave(70);
            assert_eq!(first.recv().unwrap(), (0, true));
            // The rows of split 1 are the first now, and no longer in the way of those behind it.
            room.next();
            assert_eq!(first.recv().unwrap(), (2, true));
        });
        // One batch may be larger than the room.
        room.leave(90);
        assert!(room.enter(1, 1000));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| room.enter(1, 1));
            room.stop();
            assert!(!waiting.join().unwrap());
        });
    }
}
