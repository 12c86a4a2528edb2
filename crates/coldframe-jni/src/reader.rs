//! The batches of a task, split by split, in Spark's types.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use coldframe::dataset::{Part, Rows, Split};
use coldframe::types::conform;
use coldframe::{Fault, OnError, Result, Scan, Work};

use crate::aggregate::Totals;
use crate::damage;
use crate::metered::Meter;
use crate::notes;
use crate::plan::planned;
use crate::task::Task;

/// The work done so far, for Spark's user interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows returned or counted.
    pub rows: u64,
    /// Rows known to be lost by damage.
    pub rows_lost: u64,
    /// Number of damage records.
    pub damaged: u64,
    /// Number of splits that were read.
    pub splits: u64,
    /// The work of decoding.
    pub work: Work,
    /// Bytes read, including footers and indexes.
    pub bytes: u64,
}

impl Counts {
    /// The counts in the order of the fields.
    pub fn to_longs(self) -> [i64; 8] {
        let Work { units, pruned, rows } = self.work;
        [self.rows, self.rows_lost, self.damaged, self.splits, units, pruned, rows, self.bytes]
            .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// The split that is being read.
struct Current {
    split: Split,
    rows: Rows,
}

/// Reads the splits of a task once.
pub struct Reader {
    task: Task,
    rest: VecDeque<Split>,
    current: Option<Current>,
    /// The number of rows still needed, if there is a limit.
    left: Option<u64>,
    /// The counts of earlier splits.
    counts: Counts,
    meter: Meter,
    /// The totals of the aggregates, until they are returned.
    totals: Option<Totals>,
    /// Whether [`Reader::new_file`] has returned the file of the current split.
    is_reported: bool,
}

impl Reader {
    /// Nothing is opened before the first batch is requested.
    pub fn new(task: Task) -> Result<Self> {
        let meter = Meter::default();
        let rest = task.plan.splits.iter().map(|split| meter.over(split.clone())).collect();
        let left = task.plan.scan.limit;
        let asks = !task.aggregates.is_empty();
        let totals = asks.then(|| Totals::new(&task.aggregates, &task.schema)).transpose()?;
        Ok(Self {
            task,
            rest,
            current: None,
            left,
            counts: Counts::default(),
            meter,
            totals,
            is_reported: false,
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let mut work = self.counts.work;
        work += self.current.as_ref().map(|current| current.rows.work()).unwrap_or_default();
        Counts { work, bytes: self.meter.bytes(), ..self.counts }
    }

    /// The file of the newest batch, if the batch before it was of another file. As text, separated by zero bytes:
    /// its path, its bytes, its modification time in milliseconds, and where the split starts and ends in it;
    /// unknown values are empty.
    pub fn new_file(&mut self) -> Option<String> {
        let split = &self.current.as_ref()?.split;
        if std::mem::replace(&mut self.is_reported, true) {
            return None;
        }
        let known = split.file.known.as_ref();
        let range = planned::range(split);
        let text = |number: Option<String>| number.unwrap_or_default();
        let parts = [
            split.file.path.clone(),
            text(known.map(|known| known.len.to_string())),
            text(known.and_then(|known| known.modified).map(|time| time.to_string())),
            text(range.as_ref().map(|range| range.start.to_string())),
            text(range.as_ref().map(|range| range.end.to_string())),
        ];
        Some(parts.join("\0"))
    }

    /// The next batch; for aggregates, one batch with their results.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.task.aggregates.is_empty() {
            return self.decoded()?.map(|batch| self.in_spark(batch)).transpose();
        }
        while let Some(batch) = self.decoded()? {
            let batch = self.in_spark(batch)?;
            if let Some(totals) = &mut self.totals {
                totals.add(&batch)?;
            }
        }
        self.totals.take().map(|totals| totals.answers()).transpose()
    }

    /// A batch in Spark's types.
    fn in_spark(&self, batch: RecordBatch) -> Result<RecordBatch> {
        conform(&notes::follow(batch)?, &self.task.schema)
    }

    fn decoded(&mut self) -> Result<Option<RecordBatch>> {
        while self.left != Some(0) {
            if let Some(current) = &mut self.current {
                // Spark ignores the rest of a file that is gone, too.
                if let Some(batch) = self.task.unless_gone(current.rows.next_batch())?.flatten() {
                    self.counts.rows += batch.num_rows() as u64;
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(batch.num_rows() as u64);
                    }
                    return Ok(Some(batch));
                }
                self.end()?;
            }
            let Some(split) = self.rest.pop_front() else { return Ok(None) };
            self.begin(split)?;
        }
        self.end()?;
        Ok(None)
    }

    /// Begins a split. A share is first divided into the splits that it consists of, so that damage is
    /// reported for each of them.
    fn begin(&mut self, split: Split) -> Result<()> {
        let may_pass = self.task.plan.scan.on_error != OnError::Raise;
        let cut = match split.cut() {
            // A file that cannot be opened is reported only by the first of its shares.
            Err(e) if may_pass && Fault::is(&e) => match split.part {
                Part::Share { number: 1.., .. } => Vec::new(),
                _ => vec![split],
            },
            cut => self.task.unless_gone(cut)?.unwrap_or_default(),
        };
        for split in cut.into_iter().rev() {
            self.rest.push_front(split);
        }
        let Some(split) = self.rest.pop_front() else { return Ok(()) };
        let scan = Scan { limit: self.left, ..self.task.plan.scan.clone() };
        let answered = self.is_answered(&split, &scan);
        // A file that is gone needs no reading either.
        if self.task.unless_gone(answered)?.unwrap_or(true) {
            return Ok(());
        }
        let rows = split.read(&scan)?;
        self.current = Some(Current { split, rows });
        self.is_reported = false;
        Ok(())
    }

    /// Whether the metadata of a split have given the results of the aggregates.
    fn is_answered(&mut self, split: &Split, scan: &Scan) -> Result<bool> {
        // If no columns are needed, rows are counted without decoding anyway.
        let Some(totals) = self.totals.as_mut().filter(|_| !self.task.schema.fields().is_empty()) else {
            return Ok(false);
        };
        let Some(units) = split.extremes(scan)?.filter(|units| totals.is_answered_by(units)) else {
            return Ok(false);
        };
        for unit in &units {
            totals.add_unit(unit)?;
            self.counts.rows = self.counts.rows.saturating_add(unit.rows);
        }
        self.counts.splits += 1;
        Ok(true)
    }

    /// Ends the current split.
    fn end(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let lost = current.rows.damage();
        self.counts.splits += 1;
        self.counts.work += current.rows.work();
        self.counts.damaged += lost.len() as u64;
        self.counts.rows_lost +=
            lost.iter().filter_map(|file| file.damage.rows_lost).fold(0, u64::saturating_add);
        match &self.task.damage {
            Some(folder) => damage::record(folder, &self.task.storage, &current.split, &lost),
            None => Ok(()),
        }
    }
}
