//! An open file and its splits to read.

use std::sync::Arc;

use arrow_array::RecordBatch;
use coldframe_core::{DamageLog, Result, Scan, ScanReader, Split, Work};

use crate::File;
use crate::dataset::fragment::Adaptation;

/// An open file with its splits to read.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) scan: Scan,
    pub(crate) splits: Vec<Split>,
    /// Converts the file's rows to rows of the table that the file belongs to, if any.
    pub(crate) adaptation: Option<Adaptation>,
}

impl Opened {
    /// Starts reading a split, which has to return at most `limit` rows. Losses are pushed to `damage`.
    pub(crate) fn reader(
        self: &Arc<Self>,
        split: &Split,
        limit: Option<u64>,
        damage: DamageLog,
    ) -> Result<Reader> {
        let rows = match self.scan.limit.and(limit) {
            Some(left) => {
                let scan = Scan { limit: Some(left), ..self.scan.clone() };
                self.file.scan_logged(&scan, split, damage)?
            }
            None => self.file.scan_logged(&self.scan, split, damage)?,
        };
        Ok(Reader { opened: self.clone(), rows })
    }
}

/// The rows of a split of an open file.
pub(crate) struct Reader {
    opened: Arc<Opened>,
    rows: ScanReader,
}

impl Reader {
    /// The next batch that has rows. Errors carry the file's path.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let next = self.rows.next_batch().map_err(|e| self.opened.file.named(e))?;
            let (Some(batch), Some(adaptation)) = (&next, &self.opened.adaptation) else { return Ok(next) };
            let adapted = adaptation.adapt(batch)?;
            if adapted.num_rows() > 0 {
                return Ok(Some(adapted));
            }
        }
    }

    /// The work done so far.
    pub(crate) fn work(&self) -> Work {
        self.rows.work()
    }

    /// Requests the bytes of the first units without waiting for them, if the source is slow enough to be
    /// read ahead.
    pub(crate) fn prime(&mut self) {
        self.rows.prime();
    }

    /// Whether to request the next split's bytes early.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.rows.reads_ahead()
    }
}
