//! Hands out the rows that pass a filter: the values of its columns as the scout decoded them, beside the other columns.
//!
//! ```text
//! scout       | id | word  |        batches of the filter's columns; what passes of them is kept
//! others      | price | day |       decoded for the rows that pass, or for the rows between them, too
//! handed out  | id | price | word | day |
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use coldframe_core::arrays::chosen::chosen;
use coldframe_core::{Error, Result, arrow_error};

use super::decode::StripeBatches;
use super::job::{Run, ScanShared};
use super::scout::{Found, Scout};

/// Batches of fewer rows and bytes are handed out together: rows that pass are often far apart.
const FEW: usize = 4096;
const SMALL: usize = 1 << 20;

/// The columns that a scout hands out.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Their fields, as the scan wants them.
    schema: SchemaRef,
    /// Their places among the columns of the scout.
    places: Vec<usize>,
    /// For each column of the scan, whether the scout hands it out.
    of_scout: Vec<bool>,
    /// All columns of the scan.
    all: SchemaRef,
    /// Whether a column of the scout is decoded once more.
    twice: bool,
}

impl Handed {
    /// Divides the columns of a scan: into those that its `scout` has, which are handed out, and a scan of the others.
    pub(crate) fn divide(all: &ScanShared, scout: &ScanShared) -> Result<(Self, ScanShared)> {
        let place_of = |number: usize, field: &FieldRef| {
            let id = all.columns.get(number).map(|(id, _)| *id);
            let mut own = scout.schema.fields().iter().enumerate();
            let same = own.find(|(place, of_scout)| {
                let of_same_column = scout.columns.get(*place).map(|(id, _)| *id) == id;
                // Columns without an identity are the row numbers.
                of_same_column && of_scout.name() == field.name() && of_scout == &field
            });
            same.map(|(place, _)| place)
        };
        let fields = all.schema.fields();
        let found: Vec<Option<usize>> =
            fields.iter().enumerate().map(|(number, field)| place_of(number, field)).collect();
        let of = |is: bool| {
            let fields = fields.iter().zip(&found).filter(|(_, place)| place.is_some() == is);
            Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()))
        };
        let columns = all.columns.iter().zip(&found).filter(|(_, place)| place.is_none());
        let others = all.only(columns.map(|(column, _)| column.clone()).collect(), of(false))?;
        let handed = Self {
            schema: of(true),
            places: found.iter().copied().flatten().collect(),
            of_scout: found.iter().map(Option::is_some).collect(),
            all: all.schema.clone(),
            twice: found.iter().flatten().count() < scout.schema.fields().len(),
        };
        Ok((handed, others))
    }

    /// Whether a column of the scout is decoded once more: part of a nested column.
    pub(super) fn reads_twice(&self) -> bool {
        self.twice
    }

    /// What passes of the columns that are handed out.
    pub(super) fn kept(&self, batch: &RecordBatch, passes: BooleanBuffer) -> Result<RecordBatch> {
        let kept = chosen(&batch.project(&self.places).map_err(arrow_error)?, passes)?;
        let as_wanted = |(array, field): (&ArrayRef, &FieldRef)| {
            // Text that was tested by the entries of its dictionary.
            if array.data_type() == field.data_type() {
                return Ok(array.clone());
            }
            arrow_cast::cast(array, field.data_type()).map_err(arrow_error)
        };
        let columns = kept.columns().iter().zip(self.schema.fields()).map(as_wanted).collect::<Result<_>>()?;
        batch_of(&self.schema, columns, kept.num_rows())
    }

    /// All rows of some batches that [`Self::kept`] returned.
    pub(super) fn together(&self, batches: &[RecordBatch]) -> Result<RecordBatch> {
        concat_batches(&self.schema, batches).map_err(arrow_error)
    }

    /// All columns of rows that pass.
    fn joined(&self, of_scout: &RecordBatch, others: &RecordBatch) -> Result<RecordBatch> {
        let (mut scout, mut rest) = (of_scout.columns().iter(), others.columns().iter());
        let columns = self.of_scout.iter().filter_map(|is| if *is { scout.next() } else { rest.next() });
        batch_of(&self.all, columns.cloned().collect(), others.num_rows())
    }
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}

/// The rows of a stripe that pass, and rows between them.
pub(crate) struct Scouted {
    scout: Scout,
    /// Batches of the columns that the scout does not hand out.
    others: StripeBatches,
    found: Option<Found>,
    /// What `others` return next.
    returned: VecDeque<Returned>,
    /// Batches of few rows.
    small: Vec<RecordBatch>,
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
        Self { scout, others, found: None, returned: VecDeque::new(), small: Vec::new(), failed: false }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.others.next().transpose()? {
                let batch = self.with_others(&batch)?;
                self.small.push(batch);
                let rows: usize = self.small.iter().map(RecordBatch::num_rows).sum();
                let bytes: usize = self.small.iter().map(RecordBatch::get_array_memory_size).sum();
                if rows >= FEW || bytes >= SMALL {
                    return self.flush();
                }
                continue;
            }
            // A consumer that wants few rows need not wait for more row groups.
            if !self.small.is_empty() {
                return self.flush();
            }
            let Some((found, runs)) = self.scout.next_found(&mut self.others)? else { return Ok(None) };
            self.others.read_deferred(&runs)?;
            self.returned = runs.iter().map(Returned::of).collect();
            self.found = Some(found);
            self.others.set_tasks(runs.into_iter());
        }
    }

    /// The batches of few rows as one.
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        let small = std::mem::take(&mut self.small);
        if let [batch] = small.as_slice() {
            return Ok(Some(batch.clone()));
        }
        concat_batches(&self.scout.handed.all, &small).map(Some).map_err(arrow_error)
    }

    /// All columns of the rows that pass, where `others` has the other columns of the next rows.
    fn with_others(&mut self, others: &RecordBatch) -> Result<RecordBatch> {
        let Some(found) = &mut self.found else { return Err(Error::invalid("rows that no scout wanted")) };
        let is_over = |rows: &mut Returned| rows.is_over();
        while self.returned.front_mut().is_some_and(|rows| is_over(rows)) {
            self.returned.pop_front();
        }
        let mut passes = None;
        match self.returned.front_mut() {
            Some(Returned::Passing(left)) if others.num_rows() <= *left => *left -= others.num_rows(),
            Some(Returned::All(rows)) if others.num_rows() as u64 <= rows.end - rows.start => {
                let now = rows.start..rows.start + others.num_rows() as u64;
                rows.start = now.end;
                passes = Some(found.bits(&now));
            }
            _ => return Err(Error::invalid("more rows than a scout wanted")),
        }
        let others = match passes {
            Some(passes) => &chosen(others, passes)?,
            None => others,
        };
        let of_scout = found.next_rows(others.num_rows())?;
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
