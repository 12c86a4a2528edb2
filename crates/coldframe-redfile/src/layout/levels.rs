//! Repetition and definition levels.
//!
//! The stream of runs, filled from the lowest bit of each byte on, with `w` bits per level:
//!
//! ```text
//! level | 0 | value: w bits |
//! run   | 1 | value: w bits | count: LEB128, its groups of 8 bits from whatever bit on |
//! ```
//!
//! The stream does not mark its end, so the reader must know how many levels there are. All dialects write
//! definition levels in this way; the first dialect also writes repetition levels in this way. The other
//! dialects pack repetition levels, most significant bit first. Dialects B to E pad the last group of levels
//! to whole bytes (a group is 8 levels of 3 bits, or 4 levels of 6).
//!
//! To read a level, 64 bits are loaded. At least 57 of these bits can be used, whatever bit the level begins
//! at. Consecutive single levels share a load. Most columns have levels of one bit. Special code for these
//! handles all single levels of a load together, and writes a short run with one store.

use coldframe_encoding::bits::{self, BitOrder};
use coldframe_encoding::{Error, Result};

/// The number of bits of a level whose maximum is `max`.
pub(crate) fn width(max: u8) -> u32 {
    8 - max.leading_zeros()
}

/// Fills `levels` from a stream of runs; returns how many bytes of the stream they took.
pub(crate) fn decode_runs(stream: &[u8], max: u8, levels: &mut [u8]) -> Result<usize> {
    let w = width(max);
    if w == 1 {
        return decode_bits(stream, levels);
    }
    let mask = (1u64 << w) - 1;
    let (mut bit, mut at) = (0usize, 0usize);
    let end = stream.len().saturating_mul(8);
    while at < levels.len() {
        if bit >= end {
            return Err(too_few(levels.len(), at));
        }
        let mut word = window(stream, bit);
        if word & 1 == 0 {
            // At least 57 bits are available, and a single level takes at most 9.
            let available = 57 / (w as usize + 1);
            let mut taken = 0;
            for level in levels.get_mut(at..).unwrap_or_default().iter_mut().take(available) {
                if word & 1 == 1 {
                    break;
                }
                *level = (word >> 1 & mask).to_le_bytes()[0];
                word >>= w + 1;
                taken += 1;
            }
            at += taken;
            bit += taken * (w as usize + 1);
            continue;
        }
        let value = (word >> 1 & mask).to_le_bytes()[0];
        let (run, bits) = run_length(word >> (w + 1), levels.len() - at)?;
        bit += bits + w as usize + 1;
        levels.get_mut(at..at + run).unwrap_or_default().fill(value);
        at += run;
    }
    if bit > end {
        return Err(too_few(levels.len(), at));
    }
    if mask != u64::from(max) {
        let highest = levels.iter().fold(0, |highest, level| highest.max(*level));
        check_highest(highest, max)?;
    }
    Ok(bit.div_ceil(8))
}

/// The maximum number of single levels of one bit in one load.
const SINGLES: usize = 28;
/// The longest run that is written with one store.
const SHORT_RUN: usize = 32;

/// For each byte, the levels of its four single levels of one bit: bits 1, 3, 5 and 7 of the byte.
const FOUR_SINGLES: [[u8; 4]; 256] = {
    let mut table = [[0; 4]; 256];
    let mut rest: &mut [[u8; 4]] = &mut table;
    let mut byte = 0u8;
    while let Some((levels, behind)) = rest.split_first_mut() {
        *levels = [byte >> 1 & 1, byte >> 3 & 1, byte >> 5 & 1, byte >> 7];
        byte = byte.wrapping_add(1);
        rest = behind;
    }
    table
};

/// [`decode_runs`] for levels of one bit.
fn decode_bits(stream: &[u8], levels: &mut [u8]) -> Result<usize> {
    let (mut bit, mut at) = (0usize, 0usize);
    let end = stream.len().saturating_mul(8);
    while at < levels.len() {
        if bit >= end {
            return Err(too_few(levels.len(), at));
        }
        // The lowest flag that is set belongs to the first run. Levels that are written after the last single
        // level are overwritten later.
        let word = window(stream, bit);
        let flags = word & 0x0055_5555_5555_5555 | 1 << (2 * SINGLES);
        let singles = (flags.trailing_zeros() / 2) as usize;
        let put = put_singles(word, singles, levels.get_mut(at..).unwrap_or_default());
        at += put;
        bit += 2 * put;
        if singles == SINGLES || at >= levels.len() {
            continue;
        }
        let word = window(stream, bit);
        let level = (word >> 1 & 1).to_le_bytes()[0];
        let rest = levels.get_mut(at..).unwrap_or_default();
        let (run, bits) = run_length(word >> 2, rest.len())?;
        bit += 2 + bits;
        at += run;
        match rest.first_chunk_mut::<SHORT_RUN>() {
            Some(place) if run <= SHORT_RUN => *place = [level; SHORT_RUN],
            _ => rest.get_mut(..run).unwrap_or_default().fill(level),
        }
    }
    if bit > end {
        return Err(too_few(levels.len(), at));
    }
    Ok(bit.div_ceil(8))
}

/// Writes the first `singles` levels of `word`, and possibly some after them; returns how many fit into
/// `levels`.
#[inline(always)]
fn put_singles(word: u64, singles: usize, levels: &mut [u8]) -> usize {
    if let Some(place) = levels.first_chunk_mut::<SINGLES>() {
        for (four, byte) in place.as_chunks_mut::<4>().0.iter_mut().zip(word.to_le_bytes()) {
            *four = FOUR_SINGLES.get(usize::from(byte)).copied().unwrap_or_default();
        }
        return singles;
    }
    let room = singles.min(levels.len());
    for (i, level) in levels.iter_mut().take(room).enumerate() {
        *level = (word >> (2 * i + 1) & 1).to_le_bytes()[0];
    }
    room
}

/// The count of a run at the front of `word`, at most `left` levels, and the number of bits that it takes.
#[inline(always)]
fn run_length(word: u64, left: usize) -> Result<(usize, usize)> {
    let (mut count, mut shift) = (0, 0);
    for group in 0..5 {
        let byte = word >> (8 * group) & 0xff;
        count |= (byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            let run = usize::try_from(count).ok().filter(|n| (1..=left).contains(n));
            return Ok((run.ok_or_else(|| wrong_run(count, left))?, 8 * (group + 1)));
        }
    }
    Err(Error::corrupt("expected a run's length of at most 5 bytes, found a longer one"))
}

#[cold]
#[inline(never)]
fn wrong_run(count: u64, left: usize) -> Error {
    Error::corrupt(format!("expected a run of 1 to {left} levels, found one of {count}"))
}

/// At least 57 bits of the stream, from bit `bit` on; zeros after its end.
#[inline(always)]
fn window(stream: &[u8], bit: usize) -> u64 {
    let bytes = stream.get(bit / 8..).unwrap_or_default();
    let word = match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)),
    };
    word >> (bit % 8)
}

/// For each of up to 64 levels, a bit that is set if the level is at least `least`. The lowest bit is the bit
/// of the first level.
#[inline]
pub(crate) fn at_least(levels: &[u8], least: u8) -> u64 {
    let (eights, rest) = levels.as_chunks::<8>();
    let mut padded = [0; 8];
    padded.iter_mut().zip(rest).for_each(|(to, level)| *to = *level);
    let last = eight_at_least(padded, least) & ((1 << rest.len()) - 1);
    let bits = last.checked_shl(8 * u32::try_from(eights.len()).unwrap_or(8)).unwrap_or(0);
    eights.iter().take(8).enumerate().fold(bits, |bits, (i, e)| bits | eight_at_least(*e, least) << (8 * i))
}

/// [`at_least`] for eight levels in one register.
#[inline(always)]
fn eight_at_least(levels: [u8; 8], least: u8) -> u64 {
    const TOP: u64 = 0x8080_8080_8080_8080;
    let (level, least) = (u64::from_le_bytes(levels), u64::from_le_bytes([least; 8]));
    // In the subtraction no byte borrows from another, because the top bit of each byte is set before.
    let low = (level | TOP) - (least & !TOP);
    let reached = (level & !least | !(level ^ least) & low) & TOP;
    // There is a byte 0 or 1 for each level; the multiplication gathers these in the top byte.
    (reached >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cold]
#[inline(never)]
fn too_few(expected: usize, decoded: usize) -> Error {
    Error::corrupt(format!("expected {expected} levels, found the end of their bytes after {decoded}"))
}

fn check_highest(highest: u8, max: u8) -> Result<()> {
    if highest <= max {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected levels up to {max}, found {highest}")))
}

/// The number of bytes of packed levels. `padded`: whether the last group is padded.
pub(crate) fn packed_len(count: usize, max: u8, padded: bool) -> usize {
    let width = width(max);
    if !padded {
        return bits::packed_len(count, width);
    }
    let group = 8usize >> width.trailing_zeros().min(3);
    bits::packed_len(count.div_ceil(group).saturating_mul(group), width)
}

/// Fills `levels` from the packed levels at the start of `packed`, which must be complete.
pub(crate) fn unpack(packed: &[u8], max: u8, levels: &mut [u8]) -> Result<()> {
    bits::unpack(BitOrder::Msb, width(max), packed, levels)?;
    let highest = levels.iter().fold(0, |highest, level| highest.max(*level));
    check_highest(highest, max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream as the format defines it, one bit at a time.
    fn naive(runs: &[(u8, u32)], max: u8) -> (Vec<u8>, Vec<u8>) {
        let (mut bits, mut levels) = (Vec::new(), Vec::new());
        let mut put = |value: u64, n: u32| (0..n).for_each(|i| bits.push(value >> i & 1 == 1));
        for (value, count) in runs {
            let value = value % (max + 1);
            if count % 2 == 0 {
                put(1, 1);
                put(value.into(), width(max));
                let mut bytes = vec![];
                coldframe_encoding::varint::put_uleb128(&mut bytes, (*count + 1).into());
                bytes.iter().for_each(|b| put((*b).into(), 8));
                levels.extend(std::iter::repeat_n(value, *count as usize + 1));
            } else {
                put(0, 1);
                put(value.into(), width(max));
                levels.push(value);
            }
        }
        let bytes =
            bits.chunks(8).map(|c| c.iter().rev().fold(0, |b, bit| b << 1 | u8::from(*bit))).collect();
        (bytes, levels)
    }

    #[test]
    fn the_column_of_the_paper_is_read() {
        let mut levels = [9; 4];
        assert_eq!(decode_runs(&[0x25, 0], 2, &mut levels).unwrap(), 2);
        assert_eq!(levels, [2; 4]);
        unpack(&[0x60], 1, &mut levels).unwrap();
        assert_eq!(levels, [0, 1, 1, 0]);
    }

    #[test]
    fn invalid_streams_are_errors() {
        let mut levels = [0; 4];
        let e = decode_runs(&[0x2d, 0], 2, &mut levels).unwrap_err();
        assert_eq!(e.to_string(), "expected a run of 1 to 4 levels, found one of 5");
        assert!(decode_runs(&[0x05, 0], 2, &mut levels).is_err());
        let e = decode_runs(&[0], 1, &mut [0; 5]).unwrap_err();
        assert_eq!(e.to_string(), "expected 5 levels, found the end of their bytes after 5");
        let e = decode_runs(&[6], 2, &mut [0; 1]).unwrap_err();
        assert_eq!(e.to_string(), "expected levels up to 2, found 3");
        assert!(unpack(&[0xff], 2, &mut [0; 4]).is_err());
        assert!(decode_runs(&[], 1, &mut [0; 1]).is_err());
    }

    #[test]
    fn groups_are_padded_where_they_do_not_end_on_a_byte() {
        let lens = |max| (packed_len(9, max, false), packed_len(9, max, true));
        assert_eq!(
            [1, 3, 7, 15, 31, 63, 127, 255].map(lens),
            [(2, 2), (3, 3), (4, 6), (5, 5), (6, 10), (7, 9), (8, 14), (9, 9),]
        );
    }

    proptest! {
        #[test]
        fn at_least_agrees_with_a_loop(
            levels in proptest::collection::vec(any::<u8>(), 0..=64),
            least in any::<u8>(),
        ) {
            let expected = levels.iter().rev().fold(0u64, |bits, l| bits << 1 | u64::from(*l >= least));
            prop_assert_eq!(at_least(&levels, least), expected);
        }

        #[test]
        fn streams_of_a_naive_writer_are_read(
            runs in proptest::collection::vec((0u8..=255, 0u32..300), 0..80),
            max in 1u8..=254,
        ) {
            let (bytes, levels) = naive(&runs, max);
            let mut decoded = vec![0; levels.len()];
            prop_assert_eq!(decode_runs(&bytes, max, &mut decoded).unwrap(), bytes.len());
            prop_assert_eq!(decoded, levels);
        }
    }
}
