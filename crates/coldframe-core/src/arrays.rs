//! Arrays from offsets and bytes that are checked in bulk. Only this module turns a decoder's bytes into
//! Arrow strings.
//!
//! Arrow's safe constructors stop at the first decreasing offset, and check every byte with the standard
//! library's UTF-8 check and then the first byte of each value. Here all pairs of offsets are compared in a
//! loop without an early exit, which the compiler vectorises; offsets made from lengths cannot decrease; and
//! text is checked several bytes at a time, with a fast path for pure ASCII.
//!
//! | module | holds |
//! |---|---|
//! | this | arrays from offsets, or from lengths |
//! | [`chosen`] | the selected rows of a batch |
//! | [`views`] | the same values as views |
//! | [`blocks`] | views of values that lie anywhere in blocks |
//! | [`mod@dictionary`] | a dictionary's entries, and values made from them |

pub mod blocks;
pub mod chosen;
pub mod dictionary;
pub mod views;

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, OffsetSizeTrait, StringArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use coldframe_encoding::{Error, Result};

use crate::arrow_error;
pub use dictionary::TextDictionary;

/// Maximum bytes reserved for values that are not decoded yet.
const MAX_AHEAD: usize = 16 << 20;

/// Reserves room in `data` for the `more` bytes of the next `rows` values. Also reserves room for all `left`
/// values, as if they had the same average length: one allocation instead of a copy at each doubling.
pub fn reserve(data: &mut Vec<u8>, more: usize, rows: usize, left: usize) {
    if data.capacity() - data.len() < more {
        let ahead = more.saturating_add(more / 16).saturating_mul(left) / rows.max(1);
        data.reserve(more.max(ahead.min(MAX_AHEAD)));
    }
}

/// `offsets` as an Arrow buffer. An error if there are no offsets, or if an offset is negative or less than
/// the one before it.
pub fn offsets(offsets: Vec<i32>) -> Result<OffsetBuffer<i32>> {
    let next = offsets.get(1..).unwrap_or_default();
    let falling = offsets.iter().zip(next).fold(0u32, |n, (a, b)| n | u32::from(a > b));
    if falling != 0 || offsets.first().is_none_or(|first| *first < 0) {
        return Err(Error::corrupt("expected offsets that do not decrease, found one that does"));
    }
    let offsets = ScalarBuffer::from(offsets);
    // SAFETY: the offsets are not empty, the first is not negative, and no offset is less than the previous
    // offset: all checked above.
    #[expect(unsafe_code, reason = "the safe constructor would check the same again, one pair at a time")]
    Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
}

/// Offsets of values with these lengths. The lengths must add up to `len` bytes.
pub(crate) fn offsets_of_lengths(lengths: &[u32], len: usize) -> Result<OffsetBuffer<i32>> {
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if total != len as u64 || i32::try_from(total).is_err() {
        return Err(Error::corrupt(format!(
            "expected values of {len} bytes together, found lengths of {total}"
        )));
    }
    // The total fits, so no partial sum overflows. Four offsets are computed at a time, so that only one
    // addition depends on the previous four.
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    let mut at = 0u32;
    offsets.push(at);
    let (fours, rest) = lengths.as_chunks::<4>();
    offsets.extend(fours.iter().flat_map(|[a, b, c, d]| {
        let [ab, cd] = [a.wrapping_add(*b), c.wrapping_add(*d)];
        let start = at;
        at = at.wrapping_add(ab.wrapping_add(cd));
        [a.wrapping_add(start), ab.wrapping_add(start), ab.wrapping_add(*c).wrapping_add(start), at]
    }));
    offsets.extend(rest.iter().map(|length| {
        at = at.wrapping_add(*length);
        at
    }));
    let count = offsets.len();
    let offsets = ScalarBuffer::new(Buffer::from_vec(offsets), 0, count);
    // SAFETY: the first offset is 0, each other is the previous offset plus a length. Their sum is in the
    // range of i32, as checked above, so no addition overflowed and every offset is in that range.
    #[expect(unsafe_code, reason = "the safe constructor would check the same again, one pair at a time")]
    Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
}

/// The start and total length of the bytes that these offsets cover. Offsets of a slice cover the slice, not
/// the array it was cut from.
pub fn span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    (offsets.first().as_usize(), (offsets.last() - offsets.first()).as_usize())
}

/// [`span`], and the offsets relative to its start.
pub fn window<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize, OffsetBuffer<O>) {
    let (start, length) = span(offsets);
    if start == 0 {
        return (start, length, offsets.clone());
    }
    let first = offsets.first();
    let moved = offsets.iter().map(|o| *o - first).collect::<Vec<O>>();
    (start, length, OffsetBuffer::new(moved.into()))
}

/// Offsets and data as an array; text must be UTF-8.
pub fn strings(ends: Vec<i32>, data: Vec<u8>, nulls: Option<NullBuffer>, text: bool) -> Result<ArrayRef> {
    let offsets = offsets(ends)?;
    if text {
        return Ok(Arc::new(text_array(offsets, data, nulls)?));
    }
    check_end(&offsets, data.len())?;
    Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(data), nulls).map_err(arrow_error)?))
}

/// Binary values with these lengths, which must add up to the length of `data`.
pub fn binary_of_lengths(lengths: &[u32], data: Buffer, nulls: Option<NullBuffer>) -> Result<BinaryArray> {
    let offsets = offsets_of_lengths(lengths, data.len())?;
    BinaryArray::try_new(offsets, data, nulls).map_err(arrow_error)
}

/// Text values with these lengths, which must add up to the length of the data; an error if a value is not
/// UTF-8.
pub(crate) fn text_of_lengths(
    lengths: &[u32],
    data: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<StringArray> {
    text_array(offsets_of_lengths(lengths, data.len())?, data, nulls)
}

/// Text values with these lengths. A value that is not UTF-8 causes no error: it becomes null, or empty if
/// nulls are not allowed. Also returns the indexes of these values.
pub fn readable_text(
    lengths: &[u32],
    data: Buffer,
    nulls: Option<NullBuffer>,
    nullable: bool,
) -> Result<(StringArray, Vec<usize>)> {
    let offsets = offsets_of_lengths(lengths, data.len())?;
    check_end(&offsets, data.len())?;
    if data.is_ascii() || is_text(&offsets, &data) {
        return Ok((checked_text(offsets, data, nulls)?, Vec::new()));
    }
    let malformed: Vec<usize> = malformed(&offsets, &data).collect();
    if malformed.is_empty() {
        return Ok((checked_text(offsets, data, nulls)?, malformed));
    }
    let is_malformed = |row: &usize| malformed.binary_search(row).is_ok();
    let (mut kept, mut sizes) = (Vec::with_capacity(data.len()), Vec::with_capacity(lengths.len()));
    for (row, (from, to)) in offsets.iter().zip(offsets.iter().skip(1)).enumerate() {
        let value = data.get(place(*from)..place(*to)).filter(|_| !is_malformed(&row)).unwrap_or_default();
        kept.extend_from_slice(value);
        sizes.push(u32::try_from(value.len()).unwrap_or(u32::MAX));
    }
    let nulls = if nullable { with_nulls(nulls, lengths.len(), &malformed) } else { nulls };
    Ok((text_of_lengths(&sizes, kept, nulls)?, malformed))
}

/// The null bitmap `nulls` of `rows` rows, in which the rows `more` are null as well.
pub fn with_nulls(nulls: Option<NullBuffer>, rows: usize, more: &[usize]) -> Option<NullBuffer> {
    if more.is_empty() {
        return nulls;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    match nulls {
        Some(nulls) => valid.append_buffer(nulls.inner()),
        None => valid.append_n(rows, true),
    }
    for row in more.iter().filter(|row| **row < rows) {
        valid.set_bit(*row, false);
    }
    Some(NullBuffer::new(valid.finish()))
}

fn check_end(offsets: &[i32], len: usize) -> Result<()> {
    let end = offsets.last().map_or(0, |end| place(*end));
    if end <= len {
        Ok(())
    } else {
        Err(Error::corrupt(format!("expected values of {end} bytes, found {len}")))
    }
}

fn place(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn text_array(offsets: OffsetBuffer<i32>, data: Vec<u8>, nulls: Option<NullBuffer>) -> Result<StringArray> {
    check_end(&offsets, data.len())?;
    if !data.is_ascii() {
        check_text(&offsets, &data)?;
    }
    checked_text(offsets, data.into(), nulls)
}

/// An array of text. The caller, which is in this module, has checked that all values are UTF-8 and inside
/// `data`.
fn checked_text(offsets: OffsetBuffer<i32>, data: Buffer, nulls: Option<NullBuffer>) -> Result<StringArray> {
    if let Some(nulls) = nulls.as_ref().filter(|n| n.len() + 1 != offsets.len()) {
        let (expected, actual) = (offsets.len() - 1, nulls.len());
        return Err(Error::corrupt(format!("expected a null bitmap of {expected} values, found {actual}")));
    }
    // SAFETY: an `OffsetBuffer` is never empty, negative or decreasing, and the null bitmap has the same
    // number of values, as compared above. `text_array`, `Gathered::text` and `chosen` call this only if the
    // last offset is inside `data` and all values are UTF-8: all bytes are ASCII, or `check_text` checked
    // each value, or the bytes are UTF-8 as a whole and cut at characters, or the values are whole values of
    // another text array.
    #[expect(unsafe_code, reason = "the safe constructor would check the text again, a byte at a time")]
    Ok(unsafe { StringArray::new_unchecked(offsets, data, nulls) })
}

/// Whether a value begins or ends in the middle of a character.
fn cuts_characters(offsets: &[i32], data: &[u8]) -> bool {
    offsets.iter().any(|at| data.get(place(*at)).is_some_and(|byte| byte & 0xc0 == 0x80))
}

/// Whether all bytes together are UTF-8 and no value begins inside a character.
fn is_text(offsets: &[i32], data: &[u8]) -> bool {
    simdutf8::basic::from_utf8(data).is_ok() && !cuts_characters(offsets, data)
}

/// The values that are not UTF-8 by themselves. Bytes before the first value or after the last are ignored.
fn malformed(offsets: &[i32], data: &[u8]) -> impl Iterator<Item = usize> {
    let is_text = |(from, to): (&i32, &i32)| {
        data.get(place(*from)..place(*to)).is_some_and(|value| simdutf8::basic::from_utf8(value).is_ok())
    };
    let values = offsets.iter().zip(offsets.iter().skip(1)).enumerate();
    values.filter(move |(_, value)| !is_text(*value)).map(|(row, _)| row)
}

/// An error if a value is not UTF-8.
fn check_text(offsets: &[i32], data: &[u8]) -> Result<()> {
    if is_text(offsets, data) {
        return Ok(());
    }
    match malformed(offsets, data).next() {
        Some(row) => Err(Error::corrupt(format!("expected UTF-8, found other bytes in value {row}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use proptest::prelude::*;

    #[test]
    fn a_value_that_is_not_utf8_costs_only_itself() {
        let data = b"ab\xe9cd\xc3\xa4".to_vec();
        let nulls = Some(NullBuffer::from(vec![true, true, false, true, true]));
        let (text, malformed) = readable_text(&[2, 1, 0, 2, 2], data.clone().into(), nulls, true).unwrap();
        assert_eq!(malformed, [1]);
        assert_eq!(text.iter().collect::<Vec<_>>(), [Some("ab"), None, None, Some("cd"), Some("ä")]);
        // A map's key may not be null.
        let (text, _) = readable_text(&[2, 1, 2, 2], data.clone().into(), None, false).unwrap();
        assert_eq!(text.iter().collect::<Vec<_>>(), [Some("ab"), Some(""), Some("cd"), Some("ä")]);
        // A character split into two values makes both invalid.
        let (text, malformed) = readable_text(&[6, 1], "abcdeä".as_bytes().into(), None, true).unwrap();
        assert_eq!((malformed, text.null_count()), (vec![0, 1], 2));
    }

    #[test]
    fn a_value_that_is_not_utf8_is_an_error() {
        let e = strings(vec![0, 1, 3], vec![b'a', 0xc3, b'b'], None, true).unwrap_err();
        assert_eq!(e.reason(), "expected UTF-8, found other bytes in value 1");
        assert!(strings(vec![0, 1, 3], vec![b'a', 0xc3, b'b'], None, false).is_ok());
        // A character is cut in two: only all bytes together are UTF-8.
        assert!(strings(vec![0, 1, 2], vec![0xc3, 0xa4], None, true).is_err());
        assert!(text_of_lengths(&[1, 1], vec![0xc3, 0xa4], None).is_err());
        // Bytes after the last value are not checked.
        assert!(strings(vec![1, 2], vec![0xff, b'a', 0xff], None, true).is_ok());
        let text = text_of_lengths(&[2, 0, 1], vec![0xc3, 0xa4, b'x'], None).unwrap();
        assert_eq!(text.iter().flatten().collect::<Vec<_>>(), ["ä", "", "x"]);
        text.to_data().validate_full().unwrap();
    }

    #[test]
    fn lengths_must_add_up_to_the_bytes() {
        assert!(binary_of_lengths(&[1, 2], vec![0u8; 4].into(), None).is_err());
        assert!(binary_of_lengths(&[u32::MAX, 1], Buffer::default(), None).is_err());
        assert!(binary_of_lengths(&[1, 2], vec![0u8; 3].into(), Some(NullBuffer::new_null(3))).is_err());
        assert!(text_of_lengths(&[1, 2], vec![0; 3], Some(NullBuffer::new_null(3))).is_err());
        assert_eq!(binary_of_lengths(&[1, 2], vec![0u8; 3].into(), None).unwrap().len(), 2);
    }

    #[test]
    fn invalid_offsets_are_refused() {
        assert!(offsets(vec![]).is_err());
        assert!(offsets(vec![-1, 0]).is_err());
        assert!(offsets(vec![0, 5, 4]).is_err());
        assert!(offsets(vec![0, i32::MAX, i32::MIN]).is_err());
        assert_eq!(offsets(vec![7]).unwrap().as_ref(), [7]);
    }

    #[test]
    fn reserved_memory_is_enough_and_bounded() {
        let mut data = Vec::new();
        reserve(&mut data, 1000, 10, 100);
        assert!((10_000..12_000).contains(&data.capacity()), "{}", data.capacity());
        let mut data = Vec::new();
        reserve(&mut data, 1 << 24, 1, 1 << 20);
        assert!(data.capacity() < 1 << 25, "{}", data.capacity());
    }

    fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-c]{0,9}".prop_map(String::into_bytes),
            "[ä-ö]{0,5}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..9)
        ]
    }

    proptest! {
        #[test]
        fn text_is_checked_as_strictly_as_by_arrow(
            any in proptest::collection::vec(-1i32..12, 0..6),
            mut sorted in proptest::collection::vec(0i32..12, 1..6),
            data in some_bytes(),
            nulls: bool,
        ) {
            sorted.sort_unstable();
            for ends in [any, sorted] {
                let nulls = nulls.then(|| NullBuffer::new_valid(2));
                let known = ends.first().is_some_and(|o| *o >= 0) && ends.is_sorted();
                let arrow = known.then(|| OffsetBuffer::new(ends.clone().into())).and_then(|o| {
                    StringArray::try_new(o, data.clone().into(), nulls.clone()).ok()
                });
                let array = strings(ends, data.clone(), nulls, true).ok();
                if let Some(array) = &array {
                    array.to_data().validate_full().unwrap();
                }
                // Arrow also refuses invalid UTF-8 outside of the values.
                match (&arrow, &array) {
                    (Some(arrow), array) => prop_assert_eq!(array.as_deref(), Some(arrow as &dyn Array)),
                    (None, Some(_)) => prop_assert!(std::str::from_utf8(&data).is_err()),
                    (None, None) => {}
                }
            }
        }

        #[test]
        fn lengths_become_offsets(lengths in proptest::collection::vec(0u32..5, 0..20)) {
            let total = lengths.iter().sum::<u32>() as usize;
            let arrow = OffsetBuffer::<i32>::from_lengths(lengths.iter().map(|n| *n as usize));
            prop_assert_eq!(offsets_of_lengths(&lengths, total).unwrap(), arrow);
        }
    }
}
