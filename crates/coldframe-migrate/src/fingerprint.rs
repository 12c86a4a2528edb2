//! Fingerprints rows by sums: equal rows have equal sums in any order, in any batches, and in any type that
//! can be widened to the target's type.
//!
//! ```text
//! value    -> h, 64 bits: of the value in the *target's* type; null has its own hash
//! column   -> nulls, NaNs, smallest, largest, sum of wide(h)      wide(h) = h in the low half, splitmix64(h) in the high half
//! row      -> r: the hashes of its columns, folded in their order
//! table    -> rows, sum of wide(r)                          detects values that moved to another row
//! ```
//!
//! Sums are modulo 2^64 in each half. The rows read are fingerprinted as decoded, before conversion to the target's types: 5 as an
//! int32, as a decimal(9,2) or as a dictionary entry equals the 5.00 of a target of decimal(12,2). A value that the target's type
//! cannot represent gets a hash that no written value has, so the fingerprints differ.
//!
//! | module | holds |
//! |---|---|
//! | `fingerprint` | the sums |
//! | `absent` | the hashes of null and of values that the target's type cannot represent |
//! | `hash` | the hash of each value of an array |
//! | `numbers` | the hashes of numbers and times, in their target's scale and unit |
//! | `extremes` | smallest and largest |
//! | `kernels` | the loops over values and hashes, vectorised |

mod absent;
pub(crate) mod extremes;
mod hash;
mod kernels;
mod numbers;

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use coldframe_core::{Error, Result};

pub use extremes::{Ends, Extreme};
use kernels::Sum;

/// The fingerprint and statistics of a column.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ColumnFingerprint {
    /// The number of nulls.
    pub nulls: u64,
    /// The number of NaNs; `None` for types without NaN, and if columns get no fingerprints.
    pub nans: Option<u64>,
    /// The smallest and the largest value; `None` for nested types, and if all values are null.
    pub extremes: Ends,
    sum: Sum,
}

impl ColumnFingerprint {
    /// The sum of the values' hashes, as 32 hexadecimal digits.
    pub fn checksum(&self) -> String {
        self.sum.hex()
    }
}

/// The fingerprint of the batches added so far.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    target: SchemaRef,
    rows: u64,
    sum: Sum,
    columns: Vec<ColumnFingerprint>,
    /// Whether each column has its own fingerprint.
    has_columns: bool,
    /// Buffers for the row hashes of a batch and the hashes of one of its columns.
    row_hashes: Vec<u64>,
    hashes: Vec<u64>,
}

/// The initial value of a row's hash.
const ROW: u64 = 0xe703_7ed1_a0b4_28db;

/// How many rows are hashed in one pass. They are few enough to be still in the processor's cache in the
/// second loop.
const PIECE_ROWS: usize = 4096;

/// The rows per pass for a type. For dictionaries, runs and nested types that is all rows, since each pass would hash all
/// entries again, or divide the children.
fn piece_rows(kind: &DataType, rows: usize) -> usize {
    let shares_entries = matches!(kind, DataType::Dictionary(_, _) | DataType::RunEndEncoded(_, _));
    if shares_entries || kind.is_nested() { rows.max(1) } else { PIECE_ROWS }
}

fn check_columns(batch: &RecordBatch, target: &Schema) -> Result<()> {
    let (expected, actual) = (target.fields().len(), batch.num_columns());
    if expected == actual {
        return Ok(());
    }
    Err(Error::schema(format!("expected {expected} columns, found {actual}")))
}

/// The hash of each row, with values in the types of `target`.
pub fn row_hashes(batch: &RecordBatch, target: &Schema) -> Result<Vec<u64>> {
    check_columns(batch, target)?;
    let (mut rows, mut hashes) = (vec![ROW; batch.num_rows()], Vec::new());
    for (field, array) in target.fields().iter().zip(batch.columns()) {
        let result = hash::hash_into(array, field.data_type(), &mut hashes);
        result.map_err(|e| e.within(format!("column {}", field.name())))?;
        kernels::fold(&hashes, &mut rows);
    }
    kernels::finish(&mut rows);
    Ok(rows)
}

impl Fingerprint {
    /// The fingerprint of no rows. `target`: the columns as they are written.
    pub fn new(target: SchemaRef) -> Self {
        let column = |field: &FieldRef| ColumnFingerprint {
            nans: field.data_type().is_floating().then_some(0),
            ..ColumnFingerprint::default()
        };
        let columns = target.fields().iter().map(column).collect();
        Self {
            target,
            rows: 0,
            sum: Sum::default(),
            columns,
            has_columns: true,
            row_hashes: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// A fingerprint of rows only, which takes two thirds of the time. If the row sums agree, so do the sums of
    /// the columns.
    pub fn of_rows(target: SchemaRef) -> Self {
        let columns = vec![ColumnFingerprint::default(); target.fields().len()];
        Self { columns, has_columns: false, ..Self::new(target) }
    }

    /// Adds the rows of a batch. The batch has the target's columns, in the same order, each in the target's
    /// type or in a type that can be widened to it.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        check_columns(batch, &self.target)?;
        let Self { target, rows, sum, columns, has_columns, row_hashes, hashes } = self;
        row_hashes.clear();
        row_hashes.resize(batch.num_rows(), ROW);
        for ((field, array), column) in target.fields().iter().zip(batch.columns()).zip(columns) {
            let within = |e: Error| e.within(format!("column {}", field.name()));
            column.nulls += hash::nulls(array);
            let piece = piece_rows(array.data_type(), array.len());
            for (number, rows) in row_hashes.chunks_mut(piece).enumerate() {
                let values = array.slice(number * piece, rows.len());
                hash::hash_into(&values, field.data_type(), hashes).map_err(within)?;
                if *has_columns {
                    column.sum.join(kernels::fold(hashes, rows));
                    let ends = extremes::extremes(&values, field.data_type()).map_err(within)?;
                    column.extremes = extremes::merged(column.extremes.take(), ends);
                    if let Some(nans) = &mut column.nans {
                        *nans += extremes::nans(&values).map_err(within)?;
                    }
                } else {
                    kernels::fold_rows(hashes, rows);
                }
            }
        }
        sum.join(kernels::finish(row_hashes));
        *rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Adds the rows of `other`, which must have the same columns.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        if self.target.fields() != other.target.fields() {
            return Err(Error::schema("cannot add fingerprints of different columns"));
        }
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            column.nulls += more.nulls;
            column.nans = column.nans.zip(more.nans).map(|(mine, theirs)| mine + theirs);
            column.sum.join(more.sum);
            column.extremes = extremes::merged(column.extremes.take(), more.extremes.clone());
        }
        self.sum.join(other.sum);
        self.rows += other.rows;
        self.has_columns &= other.has_columns;
        Ok(())
    }

    /// The columns as written.
    pub fn target(&self) -> &SchemaRef {
        &self.target
    }

    /// The number of rows added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of the rows' hashes, as 32 hexadecimal digits.
    pub fn checksum(&self) -> String {
        self.sum.hex()
    }

    /// The columns' names and fingerprints.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &ColumnFingerprint)> {
        self.target.fields().iter().map(|f| f.name().as_str()).zip(&self.columns)
    }

    /// Describes the differences to `written`; empty if both are of the same rows. If either is a fingerprint
    /// of rows only, no columns are named.
    pub fn differences(&self, written: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.rows != written.rows {
            differences.push(format!("rows: read {}, written {}", self.rows, written.rows));
        }
        let names: BTreeSet<_> = self.columns().map(|(name, _)| name).collect();
        let others: BTreeSet<_> = written.columns().map(|(name, _)| name).collect();
        if names != others {
            differences.push(format!("columns: read {names:?}, written {others:?}"));
            return differences;
        }
        let columns = self.columns().zip(written.columns());
        for ((name, mine), (_, theirs)) in columns.filter(|_| self.has_columns && written.has_columns) {
            if mine.nulls != theirs.nulls {
                differences
                    .push(format!("column {name}: nulls read {}, written {}", mine.nulls, theirs.nulls));
            }
            if mine.extremes != theirs.extremes {
                let (read, wrote) = (ends(mine), ends(theirs));
                differences.push(format!("column {name}: smallest and largest read {read}, written {wrote}"));
            }
            if mine.sum != theirs.sum {
                let (read, wrote) = (mine.checksum(), theirs.checksum());
                differences.push(format!("column {name}: checksum read {read}, written {wrote}"));
            }
        }
        if differences.is_empty() && self.sum != written.sum {
            differences.push(format!(
                "row checksum: read {}, written {}",
                self.checksum(),
                written.checksum()
            ));
        }
        differences
    }
}

fn ends(column: &ColumnFingerprint) -> String {
    column.extremes.as_ref().map_or_else(|| "none".to_owned(), |(low, high)| format!("{low} and {high}"))
}
