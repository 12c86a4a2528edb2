//! One pass over several splits of a table, as one reader.

use std::collections::VecDeque;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use coldframe_core::{DamageLog, Error, Result, Scan, ScanReader, Split};

use crate::File;
use crate::parallel::Workers;

/// The rows of some splits, one after another; a limit counts over all of them.
pub struct TableScan {
    file: File,
    scan: Scan,
    rest: VecDeque<Split>,
    current: ScanReader,
    /// Decode instead of `current`, which then only knows the schema.
    workers: Option<Workers>,
    damage: DamageLog,
}

impl TableScan {
    /// Checks names and types; no row is read.
    pub fn try_new(file: File, scan: Scan, splits: Vec<Split>) -> Result<Self> {
        let damage = DamageLog::default();
        let mut rest = VecDeque::from(splits);
        // A table without splits has no rows, but a schema.
        let first = rest.pop_front().unwrap_or(Split { part: 0, range: 0..0, rows: Some(0) });
        let current = file.scan_logged(&scan, &first, damage.clone())?;
        Ok(Self { file, scan, rest, current, workers: None, damage })
    }

    /// The same, several splits decoded side by side by up to [`Scan::threads`] threads. A limit is left to one: it may
    /// end anywhere.
    pub fn try_new_parallel(file: File, scan: Scan, splits: Vec<Split>) -> Result<Self> {
        let threads = file.most_threads(&scan).min(coldframe_core::threads::MOST).min(splits.len());
        if threads < 2 || scan.limit.is_some() {
            return Self::try_new(file, scan, splits);
        }
        let mut all = Self::try_new(file, scan, Vec::new())?;
        all.workers = Some(Workers::start(&all.file, &all.scan, splits, threads)?);
        Ok(all)
    }

    /// What was lost so far.
    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// The next batch that has rows. Errors carry the file's path.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.advance().map_err(|e| self.file.named(e))
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(workers) = &mut self.workers {
            return workers.next_batch(&self.damage);
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
