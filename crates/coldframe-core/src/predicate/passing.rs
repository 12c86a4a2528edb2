//! Decides which rows pass a filter, without distinguishing false from unknown.
//!
//! In a conjunction, conditions on numbers are evaluated first. If few rows pass them, the other conditions
//! are evaluated for these rows only:
//!
//! ```text
//! quantity = 3        0 0 1 0 0 0 1 0 0 1 0 0      of all rows
//! word = 'x'              1       0     1          of three
//! passes              0 0 1 0 0 0 0 0 0 1 0 0
//! ```

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_select::filter::filter_record_batch;
use coldframe_encoding::Result;

use super::Predicate;
use crate::arrow_error;
use crate::projection::outermost;

/// The other conditions are evaluated for the remaining rows only if the remaining rows are at most 1/`FEW`
/// of all rows.
const FEW: usize = 4;

impl Predicate {
    /// True for the rows of `batch` for which [`Self::evaluate`] is true, false for all other rows.
    pub fn passing(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        match self {
            Self::And(all) => {
                let mut parts: Vec<&Self> = all.iter().collect();
                parts.sort_by_key(|part| part.is_costly());
                all_of(&parts, batch)
            }
            Self::Or(any) => any.iter().try_fold(BooleanBuffer::new_unset(batch.num_rows()), |sum, part| {
                Ok(if sum.count_set_bits() == sum.len() { sum } else { &sum | &part.passing(batch)? })
            }),
            _ => Ok(known(&self.evaluate(batch)?)),
        }
    }

    /// Whether the predicate compares values other than numbers.
    fn is_costly(&self) -> bool {
        match self {
            Self::Null { .. } => false,
            Self::Compare { value, .. } => !value.data_type().is_primitive(),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.is_costly()),
            Self::In { .. } | Self::Like { .. } | Self::Trimmed(_) => true,
        }
    }
}

/// This is not recursive, because there may be thousands of parts.
fn all_of(parts: &[&Predicate], batch: &RecordBatch) -> Result<BooleanBuffer> {
    let mut left = batch.clone();
    let mut passes = BooleanBuffer::new_set(left.num_rows());
    let mut before = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let count = passes.count_set_bits();
        if count == 0 {
            break;
        }
        if count <= passes.len() / FEW {
            let needed = of_columns(parts.get(at..).unwrap_or_default(), &left)?;
            let rows = BooleanArray::new(passes.clone(), None);
            left = filter_record_batch(&needed, &rows).map_err(arrow_error)?;
            before.push(std::mem::replace(&mut passes, BooleanBuffer::new_set(left.num_rows())));
        }
        passes = &passes & &part.passing(&left)?;
    }
    Ok(before.iter().rev().fold(passes, |of_them, passes| spread(passes, &of_them)))
}

/// The columns of a batch that the conditions need.
fn of_columns(parts: &[&Predicate], batch: &RecordBatch) -> Result<RecordBatch> {
    let mut paths = Vec::new();
    parts.iter().for_each(|part| part.columns(&mut paths));
    let places = outermost(&batch.schema(), &paths)?;
    batch.project(&places).map_err(arrow_error)
}

/// The rows of `passes` that `of_them` selects. `of_them` has one bit for each bit that is set in `passes`.
fn spread(passes: &BooleanBuffer, of_them: &BooleanBuffer) -> BooleanBuffer {
    let mut all = BooleanBufferBuilder::new(passes.len());
    all.append_n(passes.len(), false);
    for (row, _) in passes.set_indices().zip(of_them).filter(|(_, stays)| *stays) {
        all.set_bit(row, true);
    }
    all.finish()
}

fn known(answers: &BooleanArray) -> BooleanBuffer {
    match answers.nulls() {
        Some(nulls) => answers.values() & nulls.inner(),
        None => answers.values().clone(),
    }
}
