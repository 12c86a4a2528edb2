//! The trait of all decoders of column values, and functions that move dense values to their rows.

use std::hint::select_unpredictable;

use crate::{Error, Result};

/// Decodes a run of values into the caller's memory.
pub trait Decode<T> {
    /// Fills all of `values`; an error if the encoded bytes hold fewer.
    fn decode(&mut self, values: &mut [T]) -> Result<()>;

    /// Skips `n` values; an error if the encoded bytes hold fewer.
    fn skip(&mut self, n: usize) -> Result<()>;
}

/// How many of the first `rows` bits of `validity` are set, where the least significant bit of a byte is the
/// first.
fn count_valid(validity: &[u8], rows: usize) -> Result<usize> {
    let (whole, last) = checked(validity, rows)?;
    let (chunks, bytes) = whole.as_chunks::<8>();
    let ones = chunks.iter().map(|w| u64::from_ne_bytes(*w).count_ones() as usize).sum::<usize>()
        + bytes.iter().map(|b| b.count_ones() as usize).sum::<usize>();
    Ok(ones + last.count_ones() as usize)
}

/// Moves values from the start of `values`, where they are dense, to the rows whose bit in `validity` is set;
/// the other rows get `T::default()`. As in Arrow, the least significant bit of a byte is the first. `values`
/// has one element per row. Returns how many values were moved.
///
/// This works in place from the back: a value never moves to an earlier row, so no value is overwritten
/// before it is moved. Sixty-four rows are handled at a time: if all of them are null, they are filled; if
/// all are valid, they are copied.
pub fn spread<T: Copy + Default>(values: &mut [T], validity: &[u8]) -> Result<usize> {
    let rows = values.len();
    let valid = count_valid(validity, rows)?;
    let mut dense = valid;
    let mut end = rows;
    while end > dense {
        // Rows `start..end` belong to one 64-bit word of the bitmap. If `end > dense`, there is still a null.
        let start = (end - 1) & !63;
        let word = word_at(validity, start) & (u64::MAX >> (64 - (end - start)));
        let ones = word.count_ones() as usize;
        if ones == 0 {
            values.get_mut(start..end).unwrap_or_default().fill(T::default());
        } else if ones == end - start {
            values.copy_within(dense - ones..dense, start);
        } else {
            spread_word(values, word, start..end, dense);
        }
        dense -= ones;
        end = start;
    }
    Ok(valid)
}

/// For the bits of four rows: which of the next four values belongs to each row, and how many rows have a
/// value.
const RANKS: [([u8; 4], u8); 16] = {
    let mut table = [([0; 4], 0); 16];
    let mut rest: &mut [([u8; 4], u8)] = &mut table;
    let mut bits = 0u8;
    while let Some((entry, behind)) = rest.split_first_mut() {
        let (a, b, c, d) = (bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3);
        *entry = ([0, a, a + b, a + b + c], a + b + c + d);
        bits += 1;
        rest = behind;
    }
    table
};

/// Moves the values before `dense` to the rows of one word.
fn spread_word<T: Copy + Default>(
    values: &mut [T],
    word: u64,
    rows: std::ops::Range<usize>,
    mut dense: usize,
) {
    let fours = (rows.end - rows.start) / 4;
    for row in (rows.start + 4 * fours..rows.end).rev() {
        let valid = word >> (row & 63) & 1 == 1;
        dense -= usize::from(valid);
        // `dense <= row` always. For a null row a value is read and dropped, which avoids a branch that
        // depends on random bits.
        let value = values.get(dense).copied().unwrap_or_default();
        if let Some(place) = values.get_mut(row) {
            *place = if valid { value } else { T::default() };
        }
    }
    // Handling four rows at a time avoids dependent loads.
    for row in (0..fours).rev().map(|n| rows.start + 4 * n) {
        let Some((ranks, ones)) = RANKS.get((word >> (row & 63) & 15) as usize) else { return };
        dense -= usize::from(*ones);
        let Some(next) = values.get(dense..).and_then(|v| v.first_chunk()) else { return };
        let four = four_rows(word >> (row & 63), ranks, next, T::default());
        if let Some(place) = values.get_mut(row..).and_then(|v| v.first_chunk_mut()) {
            *place = four;
        }
    }
}

/// The values of four rows, according to the low bits of `bits`, from the next four values.
#[inline(always)]
fn four_rows<T: Copy>(bits: u64, ranks: &[u8; 4], next: &[T; 4], null: T) -> [T; 4] {
    std::array::from_fn(|i| {
        let value = ranks.get(i).and_then(|r| next.get(usize::from(*r & 3))).copied().unwrap_or(null);
        select_unpredictable(bits >> i & 1 == 1, value, null)
    })
}

/// Copies the first values of `dense` to the `rows` whose bit in `word` is set; the other rows get `null`.
/// There are at most 64 rows, and the first row's bit is the lowest. Returns how many values were copied;
/// `None` if `dense` has fewer.
#[inline]
pub fn spread_rows<T: Copy>(dense: &[T], word: u64, rows: &mut [T], null: T) -> Option<usize> {
    let every = u64::MAX >> (64 - rows.len().clamp(1, 64));
    let word = word & every;
    if word == every {
        rows.copy_from_slice(dense.get(..rows.len())?);
        return Some(rows.len());
    }
    let (mut at, mut bits) = (0, word);
    let (fours, rest) = rows.as_chunks_mut::<4>();
    for four in fours {
        let (ranks, ones) = RANKS.get((bits & 15) as usize)?;
        match dense.get(at..).and_then(|d| d.first_chunk()) {
            Some(next) => *four = four_rows(bits, ranks, next, null),
            None => spread_tail(dense.get(at..)?, bits, four, null)?,
        }
        at += usize::from(*ones);
        bits >>= 4;
    }
    spread_tail(dense.get(at..)?, bits, rest, null)?;
    Some(word.count_ones() as usize)
}

/// Moves one value at a time, for the end, where fewer than four values remain.
fn spread_tail<T: Copy>(dense: &[T], bits: u64, rows: &mut [T], null: T) -> Option<()> {
    let mut next = dense.iter();
    for (i, row) in rows.iter_mut().enumerate() {
        *row = if bits >> i & 1 == 1 { *next.next()? } else { null };
    }
    Some(())
}

/// The 64 bits that begin at bit `start`, a multiple of 64; zeros after the end.
fn word_at(validity: &[u8], start: usize) -> u64 {
    let bytes = validity.get(start / 8..).unwrap_or_default();
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)),
    }
}

/// The whole bytes of a bitmap of `rows` bits, and the bits of its last, partial byte.
fn checked(validity: &[u8], rows: usize) -> Result<(&[u8], u8)> {
    let Some(bytes) = validity.get(..rows.div_ceil(8)) else {
        let len = validity.len();
        return Err(Error::corrupt(format!("expected a validity bitmap of {rows} bits, found {len} bytes")));
    };
    let whole = bytes.get(..rows / 8).unwrap_or_default();
    let last = bytes.get(rows / 8).map_or(0, |b| b & ((1 << (rows % 8)) - 1));
    Ok((whole, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_bitmap_is_an_error() {
        let e = spread(&mut [0u8; 9], &[0xff]).unwrap_err();
        assert_eq!(e.to_string(), "expected a validity bitmap of 9 bits, found 1 bytes");
    }

    proptest! {
        #[test]
        fn spreading_in_bulk_agrees_with_spreading_row_by_row(
            runs in proptest::collection::vec((0usize..150, 0u8..3), 0..12),
            noise in proptest::collection::vec(any::<bool>(), 600),
        ) {
            let bits: Vec<bool> = runs
                .iter()
                .flat_map(|(n, kind)| noise.iter().take(*n).map(move |b| [false, true, *b][usize::from(*kind)]))
                .collect();
            let mut validity = vec![0xffu8; bits.len().div_ceil(8)]; // bits after the last row must not count
            for (row, bit) in bits.iter().enumerate().filter(|(_, bit)| !**bit) {
                validity[row / 8] &= !(u8::from(!bit) << (row % 8));
            }
            let valid = bits.iter().filter(|b| **b).count();
            let mut values = vec![99u32; bits.len()];
            for (i, v) in values.iter_mut().take(valid).enumerate() {
                *v = u32::try_from(i).unwrap() + 1000;
            }
            let mut dense = values.clone().into_iter();
            let expected: Vec<u32> =
                bits.iter().map(|b| if *b { dense.next().unwrap() } else { 0 }).collect();
            prop_assert_eq!(count_valid(&validity, bits.len()).unwrap(), valid);
            let dense = values[..valid].to_vec();
            let (mut elsewhere, mut at) = (vec![99; bits.len()], 0);
            for (i, rows) in elsewhere.chunks_mut(64).enumerate() {
                at += spread_rows(&dense[at..], word_at(&validity, i * 64), rows, 0).unwrap();
            }
            prop_assert_eq!((at, &elsewhere), (valid, &expected));
            if let Some(rows) = elsewhere.get_mut(..64.min(valid)) {
                prop_assert!(rows.is_empty() || spread_rows(&dense[1..rows.len()], u64::MAX, rows, 0).is_none());
            }
            prop_assert_eq!(spread(&mut values, &validity).unwrap(), valid);
            prop_assert_eq!(values, expected);
        }
    }
}
