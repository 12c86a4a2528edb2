//! A value as the bytes by which Kudu sorts it: what the value index holds.
//!
//! ```text
//! integer, date, timestamp, decimal | highest byte first, sign bit flipped |
//! string, binary | as it is |
//! ```
//!
//! (`key_encoder.h`. Floating point numbers and truth values are no keys.)

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use coldframe_core::predicate::Op;
use coldframe_core::{Predicate, Result, arrow_error};

use crate::layout::types::{KuduType, Physical};

/// The key of `value[i]`, whose type is the one that values of `data_type` come out as; `None` where there is none.
pub fn encode(data_type: KuduType, value: &ArrayRef, i: usize) -> Option<Vec<u8>> {
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
    let mut bytes: Vec<u8> = match value.data_type() {
        DataType::Decimal128(..) => {
            let wide = value.as_primitive::<Decimal128Type>().value(i).to_be_bytes();
            let (spare, own) = wide.split_at(16 - width.min(16));
            // What the type's width cannot hold is no key of it.
            let sign = if own.first().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
            spare.iter().all(|b| *b == sign).then(|| own.to_vec())?
        }
        _ => {
            let data = value.to_data();
            let from = (data.offset() + i).checked_mul(width)?;
            let own = data.buffers().first()?.as_slice().get(from..from.checked_add(width)?)?;
            own.iter().rev().copied().collect()
        }
    };
    let unsigned =
        matches!(data_type, KuduType::UInt8 | KuduType::UInt16 | KuduType::UInt32 | KuduType::UInt64);
    if let Some(top) = bytes.first_mut().filter(|_| !unsigned) {
        *top ^= 0x80;
    }
    Some(bytes)
}

/// Keys between which all values lie that can pass a filter: the first inclusive, the last exclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    /// Inclusive.
    pub lower: Option<Vec<u8>>,
    /// Exclusive.
    pub upper: Option<Vec<u8>>,
}

impl KeyBounds {
    /// What `predicate` says of `column`. Anything not understood widens it.
    pub fn new(predicate: &Predicate, column: &str, data_type: KuduType) -> Self {
        match predicate {
            Predicate::And(all) => {
                all.iter().map(|p| Self::new(p, column, data_type)).fold(Self::default(), |a, b| Self {
                    lower: a.lower.max(b.lower),
                    upper: match (a.upper, b.upper) {
                        (Some(x), Some(y)) => Some(x.min(y)),
                        (x, y) => x.or(y),
                    },
                })
            }
            Predicate::Compare { column: name, op, value, negated: false }
                if name == column && *value.data_type() == data_type.arrow() =>
            {
                encode(data_type, value, 0).map(|key| Self::of(*op, key)).unwrap_or_default()
            }
            Predicate::In { column: name, values, negated: false }
                if name == column && *values.data_type() == data_type.arrow() =>
            {
                let keys = (0..values.len()).filter(|i| values.is_valid(*i));
                let keys: Option<Vec<_>> = keys.map(|i| encode(data_type, values, i)).collect();
                let keys = keys.unwrap_or_default();
                Self { lower: keys.iter().min().cloned(), upper: keys.into_iter().max().map(behind) }
            }
            _ => Self::default(),
        }
    }

    fn of(op: Op, key: Vec<u8>) -> Self {
        match op {
            Op::Eq => Self { lower: Some(key.clone()), upper: Some(behind(key)) },
            Op::Ge => Self { lower: Some(key), upper: None },
            Op::Gt => Self { lower: Some(behind(key)), upper: None },
            Op::Lt => Self { lower: None, upper: Some(key) },
            Op::Le => Self { lower: None, upper: Some(behind(key)) },
            Op::Ne => Self::default(),
        }
    }
}

/// The next key.
fn behind(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// `value` in the type that values of a file come out as; an error if it cannot be one.
pub fn literal(value: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if value.data_type() == to {
        return Ok(value.clone());
    }
    let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
    arrow_cast::cast_with_options(value, to, &options).map_err(arrow_error)
}
