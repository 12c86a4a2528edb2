//! The batches of a task, split by split, as the types that Spark has.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use coldframe::dataset::{Part, Rows, Split};
use coldframe::types::conform;
use coldframe::{Error, Fault, OnError, Result, Scan};

use crate::damage;
use crate::task::Task;

/// What was done so far, for Spark's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that were handed over, or counted.
    pub rows: u64,
    /// Rows that damage is known to have cost.
    pub rows_lost: u64,
    /// Places that are damaged.
    pub damaged: u64,
    /// Splits that were read.
    pub splits: u64,
}

impl Counts {
    /// In the order of the fields.
    pub fn to_longs(self) -> [i64; 4] {
        [self.rows, self.rows_lost, self.damaged, self.splits]
            .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// The split that is being read.
struct Current {
    split: Split,
    rows: Rows,
}

/// One pass over a task.
pub struct Reader {
    task: Task,
    rest: VecDeque<Split>,
    current: Option<Current>,
    /// Rows that are still wanted.
    left: Option<u64>,
    counts: Counts,
    counted: bool,
}

impl Reader {
    /// Nothing is opened before the first batch is asked for.
    pub fn new(task: Task) -> Result<Self> {
        let (rest, left) = (task.plan.splits.clone().into(), task.plan.scan.limit);
        Ok(Self { task, rest, current: None, left, counts: Counts::default(), counted: false })
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The next batch. Where the number of rows is wanted, there is one batch, of it.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if !self.task.count {
            return match self.decoded()? {
                Some(batch) => conform(&batch, &self.task.schema).map(Some),
                None => Ok(None),
            };
        }
        if std::mem::replace(&mut self.counted, true) {
            return Ok(None);
        }
        while self.decoded()?.is_some() {}
        let rows = i64::try_from(self.counts.rows).unwrap_or(i64::MAX);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![rows]));
        let made = RecordBatch::try_new(self.task.schema.clone(), vec![column]);
        made.map(Some).map_err(|e| Error::schema(e.to_string()))
    }

    fn decoded(&mut self) -> Result<Option<RecordBatch>> {
        while self.left != Some(0) {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.rows.next_batch()? {
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

    /// Begins a split. A share is cut first, so that damage is reported for each split.
    fn begin(&mut self, split: Split) -> Result<()> {
        let may_pass = self.task.plan.scan.on_error != OnError::Raise;
        let cut = match split.cut() {
            Ok(cut) => cut,
            // A file that cannot be opened is reported once, by the first of its shares.
            Err(e) if may_pass && Fault::is(&e) => match split.part {
                Part::Share { number: 1.., .. } => Vec::new(),
                _ => vec![split],
            },
            Err(e) => return Err(e),
        };
        for one in cut.into_iter().rev() {
            self.rest.push_front(one);
        }
        let Some(split) = self.rest.pop_front() else { return Ok(()) };
        let scan = Scan { limit: self.left, ..self.task.plan.scan.clone() };
        let rows = split.read(&scan)?;
        self.current = Some(Current { split, rows });
        Ok(())
    }

    /// The current split is read to its end.
    fn end(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let lost = current.rows.damage();
        self.counts.splits += 1;
        self.counts.damaged += lost.len() as u64;
        self.counts.rows_lost +=
            lost.iter().filter_map(|one| one.damage.rows_lost).fold(0, u64::saturating_add);
        match &self.task.damage {
            Some(folder) => damage::record(folder, &self.task.storage, &current.split, &lost),
            None => Ok(()),
        }
    }
}
