//! Reads several splits of a table with one reader.

use std::collections::VecDeque;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use coldframe_core::{DamageLog, Error, Result, Scan, ScanReader, Split};

use crate::File;
use crate::dataset::rows::{SPLIT_BYTES, bounded_waiting, waiting_bytes};
use crate::opened::Opened;
use crate::stream::{Stream, already_open};

/// The rows of some splits, one after another; a limit counts the rows of all of them.
pub struct TableScan {
    file: File,
    scan: Scan,
    rest: VecDeque<Split>,
    current: ScanReader,
    /// How to decode in parallel; taken when the first batch is requested.
    ahead: Option<Ahead>,
    /// If set, the stream decodes the rows, and `current` only supplies the schema.
    stream: Option<Stream>,
    damage: DamageLog,
}

/// How splits are decoded in parallel.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// The minimum bytes of a split.
    pub split_bytes: u64,
    /// Maximum decoded bytes that wait for the consumer.
    pub waiting_bytes: u64,
}

impl Ahead {
    /// Suitable values for this many threads.
    pub fn for_threads(threads: usize) -> Self {
        Self { split_bytes: SPLIT_BYTES, waiting_bytes: waiting_bytes(threads) }
    }
}

impl TableScan {
    /// Checks names and types; no row is read.
    pub fn try_new(file: File, scan: Scan, splits: Vec<Split>) -> Result<Self> {
        let damage = DamageLog::default();
        let mut rest = VecDeque::from(splits);
        // A table without splits has no rows, but it has a schema.
        let first = rest.pop_front().unwrap_or(Split { part: 0, range: 0..0, rows: Some(0) });
        let current = file.scan_logged(&scan, &first, damage.clone())?;
        Ok(Self { file, scan, rest, current, ahead: None, stream: None, damage })
    }

    /// Reads the whole table: up to [`Scan::threads`] threads decode its splits in parallel; they start when the first batch
    /// is requested. A scan with a limit uses one thread, since it may end anywhere.
    pub fn try_new_parallel(file: File, scan: Scan, ahead: Ahead) -> Result<Self> {
        if file.max_threads(&scan) < 2 || scan.limit.is_some() {
            let whole = file.whole()?;
            return Self::try_new(file, scan, whole);
        }
        Ok(Self { ahead: Some(ahead), ..Self::try_new(file, scan, Vec::new())? })
    }

    /// Divides the table into splits, and starts the threads if there is work for at least two.
    fn start(&mut self, ahead: Ahead) -> Result<()> {
        let splits = self.file.table.splits(ahead.split_bytes)?;
        let threads = self.file.max_threads(&self.scan).min(coldframe_core::threads::MAX).min(splits.len());
        if threads < 2 {
            self.rest = splits.into();
        } else {
            let (file, scan) = (self.file.clone(), self.scan.clone());
            let open = already_open(Opened { file, scan, splits, adaptation: None });
            let waiting = bounded_waiting(ahead.waiting_bytes, threads, self.file.memory_limit);
            self.stream = Some(Stream::start(vec![open], threads, waiting)?);
        }
        Ok(())
    }

    /// The damage found so far.
    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// The next batch that has rows. Errors carry the file's path.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.advance().map_err(|e| self.file.named(e))
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(ahead) = self.ahead.take() {
            self.start(ahead)?;
        }
        if let Some(stream) = &mut self.stream {
            let batch = stream.next_batch(&self.damage);
            stream.take_notices().into_iter().for_each(|(_, notice)| self.damage.notify(notice));
            return batch;
        }
        loop {
            if self.scan.limit == Some(0) {
                return Ok(None);
            }
            if let Some(batch) = self.current.next_batch()? {
                if let Some(left) = &mut self.scan.limit {
                    *left = left.saturating_sub(batch.num_rows() as u64);
                }
                return Ok(Some(batch));
            }
            let Some(split) = self.rest.pop_front() else { return Ok(None) };
            self.current = self.file.scan_logged(&self.scan, &split, self.damage.clone())?;
        }
    }
}

impl Iterator for TableScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external = |e: Error| ArrowError::ExternalError(Box::new(e));
        self.next_batch().map_err(external).transpose()
    }
}

impl RecordBatchReader for TableScan {
    fn schema(&self) -> SchemaRef {
        self.current.output_schema().clone()
    }
}
