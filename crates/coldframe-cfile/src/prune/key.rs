//! Encodes values as the bytes by which Kudu sorts them: the keys of value indexes. Derives the range of keys
//! that a filter selects.
//!
//! ```text
//! integer, date, timestamp, decimal | big-endian, sign bit flipped |
//! string, binary, the last column   | unchanged |
//! string, binary, before others     | each 00 as 00 01 .. | 00 00 |
//! ```
//!
//! (`key_encoder.h`. Floating-point numbers and booleans cannot be keys.)

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use coldframe_core::predicate::Op;
use coldframe_core::{Error, Predicate, Result};

use crate::layout::types::{KuduType, Physical};

/// A column of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn<'a> {
    /// The column's name in filters.
    pub name: &'a str,
    /// The column's type in Kudu.
    pub data_type: KuduType,
    /// The column's type in filters.
    pub arrow: &'a DataType,
}

/// The key of `value[i]`. The array has a type in which values of `data_type` are returned. `None` if the
/// value is no valid key.
pub fn encode(data_type: KuduType, value: &ArrayRef, i: usize) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    put(data_type, cell(data_type, value, i)?, true, &mut key);
    Some(key)
}

/// The key for these cells of its columns. Cells are in the form that rows have: integers are little-endian.
pub fn encode_cells<'a>(cells: impl IntoIterator<Item = (KuduType, &'a [u8])>) -> Vec<u8> {
    let (mut key, mut cells) = (Vec::new(), cells.into_iter().peekable());
    while let Some((data_type, cell)) = cells.next() {
        put(data_type, cell.to_vec(), cells.peek().is_none(), &mut key);
    }
    key
}

/// `value[i]` in the form that cells have: integers are little-endian.
fn cell(data_type: KuduType, value: &ArrayRef, i: usize) -> Option<Vec<u8>> {
    if i >= value.len() || value.is_null(i) {
        return None;
    }
    match value.data_type() {
        DataType::Utf8 => return Some(value.as_string::<i32>().value(i).as_bytes().to_vec()),
        DataType::Binary => return Some(value.as_binary::<i32>().value(i).to_vec()),
        DataType::Float32 | DataType::Float64 | DataType::Boolean => return None,
        _ => {}
    }
    let Physical::Fixed(width) = data_type.physical() else { return None };
    if let DataType::Decimal128(..) = value.data_type() {
        let wide = value.as_primitive::<Decimal128Type>().value(i).to_le_bytes();
        let (own, spare) = wide.split_at(width.min(16));
        // A value that does not fit the type's width has no key.
        let sign = if own.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
        return spare.iter().all(|b| *b == sign).then(|| own.to_vec());
    }
    let data = value.to_data();
    let from = (data.offset() + i).checked_mul(width)?;
    Some(data.buffers().first()?.as_slice().get(from..from.checked_add(width)?)?.to_vec())
}

/// Appends the form that a cell has in a key.
fn put(data_type: KuduType, mut cell: Vec<u8>, last: bool, out: &mut Vec<u8>) {
    match data_type.physical() {
        Physical::Binary if last => out.append(&mut cell),
        Physical::Binary => {
            for byte in cell {
                out.push(byte);
                if byte == 0 {
                    out.push(1);
                }
            }
            out.extend([0, 0]);
        }
        _ => {
            let unsigned =
                matches!(data_type, KuduType::UInt8 | KuduType::UInt16 | KuduType::UInt32 | KuduType::UInt64);
            if let Some(top) = cell.last_mut().filter(|_| !unsigned) {
                *top ^= 0x80;
            }
            out.extend(cell.iter().rev());
        }
    }
}

/// Bounds of the keys that can pass a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    /// The smallest key, inclusive.
    pub lower: Option<Vec<u8>>,
    /// The end of the keys, exclusive.
    pub upper: Option<Vec<u8>>,
    /// The whole key, if the filter determines it.
    pub exact: Option<Vec<u8>>,
}

impl KeyBounds {
    /// The bounds that `predicate` sets for the key `columns`. Conditions of other forms do not narrow the
    /// range.
    pub fn new(predicate: &Predicate, columns: &[KeyColumn<'_>]) -> Self {
        let mut prefix = Vec::new();
        for (i, column) in columns.iter().enumerate() {
            let last = i + 1 == columns.len();
            let mut limits = Limits::new(*column, last);
            limits.collect(predicate);
            if let Some(equal) = limits.equal {
                prefix.extend(equal);
                continue;
            }
            let key = |limit: Vec<u8>| [&prefix[..], &limit].concat();
            let above = |key: Vec<u8>| if last { Some(behind(key)) } else { successor(key) };
            let upper = match (limits.below.map(key), limits.at_most.map(key).and_then(above)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let lower = limits.lower.map(key).or_else(|| Some(prefix.clone()).filter(|p| !p.is_empty()));
            return Self { lower, upper: upper.or_else(|| successor(prefix)), exact: None };
        }
        if columns.is_empty() {
            return Self::default();
        }
        Self { lower: Some(prefix.clone()), upper: Some(behind(prefix.clone())), exact: Some(prefix) }
    }

    /// Whether there are no bounds.
    pub fn is_empty(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// Whether keys from `min` to `max` (both inclusive) can pass.
    pub fn may_match(&self, min: Option<&[u8]>, max: Option<&[u8]>) -> bool {
        let above = self.lower.as_deref().zip(max).is_some_and(|(lower, max)| max < lower);
        let below = self.upper.as_deref().zip(min).is_some_and(|(upper, min)| min >= upper);
        !above && !below
    }
}

/// The bounds that a conjunction sets for one column, in encoded form.
struct Limits<'a> {
    column: KeyColumn<'a>,
    /// Whether this is the last column of the key.
    last: bool,
    equal: Option<Vec<u8>>,
    lower: Option<Vec<u8>>,
    at_most: Option<Vec<u8>>,
    below: Option<Vec<u8>>,
}

impl<'a> Limits<'a> {
    fn new(column: KeyColumn<'a>, last: bool) -> Self {
        Self { column, last, equal: None, lower: None, at_most: None, below: None }
    }

    fn collect(&mut self, predicate: &Predicate) {
        match predicate {
            Predicate::And(all) => all.iter().for_each(|p| self.collect(p)),
            Predicate::Compare { column, op, value, negated: false } if column == self.column.name => {
                let Some(key) = self.key(value, 0) else { return };
                match op {
                    Op::Eq => self.equal = Some(key),
                    // The bound itself is included even for `>`, since the exact filter is applied later.
                    Op::Ge | Op::Gt => self.at_least(key),
                    Op::Le => self.no_more_than(key),
                    Op::Lt => self.below = least(self.below.take(), key),
                    Op::Ne => {}
                }
            }
            Predicate::In { column, values, negated: false } if column == self.column.name => {
                // A null in the set could match only null rows, and key columns have no null rows.
                let valid = (0..values.len()).filter(|i| values.is_valid(*i));
                let keys: Option<Vec<_>> = valid.map(|i| self.key(values, i)).collect();
                let mut keys = keys.unwrap_or_default();
                keys.sort();
                keys.dedup();
                if let [only] = &keys[..] {
                    self.equal = Some(only.clone());
                } else if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
                    self.at_least(first.clone());
                    self.no_more_than(last.clone());
                }
            }
            _ => {}
        }
    }

    /// The encoded form of a literal of the column's type.
    fn key(&self, value: &ArrayRef, i: usize) -> Option<Vec<u8>> {
        let cell =
            cell(self.column.data_type, value, i).filter(|_| value.data_type() == self.column.arrow)?;
        let mut key = Vec::new();
        put(self.column.data_type, cell, self.last, &mut key);
        Some(key)
    }

    fn at_least(&mut self, key: Vec<u8>) {
        self.lower = self.lower.take().max(Some(key));
    }

    fn no_more_than(&mut self, key: Vec<u8>) {
        self.at_most = least(self.at_most.take(), key);
    }
}

/// The lower of two upper bounds.
fn least(limit: Option<Vec<u8>>, key: Vec<u8>) -> Option<Vec<u8>> {
    match limit {
        Some(limit) => Some(limit.min(key)),
        None => Some(key),
    }
}

/// The smallest key after `key`.
fn behind(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The smallest key after all keys that begin with `prefix`; `None` if there is none.
fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.last_mut() {
        if *last < 0xff {
            *last += 1;
            return Some(prefix);
        }
        prefix.pop();
    }
    None
}

/// Casts `value` to the type `to`, in which the values of a file are returned; fails if the value does not
/// fit.
pub fn literal(value: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if value.data_type() == to {
        return Ok(value.clone());
    }
    let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
    let cast = arrow_cast::cast_with_options(value, to, &options);
    cast.map_err(|e| Error::invalid(format!("expected a value that {to} can hold: {e}")))
}
