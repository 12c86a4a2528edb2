//! Reads `int`, `bigint`, `date` and the intervals, which are Hadoop VInts.
//!
//! The cell's length is known, so the integer is not parsed byte by byte: the eight bytes that *end* at the cell's
//! end are one load, and the payload is its low `8 * (length - 1)` bits. The first byte, which repeats sign and
//! length, is only checked. There is no branch that depends on the length.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int32Array, Int64Array, StructArray};
use coldframe_encoding::calendar::{CUTOVER, hybrid_to_proleptic};
use coldframe_encoding::{Cursor, Error, Result};

use super::cells::{CellError, Run, Values};
use super::framing::Framing;
use crate::hive_type::interval_day_time_fields;

pub(super) struct Int;

impl Values for Int {
    fn framing(&self) -> Framing {
        Framing::VInt
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        Ok(Arc::new(Int32Array::new(vints(run)?.into(), run.nulls.clone())))
    }
}

pub(super) struct BigInt;

impl Values for BigInt {
    fn framing(&self) -> Framing {
        Framing::VInt
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        Ok(Arc::new(Int64Array::new(vlongs(run)?.into(), run.nulls.clone())))
    }
}

pub(super) struct Date {
    /// Days of the hybrid calendar, which is Julian before 1582-10-15.
    pub(super) hybrid: bool,
}

impl Values for Date {
    fn framing(&self) -> Framing {
        Framing::VInt
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let mut days: Vec<i32> = vints(run)?;
        if self.hybrid {
            for (i, day) in days.iter_mut().enumerate().filter(|(_, d)| i64::from(**d) < CUTOVER) {
                let shown = hybrid_to_proleptic((*day).into());
                let beyond = |_| Error::corrupt(format!("expected a day of 32 bits, found {shown}"));
                *day = i32::try_from(shown).map_err(|e| CellError::new(i, beyond(e)))?;
            }
        }
        Ok(Arc::new(Date32Array::new(days.into(), run.nulls.clone())))
    }
}

pub(super) struct IntervalDayTime;

impl Values for IntervalDayTime {
    fn framing(&self) -> Framing {
        Framing::TwoVInts
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let check = |mut cell: Cursor<'_>| {
            let seconds = cell.hadoop_vlong()?;
            let nanos = cell.hadoop_vint()?;
            cell.finish().map(|()| (seconds, nanos))
        };
        let mut seconds = Vec::with_capacity(run.len());
        let mut nanos = Vec::with_capacity(run.len());
        for (i, cell) in run.cells().enumerate() {
            let value = if run.is_null(i) {
                (0, 0)
            } else {
                check(Cursor::new(cell, 0)).map_err(|e| CellError::new(i, e))?
            };
            seconds.push(value.0);
            nanos.push(value.1);
        }
        let children: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::new(seconds.into(), None)),
            Arc::new(Int32Array::new(nanos.into(), None)),
        ];
        Ok(Arc::new(StructArray::new(interval_day_time_fields(), children, run.nulls.clone())))
    }
}

/// Reads 64-bit integers.
fn vlongs(run: &Run<'_>) -> Result<Vec<i64>, CellError> {
    let data = run.data.as_slice();
    let mut wrong = false;
    let values = run.places().map(|(start, end)| {
        let (value, bad) = vint(data, start, end);
        wrong |= bad;
        value
    });
    let values = values.collect();
    if wrong {
        Err(run.refuse(|mut cell| cell.hadoop_vlong().and_then(|_| cell.finish())))
    } else {
        Ok(values)
    }
}

/// Reads 32-bit integers; a longer integer is an error.
#[expect(clippy::cast_possible_truncation, reason = "a value that this changes is refused")]
fn vints(run: &Run<'_>) -> Result<Vec<i32>, CellError> {
    let data = run.data.as_slice();
    let mut wrong = false;
    let values = run.places().map(|(start, end)| {
        let (value, bad) = vint(data, start, end);
        let narrow = value as i32;
        wrong |= bad | (i64::from(narrow) != value);
        narrow
    });
    let values = values.collect();
    if wrong {
        Err(run.refuse(|mut cell| cell.hadoop_vint().and_then(|_| cell.finish())))
    } else {
        Ok(values)
    }
}

/// The VInt that fills `data[start..end]`, and whether the bytes are malformed. An empty range gives 0.
#[inline]
pub(super) fn vint(data: &[u8], start: usize, end: usize) -> (i64, bool) {
    let length = end.wrapping_sub(start);
    let first = if length == 0 { 0 } else { data.get(start).copied().unwrap_or(0) };
    let payload = length.saturating_sub(1);
    // 128..=135 introduce negative integers of 8..=1 bytes, 136..=143 positive integers; every other byte is
    // a value.
    let tag = first.wrapping_sub(128);
    let expected = if tag < 16 { 8 - usize::from(tag & 7) } else { 0 };
    let sign = if tag < 8 { u64::MAX } else { 0 };
    let wide = (low_bytes(word_before(data, end), payload) ^ sign).cast_signed();
    let value = if payload == 0 { i64::from(first.cast_signed()) } else { wide };
    (value, payload != expected)
}

/// The low `n` bytes of a word, `n` up to 8.
#[inline]
fn low_bytes(word: u64, n: usize) -> u64 {
    let drop = u32::try_from((8usize.wrapping_sub(n) & 7) * 8).unwrap_or(0);
    if n == 0 { 0 } else { word & (u64::MAX >> drop) }
}

/// The eight bytes before `end`, big-endian; zeros before the first byte.
#[inline]
pub(super) fn word_before(data: &[u8], end: usize) -> u64 {
    match data.get(..end).and_then(<[u8]>::last_chunk) {
        Some(word) => u64::from_be_bytes(*word),
        None => word_near_start(data, end),
    }
}

#[cold]
#[inline(never)]
fn word_near_start(data: &[u8], end: usize) -> u64 {
    let head = data.get(..end).unwrap_or_default();
    head.iter().take(8).fold(0, |word, byte| (word << 8) | u64::from(*byte))
}
