//! The rows of a stripe that pass a filter, with all columns of the scan.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use coldframe_core::arrays::chosen::chosen;
use coldframe_core::{Error, Result, arrow_error};

use super::decode::StripeBatches;
use super::job::Run;
use super::scout::{Examined, Scout};

/// Batches of fewer rows and bytes are handed out together: rows that pass are often far apart.
const FEW: usize = 4096;
const SMALL: usize = 1 << 20;

/// The rows of a stripe that pass, and rows between them.
pub(crate) struct Scouted {
    scout: Scout,
    /// Batches of the columns that the scout does not hand out.
    others: StripeBatches,
    examined: Option<Examined>,
    /// What `others` return next.
    returned: VecDeque<Returned>,
    /// Batches of few rows, with all their rows and bytes.
    small: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    failed: bool,
}

/// The rows of a run that are not returned yet.
enum Returned {
    /// This many rows, which all pass.
    Passing(usize),
    /// All rows.
    All(Range<u64>),
}

impl Scouted {
    /// `others` have the columns that the scout does not hand out; it selects the runs to read.
    pub(crate) fn new(scout: Scout, others: StripeBatches) -> Self {
        let (returned, small) = (VecDeque::new(), Vec::new());
        Self { scout, others, examined: None, returned, small, rows: 0, bytes: 0, failed: false }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.others.next().transpose()? {
                let batch = self.with_others(&batch)?;
                self.rows += batch.num_rows();
                self.bytes = self.bytes.saturating_add(batch.get_array_memory_size());
                self.small.push(batch);
                if self.rows >= FEW || self.bytes >= SMALL {
                    return self.flush();
                }
                continue;
            }
            // A consumer that wants few rows need not wait for more row groups.
            if !self.small.is_empty() {
                return self.flush();
            }
            let Some((examined, runs)) = self.scout.next_examined(&mut self.others)? else { return Ok(None) };
            if self.scout.handed.is_all() {
                return Ok(Some(examined.into_batch()));
            }
            self.others.read_deferred(&runs)?;
            self.returned = runs.iter().map(Returned::of).collect();
            self.examined = Some(examined);
            self.others.set_tasks(runs.into_iter());
        }
    }

    /// The batches of few rows as one.
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        let small = std::mem::take(&mut self.small);
        (self.rows, self.bytes) = (0, 0);
        if let [batch] = small.as_slice() {
            return Ok(Some(batch.clone()));
        }
        concat_batches(self.scout.handed.all(), &small).map(Some).map_err(arrow_error)
    }

    /// All columns of the rows that pass, where `others` has the other columns of the next rows.
    fn with_others(&mut self, others: &RecordBatch) -> Result<RecordBatch> {
        let Some(examined) = &mut self.examined else {
            return Err(Error::invalid("rows that no scout wanted"));
        };
        while self.returned.front().is_some_and(Returned::is_over) {
            self.returned.pop_front();
        }
        let mut passes = None;
        match self.returned.front_mut() {
            Some(Returned::Passing(left)) if others.num_rows() <= *left => *left -= others.num_rows(),
            Some(Returned::All(rows)) if others.num_rows() as u64 <= rows.end - rows.start => {
                let now = rows.start..rows.start + others.num_rows() as u64;
                rows.start = now.end;
                passes = Some(examined.bits(&now));
            }
            _ => return Err(Error::invalid("more rows than a scout wanted")),
        }
        let others = match passes {
            Some(passes) => &chosen(others, passes)?,
            None => others,
        };
        let of_scout = examined.next_rows(others.num_rows())?;
        self.scout.handed.joined(&of_scout, others)
    }
}

impl Returned {
    fn of(run: &Run) -> Self {
        match &run.kept {
            Some(kept) => Self::Passing(kept.count_set_bits()),
            None => Self::All(run.wanted.clone()),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Passing(left) => *left == 0,
            Self::All(rows) => rows.is_empty(),
        }
    }
}

impl Iterator for Scouted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
