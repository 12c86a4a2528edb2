//! The rows of many files in order, decoded by the pool's threads.
//!
//! ```text
//! file 0 ── split 0 ── reader ──▶ batches ──┐
//!        └─ split 1 ── reader ──▶ batches ──┤   slots, in the order of files and splits
//! file 1 ── split 0 ── queued               ┴──▶ consumer
//! ```
//!
//! Threads take jobs in the order of their slots, whichever file they belong to. The bytes decoded ahead are
//! limited: a reader is set aside if there is no room for its batch, and continues when there is. The slot in
//! front waits only for its own rows to be taken; if no thread is working on it, the consumer decodes it
//! itself. So reading never comes to a halt.
//!
//! Errors are returned in order: before an error, all rows that precede it are returned.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, ArrayRef, RecordBatch};
use coldframe_core::{Damage, DamageLog, Error, Notice, Result};

use crate::opened::{Opened, Reader};
use crate::pool::{Job, Pool, Work, pool};

/// Opens a file when its turn comes; `None` if none of its rows is needed.
pub(crate) type Open = Box<dyn Fn() -> Result<Option<Opened>> + Send + Sync>;

/// Presents an open file as one that is yet to be opened.
pub(crate) fn already_open(opened: Opened) -> Open {
    let opened = Mutex::new(Some(opened));
    Box::new(move || Ok(opened.lock().unwrap_or_else(PoisonError::into_inner).take()))
}

/// The number of a file, and the number of a split in it.
type Place = (usize, usize);

/// Maximum number of slots, in addition to the limit in bytes, because everything read ahead is wasted if the
/// consumer stops early. With many threads the maximum is higher ([`State::top_up`]).
const MAX_SLOTS: usize = 128;

/// The work for a slot.
enum Task {
    Open,
    Read(Arc<Opened>),
    /// Continues a split.
    Resume(Box<Begun>),
}

/// A split that is being read.
struct Begun {
    reader: Reader,
    damage: DamageLog,
    path: Arc<str>,
}

/// What a slot has recorded, once all of its rows were decoded.
#[derive(Default)]
struct Ended {
    damage: Vec<Damage>,
    notices: Vec<(String, Notice)>,
}

impl Begun {
    fn ended(&self) -> Ended {
        let named = |notice| (self.path.to_string(), notice);
        let notices = self.damage.take_notices().into_iter().map(named).collect();
        Ended { damage: self.damage.records(), notices }
    }
}

/// A reader that was set aside because there is no room for its next batch.
struct Parked {
    begun: Box<Begun>,
    batch: RecordBatch,
    bytes: u64,
}

/// The rows of a split.
#[derive(Default)]
struct Slot {
    batches: VecDeque<(RecordBatch, u64)>,
    /// Set once the slot has ended: what it recorded, or its error.
    end: Option<Result<Ended>>,
}

/// The budget of decoded bytes that wait for the consumer.
struct Room {
    of_front: u64,
    of_others: BTreeMap<Place, u64>,
    sum_of_others: u64,
    max: u64,
}

impl Room {
    fn new(max: u64) -> Self {
        Self { of_front: 0, of_others: BTreeMap::new(), sum_of_others: 0, max }
    }

    /// Reserves room for `bytes` of a slot, if there is enough room. A single batch may be larger than the
    /// limit.
    fn enter(&mut self, is_front: bool, place: Place, bytes: u64) -> bool {
        let already = if is_front { self.of_front } else { self.sum_of_others };
        if already > 0 && already.saturating_add(bytes) > self.max {
            return false;
        }
        if is_front {
            self.of_front += bytes;
        } else {
            *self.of_others.entry(place).or_default() += bytes;
            self.sum_of_others += bytes;
        }
        true
    }

    /// `bytes` of the slot in front were taken by the consumer.
    fn leave(&mut self, bytes: u64) {
        self.of_front = self.of_front.saturating_sub(bytes);
    }

    /// Another slot is in front now.
    fn front(&mut self, place: Place) {
        self.of_front = self.of_others.remove(&place).unwrap_or_default();
        self.sum_of_others = self.sum_of_others.saturating_sub(self.of_front);
    }
}

struct State {
    /// The first file that is not started yet.
    next_file: usize,
    /// For each open file with splits that are not started: the file, and its next split.
    rest: BTreeMap<usize, (Arc<Opened>, usize)>,
    /// The number of splits of each open file.
    counts: BTreeMap<usize, usize>,
    ready: BTreeMap<Place, Task>,
    parked: BTreeMap<Place, Parked>,
    slots: BTreeMap<Place, Slot>,
    /// Slots that have not ended.
    unfinished: usize,
    front: Place,
    busy: usize,
    room: Room,
    stopped: bool,
}

struct Shared {
    files: Vec<Open>,
    threads: usize,
    state: Mutex<State>,
    /// Signals the consumer that the state has changed.
    changed: Condvar,
}

impl State {
    /// Adds slots that may be started to the ready queue: enough to keep every thread busy, and always the
    /// slot in front. Returns how many it added.
    fn top_up(&mut self, files: usize, threads: usize) -> usize {
        let before = self.ready.len();
        let max = MAX_SLOTS.max(4 * threads);
        while self.unfinished < 2 * threads && self.slots.len() < max && self.begin(files) {}
        // The front slot must be started even if other slots fill the window.
        while !self.slots.contains_key(&self.front) && self.begin(files) {}
        self.ready.len().saturating_sub(before)
    }

    /// Starts the next slot.
    fn begin(&mut self, files: usize) -> bool {
        let (place, task) = if let Some(mut first) = self.rest.first_entry() {
            let file = *first.key();
            let (opened, next) = first.get_mut();
            let place = (file, *next);
            let task = Task::Read(opened.clone());
            *next += 1;
            if *next >= opened.splits.len() {
                first.remove();
            }
            (place, task)
        } else if self.next_file < files {
            let place = (self.next_file, 0);
            self.next_file += 1;
            (place, Task::Open)
        } else {
            return false;
        };
        self.slots.insert(place, Slot::default());
        self.unfinished += 1;
        self.ready.insert(place, task);
        true
    }

    fn end(&mut self, place: Place, end: Result<Ended>) {
        if let Some(slot) = self.slots.get_mut(&place)
            && slot.end.is_none()
        {
            slot.end = Some(end);
            self.unfinished -= 1;
        }
    }

    /// Resumes the parked readers whose batches have room now. Returns their number.
    fn unpark(&mut self) -> usize {
        let mut woken = 0;
        while let Some((place, parked)) = self.parked.first_key_value() {
            let (place, bytes) = (*place, parked.bytes);
            if !self.room.enter(place == self.front, place, bytes) {
                break;
            }
            if let Some(Parked { begun, batch, bytes }) = self.parked.remove(&place) {
                if let Some(slot) = self.slots.get_mut(&place) {
                    slot.batches.push_back((batch, bytes));
                }
                self.ready.insert(place, Task::Resume(begun));
                woken += 1;
            }
        }
        woken
    }

    /// The slot in front has ended. Returns whether there is another slot.
    fn advance(&mut self, files: usize) -> bool {
        self.slots.remove(&self.front);
        let (file, split) = self.front;
        let count = self.counts.get(&file).copied().unwrap_or(0);
        self.front = if split + 1 < count {
            (file, split + 1)
        } else {
            self.counts.remove(&file);
            (file + 1, 0)
        };
        self.room.front(self.front);
        self.front.0 < files
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a slot until it has ended or there is no room. `direct`: the caller is the consumer, so the first batch is
    /// returned instead of being put into the slot.
    fn work(&self, place: Place, task: Task, direct: bool) -> Option<RecordBatch> {
        let done = catch_unwind(AssertUnwindSafe(|| self.proceed(place, task, direct)));
        let mut state = self.lock();
        state.busy -= 1;
        let batch = match done {
            Ok(Ok(batch)) => batch,
            Ok(Err(e)) => {
                state.end(place, Err(e));
                None
            }
            Err(_) => {
                state
                    .end(place, Err(Error::invalid("a reading thread panicked before the end of its split")));
                None
            }
        };
        // The consumer starts slots too, but only when it takes rows. With small files, the threads would
        // have to wait for the consumer.
        let more = if state.stopped { 0 } else { state.top_up(self.files.len(), self.threads) };
        drop(state);
        self.changed.notify_one();
        // A thread of the pool takes one of these jobs itself.
        wake(if direct { more } else { more.saturating_sub(1) });
        batch
    }

    fn proceed(&self, place: Place, task: Task, direct: bool) -> Result<Option<RecordBatch>> {
        let Some(mut begun) = self.begin(place, task)? else { return Ok(None) };
        loop {
            let Some(batch) = begun.reader.next_batch()? else {
                let ended = begun.ended();
                self.lock().end(place, Ok(ended));
                return Ok(None);
            };
            let mut state = self.lock();
            if state.stopped {
                return Ok(None);
            }
            if direct {
                state.ready.insert(place, Task::Resume(begun));
                return Ok(Some(batch));
            }
            let (bytes, is_front) = (bytes_of(&batch), state.front == place);
            if !state.room.enter(is_front, place, bytes) {
                state.parked.insert(place, Parked { begun, batch, bytes });
                return Ok(None);
            }
            if let Some(slot) = state.slots.get_mut(&place) {
                slot.batches.push_back((batch, bytes));
            }
            drop(state);
            if is_front {
                self.changed.notify_one();
            }
        }
    }

    /// The reader of a slot; `None` if the slot has no rows.
    fn begin(&self, place: Place, task: Task) -> Result<Option<Box<Begun>>> {
        let opened = match task {
            Task::Resume(begun) => return Ok(Some(begun)),
            Task::Read(opened) => opened,
            Task::Open => {
                let opened = self.files.get(place.0).map(|open| open()).transpose()?.flatten();
                let Some(opened) = opened.filter(|opened| !opened.splits.is_empty()) else {
                    self.lock().end(place, Ok(Ended::default()));
                    return Ok(None);
                };
                let opened = Arc::new(opened);
                if opened.splits.len() > 1 {
                    let mut state = self.lock();
                    state.counts.insert(place.0, opened.splits.len());
                    state.rest.insert(place.0, (opened.clone(), 1));
                    let more = state.top_up(self.files.len(), self.threads);
                    drop(state);
                    wake(more);
                }
                opened
            }
        };
        let begun = begun(&opened, place)?;
        if begun.reader.reads_ahead() {
            self.prime_next();
        }
        Ok(Some(begun))
    }

    /// Requests the bytes of the next split while this one is decoded.
    fn prime_next(&self) {
        let next = {
            let mut state = self.lock();
            let next = state.ready.iter().find(|(_, task)| matches!(task, Task::Read(_))).map(|(at, _)| *at);
            next.and_then(|place| Some((place, state.ready.remove(&place)?)))
        };
        let Some((place, Task::Read(opened))) = next else { return };
        let begun = begun(&opened, place);
        let mut state = self.lock();
        match begun {
            Ok(begun) => {
                state.ready.insert(place, Task::Resume(begun));
            }
            Err(e) => state.end(place, Err(e)),
        }
    }

    /// Decodes the front slot if no thread does; otherwise waits for the thread that does. If this thread
    /// decoded a batch, it is returned as the `Err`.
    fn work_or_wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        front: Place,
    ) -> Result<MutexGuard<'s, State>, RecordBatch> {
        let task = if state.busy < self.threads { state.ready.remove(&front) } else { None };
        let Some(task) = task else {
            return Ok(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        };
        state.busy += 1;
        drop(state);
        match self.work(front, task, true) {
            Some(batch) => {
                wake(1);
                Err(batch)
            }
            None => Ok(self.lock()),
        }
    }
}

/// Starts reading a split and requests its first bytes.
fn begun(opened: &Arc<Opened>, place: Place) -> Result<Box<Begun>> {
    let damage = DamageLog::default();
    let split = opened
        .splits
        .get(place.1)
        .ok_or_else(|| Error::invalid("expected a split of the file, found an index past its splits"))?;
    let mut reader = opened.reader(split, None, damage.clone())?;
    reader.prime();
    Ok(Box::new(Begun { reader, damage, path: opened.file.path.clone() }))
}

/// Wakes the pool for `more` jobs.
fn wake(more: usize) {
    if more > 0
        && let Ok(pool) = pool()
    {
        (0..more).for_each(|_| pool.wake());
    }
}

impl Work for Shared {
    fn claim(self: Arc<Self>) -> Option<Job> {
        let mut state = self.lock();
        if state.stopped || state.busy >= self.threads {
            return None;
        }
        let (place, task) = state.ready.pop_first()?;
        state.busy += 1;
        drop(state);
        Some(Box::new(move || drop(self.work(place, task, false))))
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let ready = std::mem::take(&mut state.ready);
        let parked = std::mem::take(&mut state.parked);
        let slots = std::mem::take(&mut state.slots);
        drop(state);
        // These are dropped outside the lock: they may be large, and dropping them may run the caller's code.
        drop((ready, parked, slots));
        self.changed.notify_all();
    }

    fn threads(&self) -> usize {
        self.threads
    }
}

/// The rows of several files, one file after the other.
pub(crate) struct Stream {
    shared: Arc<Shared>,
    work: Arc<dyn Work>,
    pool: Arc<Pool>,
    ended: bool,
    notices: Vec<(String, Notice)>,
}

impl Stream {
    /// Reads files with up to `threads` threads; at most `max_waiting` decoded bytes wait for the consumer.
    pub(crate) fn start(files: Vec<Open>, threads: usize, max_waiting: u64) -> Result<Self> {
        let state = State {
            next_file: 0,
            rest: BTreeMap::new(),
            counts: BTreeMap::new(),
            ready: BTreeMap::new(),
            parked: BTreeMap::new(),
            slots: BTreeMap::new(),
            unfinished: 0,
            front: (0, 0),
            busy: 0,
            room: Room::new(max_waiting),
            stopped: false,
        };
        let ended = files.is_empty();
        let shared = Arc::new(Shared { files, threads, state: Mutex::new(state), changed: Condvar::new() });
        let (pool, work) = (pool()?, shared.clone() as Arc<dyn Work>);
        pool.add(work.clone());
        let more = shared.lock().top_up(shared.files.len(), threads);
        wake(more);
        Ok(Self { shared, work, pool, ended, notices: Vec::new() })
    }

    /// Takes the notices about the splits that ended since the last call, with the paths of their files.
    pub(crate) fn take_notices(&mut self) -> Vec<(String, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// The next batch in the order of the files.
    pub(crate) fn next_batch(&mut self, damage: &DamageLog) -> Result<Option<RecordBatch>> {
        let shared = self.shared.clone();
        let files = shared.files.len();
        let mut state = shared.lock();
        while !self.ended {
            if state.stopped {
                drop(state);
                return Err(self.stopped());
            }
            let front = state.front;
            let Some(slot) = state.slots.get_mut(&front) else {
                let more = state.top_up(files, shared.threads);
                drop(state);
                wake(more);
                state = shared.lock();
                continue;
            };
            if let Some((batch, bytes)) = slot.batches.pop_front() {
                state.room.leave(bytes);
                let more = state.unpark();
                drop(state);
                wake(more);
                return Ok(Some(batch));
            }
            match slot.end.take() {
                Some(Ok(slot)) => {
                    slot.damage.into_iter().for_each(|record| damage.push(record));
                    self.notices.extend(slot.notices);
                    self.ended = !state.advance(files);
                    let more = state.unpark() + state.top_up(files, shared.threads);
                    drop(state);
                    wake(more);
                    state = shared.lock();
                }
                Some(Err(e)) => {
                    self.ended = true;
                    drop(state);
                    self.work.stop();
                    return Err(e);
                }
                None => {
                    state = match shared.work_or_wait(state, front) {
                        Ok(state) => state,
                        Err(batch) => return Ok(Some(batch)),
                    }
                }
            }
        }
        drop(state);
        self.pool.remove(&self.work);
        Ok(None)
    }

    #[cold]
    fn stopped(&mut self) -> Error {
        self.ended = true;
        Error::invalid("reading was stopped because the program ends")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.work.stop();
        self.pool.remove(&self.work);
    }
}

/// The size of the batch's rows alone, since batches of one unit may share the same memory.
fn bytes_of(batch: &RecordBatch) -> u64 {
    let of = |column: &ArrayRef| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of).fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Small files are read ahead up to the limit, even if nobody takes rows.
    #[test]
    fn threads_read_ahead_up_to_the_limit() {
        let opened = Arc::new(AtomicUsize::new(0));
        let file = || -> Open {
            let opened = opened.clone();
            Box::new(move || {
                opened.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            })
        };
        let files = (0..MAX_SLOTS + 100).map(|_| file()).collect();
        let mut stream = Stream::start(files, 2, 1 << 20).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while opened.load(Ordering::Relaxed) < MAX_SLOTS {
            assert!(Instant::now() < end, "{} files were opened", opened.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(opened.load(Ordering::Relaxed), MAX_SLOTS);
        assert!(stream.next_batch(&DamageLog::default()).unwrap().is_none());
        assert_eq!(opened.load(Ordering::Relaxed), MAX_SLOTS + 100);
    }

    /// The waiting bytes are limited. The front slot waits only for its own rows, and a single batch may exceed the limit.
    #[test]
    fn rows_wait_until_there_is_room() {
        let mut room = Room::new(100);
        assert!(room.enter(false, (0, 1), 90));
        assert!(room.enter(true, (0, 0), 70));
        assert!(!room.enter(true, (0, 0), 50) && !room.enter(false, (0, 2), 20));
        room.leave(70);
        assert!(room.enter(true, (0, 0), 50));
        // The next slot is now in front; its rows no longer count against the later slots.
        room.front((0, 1));
        assert!(room.enter(false, (0, 2), 20));
        room.leave(90);
        assert!(room.enter(true, (0, 1), 1000) && !room.enter(true, (0, 1), 1));
    }
}
