//! One pass over the rows of files, or of parts of them, in their order.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use coldframe_core::{Damage, DamageLog, Error, Fault, Notice, OnError, Result, Scan, Split, Work};

use crate::opened::{Opened, Reader};
use crate::stream::{Open, Stream, already_open};

/// If several threads decode a file, each gets at least this many bytes of it at a time.
pub(crate) const SPLIT_BYTES: u64 = 8 << 20;

/// Maximum decoded bytes that wait for the consumer: per thread, and for all threads together.
const WAITING_BYTES: u64 = 32 << 20;
const MAX_WAITING_BYTES: u64 = 512 << 20;

/// Maximum decoded bytes that wait for the consumer, with this many threads.
pub(crate) fn waiting_bytes(threads: usize) -> u64 {
    WAITING_BYTES.saturating_mul(threads as u64).min(MAX_WAITING_BYTES)
}

/// The part of that buffer that the memory of a scan, `memory_limit` for each thread, allows: a quarter.
pub(crate) fn bounded_waiting(waiting: u64, threads: usize, memory_limit: u64) -> u64 {
    waiting.min((memory_limit / 4).saturating_mul(threads as u64))
}

/// The damage of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDamage {
    /// The file's path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// What was lost, and why.
    pub damage: Damage,
}

/// A file, or a part of one, before it is opened.
pub(super) struct Unopened {
    /// Opens the file and divides it into splits of about this many bytes; `None` if none of its rows is
    /// needed.
    pub(super) open: Box<dyn Fn(u64) -> Result<Option<Opened>> + Send + Sync>,
    pub(super) path: String,
    /// The length of the file, if known from a listing.
    pub(super) bytes: u64,
}

impl Unopened {
    /// The damage of a file that cannot be opened: all of it is lost.
    fn lost(self, e: &Error) -> FileDamage {
        let structure = Some(e.structure()).filter(|structure| !structure.is_empty());
        let structure = structure.unwrap_or_else(|| "file".to_owned());
        let damage = Damage { bytes: 0..self.bytes, rows_lost: None, structure, reason: e.to_string() };
        FileDamage { path: self.path, damage }
    }
}

/// One pass over rows.
pub struct Rows {
    schema: SchemaRef,
    on_error: OnError,
    state: State,
    /// Damage of the files that were read to the end or abandoned.
    damage: Vec<FileDamage>,
    /// Notices about the files that were read, with their paths.
    notices: Vec<(String, Notice)>,
    /// Damage of the file being read. Threads of the pool do not use it.
    log: DamageLog,
}

enum State {
    /// One file after the other, on the caller's thread.
    Alone(Box<Alone>),
    /// On the threads of the pool, which start once the first batch is requested.
    Waiting {
        files: Vec<Unopened>,
        threads: usize,
        memory_limit: u64,
    },
    Together(Stream),
}

struct Alone {
    files: VecDeque<Unopened>,
    current: Option<Current>,
    /// The number of rows still needed, if there is a limit.
    left: Option<u64>,
    /// The work of earlier files.
    work: Work,
}

/// A file that is being read.
struct Current {
    path: String,
    opened: Arc<Opened>,
    splits: VecDeque<Split>,
    reader: Option<Reader>,
    log: DamageLog,
    /// The work of earlier splits.
    work: Work,
}

impl Current {
    fn new(path: String, opened: Opened, log: DamageLog) -> Self {
        let splits = opened.splits.clone().into();
        Self { path, opened: Arc::new(opened), splits, reader: None, log, work: Work::default() }
    }

    fn next_batch(&mut self, left: Option<u64>) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some(batch) = reader.next_batch()?
            {
                return Ok(Some(batch));
            }
            if let Some(ended) = self.reader.take() {
                self.work += ended.work();
            }
            let Some(split) = self.splits.pop_front() else { return Ok(None) };
            self.reader = Some(self.opened.reader(&split, left, self.log.clone())?);
        }
    }

    fn take_notices(&self) -> impl Iterator<Item = (String, Notice)> {
        self.log.take_notices().into_iter().map(|notice| (self.path.clone(), notice))
    }

    /// The work done so far.
    fn work(&self) -> Work {
        let mut work = self.work;
        work += self.reader.as_ref().map(Reader::work).unwrap_or_default();
        work
    }
}

impl Rows {
    /// The rows of `files` for a request. They are read on up to `threads` threads of the pool, or on the
    /// caller's thread if there is one thread, a limit (so that reading may end anywhere), or damage to skip.
    /// `memory_limit`: the share of each thread in the memory of the read.
    pub(super) fn new(
        files: Vec<Unopened>,
        schema: SchemaRef,
        scan: &Scan,
        threads: usize,
        memory_limit: u64,
    ) -> Self {
        let alone = threads < 2 || scan.limit.is_some() || scan.on_error != OnError::Raise;
        let state = if alone {
            State::Alone(Box::new(Alone {
                files: files.into(),
                current: None,
                left: scan.limit,
                work: Work::default(),
            }))
        } else {
            State::Waiting { files, threads, memory_limit }
        };
        let (damage, notices, log) = (Vec::new(), Vec::new(), DamageLog::default());
        Self { schema, on_error: scan.on_error, state, damage, notices, log }
    }

    /// The schema of the returned batches.
    pub fn output_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The damage so far.
    pub fn damage(&self) -> Vec<FileDamage> {
        let mut all = self.damage.clone();
        if let State::Alone(alone) = &self.state
            && let Some(current) = &alone.current
        {
            all.extend(of_file(&current.path, &current.log));
        }
        all
    }

    /// Takes the notices about the files that were read since the last call, with their paths.
    pub fn take_notices(&mut self) -> Vec<(String, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// The counts of changed and skipped values, for the rows that the caller's thread decodes.
    pub fn log(&self) -> &DamageLog {
        &self.log
    }

    /// The work done so far by the caller's thread.
    pub fn work(&self) -> Work {
        let State::Alone(alone) = &self.state else { return Work::default() };
        let mut work = alone.work;
        work += alone.current.as_ref().map(Current::work).unwrap_or_default();
        work
    }

    /// The next batch that has rows. Errors carry the file's path.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let State::Waiting { files, threads, memory_limit } = &mut self.state {
            let (files, threads, memory_limit) = (std::mem::take(files), *threads, *memory_limit);
            self.state = started(files, threads, memory_limit)?;
        }
        match &mut self.state {
            State::Together(stream) => {
                let batch = stream.next_batch(&self.log);
                self.notices.extend(stream.take_notices());
                batch
            }
            State::Alone(alone) => alone.next_batch(self.on_error, &mut self.damage, &mut self.notices),
            State::Waiting { .. } => Ok(None),
        }
    }
}

/// Starts reading, in parallel if there is work for at least two threads.
fn started(files: Vec<Unopened>, threads: usize, memory_limit: u64) -> Result<State> {
    let files = match <[Unopened; 1]>::try_from(files) {
        Ok([file]) => {
            let Some(opened) = (file.open)(SPLIT_BYTES)? else { return Ok(State::nothing()) };
            let threads = threads.min(opened.splits.len());
            if threads < 2 {
                let current = Some(Current::new(file.path, opened, DamageLog::default()));
                let (files, work) = (VecDeque::new(), Work::default());
                return Ok(State::Alone(Box::new(Alone { files, current, left: None, work })));
            }
            let waiting = bounded_waiting(waiting_bytes(threads), threads, memory_limit);
            return Ok(State::Together(Stream::start(vec![already_open(opened)], threads, waiting)?));
        }
        Err(files) => files,
    };
    let open = |file: Unopened| Box::new(move || (file.open)(SPLIT_BYTES)) as Open;
    let files: Vec<Open> = files.into_iter().map(open).collect();
    let waiting = bounded_waiting(waiting_bytes(threads), threads, memory_limit);
    Ok(State::Together(Stream::start(files, threads, waiting)?))
}

impl State {
    fn nothing() -> Self {
        let (files, work) = (VecDeque::new(), Work::default());
        Self::Alone(Box::new(Alone { files, current: None, left: None, work }))
    }
}

impl Alone {
    fn next_batch(
        &mut self,
        on_error: OnError,
        damage: &mut Vec<FileDamage>,
        notices: &mut Vec<(String, Notice)>,
    ) -> Result<Option<RecordBatch>> {
        while self.left != Some(0) {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next_batch(self.left)? {
                    return Ok(Some(self.limited(batch)));
                }
                damage.extend(of_file(&current.path, &current.log));
                notices.extend(current.take_notices());
                self.work += current.work();
                self.current = None;
            }
            let Some(file) = self.files.pop_front() else { return Ok(None) };
            match (file.open)(u64::MAX) {
                Ok(Some(opened)) => {
                    self.current = Some(Current::new(file.path, opened, DamageLog::default()))
                }
                Ok(None) => {}
                Err(e) if on_error != OnError::Raise && Fault::is(&e) => damage.push(file.lost(&e)),
                Err(e) => return Err(e),
            }
        }
        if let Some(current) = self.current.take() {
            damage.extend(of_file(&current.path, &current.log));
            notices.extend(current.take_notices());
            self.work += current.work();
        }
        Ok(None)
    }

    fn limited(&mut self, batch: RecordBatch) -> RecordBatch {
        let Some(left) = &mut self.left else { return batch };
        let rows = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.num_rows());
        *left -= rows as u64;
        if rows < batch.num_rows() { batch.slice(0, rows) } else { batch }
    }
}

fn of_file(path: &str, log: &DamageLog) -> Vec<FileDamage> {
    let named = |damage| FileDamage { path: path.to_owned(), damage };
    log.records().into_iter().map(named).collect()
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external = |e: Error| ArrowError::ExternalError(Box::new(e));
        self.next_batch().map_err(external).transpose()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
