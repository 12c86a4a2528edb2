//! Primary keys as bytes that sort like the keys, and the range of them that a filter leaves.
//!
//! ```text
//! integer, date, timestamp, decimal | highest byte first, sign bit flipped |
//! string, binary, the last column   | as it is |
//! string, binary, before others     | each 00 as 00 01 .. | 00 00 |
//! ```
//!
//! `key_encoder.h` of Kudu.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use coldframe_core::Predicate;
use coldframe_core::predicate::Op;

use crate::schema::Column;
use coldframe_cfile::layout::types::{KuduType, Physical};

/// The encoded keys that can pass a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    /// Inclusive.
    pub(crate) lower: Option<Vec<u8>>,
    /// Exclusive.
    pub(crate) upper: Option<Vec<u8>>,
    /// The whole key, where the filter gives it.
    pub(crate) exact: Option<Vec<u8>>,
}

impl KeyBounds {
    /// What `predicate` says of the key `columns`. What is not understood widens the range.
    pub(crate) fn new(predicate: &Predicate, columns: &[&Column]) -> Self {
        let mut prefix = Vec::new();
        for (i, column) in columns.iter().enumerate() {
            let last = i + 1 == columns.len();
            let mut limits = Limits::default();
            limits.collect(predicate, column);
            if let Some(value) = limits.equal.and_then(|v| cell(column, &v, 0)) {
                encode(column, &value, last, &mut prefix);
                continue;
            }
            let bound = |value: Option<ArrayRef>| {
                let value = value.and_then(|v| cell(column, &v, 0))?;
                let mut key = prefix.clone();
                encode(column, &value, last, &mut key);
                Some(key)
            };
            let lower = bound(limits.lower);
            let upper = match (bound(limits.below), bound(limits.at_most).and_then(successor)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            return Self {
                lower: lower.or_else(|| Some(prefix.clone()).filter(|p| !p.is_empty())),
                upper: upper.or_else(|| successor(prefix)),
                exact: None,
            };
        }
        let upper = [&prefix[..], &[0]].concat();
        let known = !columns.is_empty();
        Self {
            lower: known.then(|| prefix.clone()),
            upper: known.then_some(upper),
            exact: known.then_some(prefix),
        }
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// Whether keys from `min` to `max` (both inclusive) can pass.
    pub(crate) fn may_match(&self, min: Option<&[u8]>, max: Option<&[u8]>) -> bool {
        let above = self.lower.as_deref().zip(max).is_some_and(|(lower, max)| max < lower);
        let below = self.upper.as_deref().zip(min).is_some_and(|(upper, min)| min >= upper);
        !above && !below
    }
}

/// The limits that a conjunction sets to one column.
#[derive(Default)]
struct Limits {
    equal: Option<ArrayRef>,
    lower: Option<ArrayRef>,
    at_most: Option<ArrayRef>,
    below: Option<ArrayRef>,
}

impl Limits {
    /// Of several limits of a kind the last one is as right as any other.
    fn collect(&mut self, predicate: &Predicate, column: &Column) {
        match predicate {
            Predicate::And(all) => all.iter().for_each(|p| self.collect(p, column)),
            Predicate::Compare { column: name, op, value, negated: false } if *name == column.name => {
                let value = Some(value.clone());
                match op {
                    Op::Eq => self.equal = value,
                    Op::Ge | Op::Gt => self.lower = value,
                    Op::Le => self.at_most = value,
                    Op::Lt => self.below = value,
                    Op::Ne => {}
                }
            }
            Predicate::In { column: name, values, negated: false }
                if *name == column.name && values.len() == 1 =>
            {
                self.equal = Some(values.clone());
            }
            _ => {}
        }
    }
}

/// The bytes of a literal of the column's own type, as a cell has them; integers lowest byte first.
fn cell(column: &Column, value: &ArrayRef, i: usize) -> Option<Vec<u8>> {
    if value.data_type() != &column.arrow || i >= value.len() || value.is_null(i) {
        return None;
    }
    Some(match &column.arrow {
        DataType::Int8 => value.as_primitive::<Int8Type>().value(i).to_le_bytes().to_vec(),
        DataType::Int16 => value.as_primitive::<Int16Type>().value(i).to_le_bytes().to_vec(),
        DataType::Int32 => value.as_primitive::<Int32Type>().value(i).to_le_bytes().to_vec(),
        DataType::Int64 => value.as_primitive::<Int64Type>().value(i).to_le_bytes().to_vec(),
        DataType::Date32 => value.as_primitive::<Date32Type>().value(i).to_le_bytes().to_vec(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            value.as_primitive::<TimestampMicrosecondType>().value(i).to_le_bytes().to_vec()
        }
        DataType::Decimal128(..) => {
            let wide = value.as_primitive::<Decimal128Type>().value(i);
            let Physical::Fixed(width) = column.data_type.physical() else { return None };
            let bytes = wide.to_le_bytes();
            let cell = bytes.get(..width)?.to_vec();
            // A literal that the column's width cannot hold is no key.
            crate::schema::widen(&cell, 16).eq(bytes.iter().copied()).then_some(cell)?
        }
        DataType::Utf8 => value.as_string::<i32>().value(i).as_bytes().to_vec(),
        DataType::Binary => value.as_binary::<i32>().value(i).to_vec(),
        _ => return None,
    })
}

/// Appends the encoded form of a cell.
pub(crate) fn encode(column: &Column, cell: &[u8], last: bool, out: &mut Vec<u8>) {
    match column.data_type.physical() {
        Physical::Binary if last => out.extend_from_slice(cell),
        Physical::Binary => {
            for byte in cell {
                out.push(*byte);
                if *byte == 0 {
                    out.push(1);
                }
            }
            out.extend([0, 0]);
        }
        _ => {
            let mut bytes = cell.iter().rev();
            let unsigned = matches!(
                column.data_type,
                KuduType::UInt8 | KuduType::UInt16 | KuduType::UInt32 | KuduType::UInt64
            );
            out.extend(bytes.next().map(|b| if unsigned { *b } else { b ^ 0x80 }));
            out.extend(bytes);
        }
    }
}

/// The least key that does not begin with `prefix`; `None` if there is none.
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
