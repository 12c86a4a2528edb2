//! Rows as sums: the same for the same rows in any order, cut into any batches, read from any type that widens.
//!
//! ```text
//! value    -> h, 64 bits: of the value as the *target's* type holds it; null has a hash of its own
//! column   -> nulls, smallest, largest, sum of wide(h)      wide(h) = h in the low half, splitmix64(h) in the high half
//! row      -> r: the hashes of its columns, folded in their order
//! table    -> rows, sum of wide(r)                          ties the values of a row together
//! ```
//!
//! Sums are modulo 2^128, half by half. What was read is fingerprinted as it was decoded, before anything makes it into the
//! target's types: 5 as an int32, as a decimal(9,2) or as a dictionary's entry is the 5.00 of a target of decimal(12,2). A
//! value that the target's type has no form for gets a hash that no written value has, so that it is found and never passes.
//!
//! | module | holds |
//! |---|---|
//! | this | the sums |
//! | [`absent`] | the hashes of what is no value |
//! | [`hash`] | the hash of each value of an array |
//! | [`numbers`] | the hashes of numbers and times, in their target's scale and unit |
//! | [`extremes`] | smallest and largest |

mod absent;
mod extremes;
mod hash;
mod numbers;

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use coldframe_core::{Error, Result};
use coldframe_encoding::hash::splitmix64;

pub use extremes::Extreme;

/// A sum of hashes, modulo 2^64 in either half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    low: u64,
    high: u64,
}

/// Two sums of one hash are independent if one is of another mix of it.
const HIGH: u64 = 0xd6e8_feb8_6659_fd93;

impl Sum {
    fn add(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.low = self.low.wrapping_add(*hash);
            self.high = self.high.wrapping_add(splitmix64(hash ^ HIGH));
        }
    }

    fn join(&mut self, other: Self) {
        self.low = self.low.wrapping_add(other.low);
        self.high = self.high.wrapping_add(other.high);
    }

    fn hex(self) -> String {
        format!("{:016x}{:016x}", self.high, self.low)
    }
}

/// What is known of a column's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnPrint {
    /// How many are null.
    pub nulls: u64,
    /// The smallest and the largest; nothing of nested types, and none where all are null.
    pub extremes: Option<(Extreme, Extreme)>,
    sum: Sum,
}

impl ColumnPrint {
    /// The sum of the values' hashes, 32 hexadecimal digits.
    pub fn checksum(&self) -> String {
        self.sum.hex()
    }
}

/// The fingerprint of the batches that were added.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    target: SchemaRef,
    rows: u64,
    sum: Sum,
    columns: Vec<ColumnPrint>,
}

/// Where a row's hash begins.
const ROW: u64 = 0xe703_7ed1_a0b4_28db;
/// Odd, so that no two hashes become one.
const FOLD: u64 = 0x2545_f491_4f6c_dd1d;

/// A column's hashes into those of the rows: swapped columns do not cancel out.
fn fold(rows: &mut [u64], hashes: &[u64]) {
    for (row, hash) in rows.iter_mut().zip(hashes) {
        *row = (*row ^ hash).wrapping_mul(FOLD).rotate_left(29);
    }
}

fn finish(rows: &mut [u64]) {
    rows.iter_mut().for_each(|row| *row = splitmix64(*row));
}

fn demand_columns(batch: &RecordBatch, target: &Schema) -> Result<()> {
    let (expected, found) = (target.fields().len(), batch.num_columns());
    if expected == found {
        return Ok(());
    }
    Err(Error::schema(format!("expected {expected} columns, found {found}")))
}

/// The hash of each row, as the columns of `target` hold its values.
pub fn row_hashes(batch: &RecordBatch, target: &Schema) -> Result<Vec<u64>> {
    demand_columns(batch, target)?;
    let mut rows = vec![ROW; batch.num_rows()];
    for (field, array) in target.fields().iter().zip(batch.columns()) {
        let hashes = hash::hashes(array, field.data_type());
        fold(&mut rows, &hashes.map_err(|e| e.within(format!("column {}", field.name())))?);
    }
    finish(&mut rows);
    Ok(rows)
}

impl Fingerprint {
    /// Of no rows. `target`: the columns as they are written.
    pub fn new(target: SchemaRef) -> Self {
        let columns = vec![ColumnPrint::default(); target.fields().len()];
        Self { target, rows: 0, sum: Sum::default(), columns }
    }

    /// Adds the rows of a batch, whose columns are the target's, in their order, each in its type or in one that it widens.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        demand_columns(batch, &self.target)?;
        let mut rows = vec![ROW; batch.num_rows()];
        for ((field, array), column) in
            self.target.fields().iter().zip(batch.columns()).zip(&mut self.columns)
        {
            let within = |e: Error| e.within(format!("column {}", field.name()));
            let hashes = hash::hashes(array, field.data_type()).map_err(within)?;
            column.nulls += hash::nulls(array);
            column.sum.add(&hashes);
            let found = extremes::extremes(array, field.data_type()).map_err(within)?;
            column.extremes = extremes::merged(column.extremes.take(), found);
            fold(&mut rows, &hashes);
        }
        finish(&mut rows);
        self.sum.add(&rows);
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Adds the rows that `other` has seen, which must be of the same columns.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        if self.target.fields() != other.target.fields() {
            return Err(Error::schema("fingerprints of unlike columns do not add up"));
        }
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            column.nulls += more.nulls;
            column.sum.join(more.sum);
            column.extremes = extremes::merged(column.extremes.take(), more.extremes.clone());
        }
        self.sum.join(other.sum);
        self.rows += other.rows;
        Ok(())
    }

    /// The columns as they are written.
    pub fn target(&self) -> &SchemaRef {
        &self.target
    }

    /// How many rows were added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of the rows' hashes, 32 hexadecimal digits.
    pub fn checksum(&self) -> String {
        self.sum.hex()
    }

    /// The columns' names and what is known of them.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &ColumnPrint)> {
        self.target.fields().iter().map(|f| f.name().as_str()).zip(&self.columns)
    }

    /// What `written` has differently, in words; empty where both are of the same rows.
    pub fn differences(&self, written: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.rows != written.rows {
            found.push(format!("rows: read {}, written {}", self.rows, written.rows));
        }
        let names: BTreeSet<_> = self.columns().map(|(name, _)| name).collect();
        let others: BTreeSet<_> = written.columns().map(|(name, _)| name).collect();
        if names != others {
            found.push(format!("columns: read {names:?}, written {others:?}"));
            return found;
        }
        for ((name, mine), (_, theirs)) in self.columns().zip(written.columns()) {
            if mine.nulls != theirs.nulls {
                found.push(format!("column {name}: nulls read {}, written {}", mine.nulls, theirs.nulls));
            }
            if mine.extremes != theirs.extremes {
                let (read, wrote) = (ends(mine), ends(theirs));
                found.push(format!("column {name}: smallest and largest read {read}, written {wrote}"));
            }
            if mine.sum != theirs.sum {
                let (read, wrote) = (mine.checksum(), theirs.checksum());
                found.push(format!("column {name}: checksum read {read}, written {wrote}"));
            }
        }
        if found.is_empty() && self.sum != written.sum {
            found.push(format!("row checksum: read {}, written {}", self.checksum(), written.checksum()));
        }
        found
    }
}

fn ends(column: &ColumnPrint) -> String {
    column.extremes.as_ref().map_or_else(|| "none".to_owned(), |(low, high)| format!("{low} and {high}"))
}
