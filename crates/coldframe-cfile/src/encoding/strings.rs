//! Arrays of strings, checked in bulk.
//!
//! Arrow's safe constructors stop at the first offset that falls, and look at each byte with the standard library's check of UTF-8
//! and at each value's first byte; here all pairs of offsets are compared without a way out of the loop, which the compiler does
//! several at a time, and text of ASCII alone, or text checked several bytes at a time, is found at once.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use coldframe_core::{Error, Result, arrow_error};

/// Most bytes that are set aside for values not decoded yet.
const MOST_AHEAD: usize = 16 << 20;

/// Makes room for `more` bytes of the next `rows` values in `data`, and for those of the `left` values from there on if they are
/// as long: one allocation instead of a copy at each doubling.
pub fn reserve(data: &mut Vec<u8>, more: usize, rows: usize, left: usize) {
    if data.capacity() - data.len() < more {
        let ahead = more.saturating_add(more / 16).saturating_mul(left) / rows.max(1);
        data.reserve(more.max(ahead.min(MOST_AHEAD)));
    }
}

/// Offsets and data as an array; text must be UTF-8.
pub fn strings(offsets: Vec<i32>, data: Vec<u8>, nulls: Option<NullBuffer>, text: bool) -> Result<ArrayRef> {
    let behind = offsets.get(1..).unwrap_or_default();
    let falling = offsets.iter().zip(behind).fold(0u32, |n, (a, b)| n | u32::from(a > b));
    if falling != 0 || offsets.first().is_none_or(|o| *o < 0) {
        return Err(Error::corrupt("expected offsets that do not fall, found one below the one before"));
    }
    let end = offsets.last().map_or(0, |o| i64::from(*o));
    if u64::try_from(end).is_ok_and(|end| end > data.len() as u64) {
        return Err(Error::corrupt(format!("expected values of {end} bytes, found {}", data.len())));
    }
    if nulls.as_ref().is_some_and(|n| n.len() + 1 != offsets.len()) {
        return Err(Error::corrupt(format!("expected nulls of {} values", offsets.len() - 1)));
    }
    if text && !data.is_ascii() {
        check_text(&offsets, &data)?;
    }
    let data = Buffer::from_vec(data);
    // SAFETY: there is an offset, the first is not negative, and none is less than the one before it, as was checked above.
    #[expect(unsafe_code, reason = "the safe constructor would check the same again, one pair at a time")]
    let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
    if !text {
        return Ok(Arc::new(BinaryArray::try_new(offsets, data, nulls).map_err(arrow_error)?));
    }
    // SAFETY: the last offset is not behind the data's end and the nulls are of as many values; all bytes are ASCII, or
    // `check_text` found each value to be UTF-8.
    #[expect(unsafe_code, reason = "the safe constructor would check the text again, a byte at a time")]
    Ok(Arc::new(unsafe { StringArray::new_unchecked(offsets, data, nulls) }))
}

/// All bytes together must be UTF-8, and no value may begin inside a character.
fn check_text(offsets: &[i32], data: &[u8]) -> Result<()> {
    let place = |o: &i32| usize::try_from(*o).unwrap_or(usize::MAX);
    let inside = |at: &i32| data.get(place(at)).is_some_and(|b| b & 0xc0 == 0x80);
    if simdutf8::basic::from_utf8(data).is_ok() && !offsets.iter().any(inside) {
        return Ok(());
    }
    let values = offsets.iter().zip(offsets.iter().skip(1));
    let is_text = |(from, to): (&i32, &i32)| {
        data.get(place(from)..place(to)).is_some_and(|value| simdutf8::basic::from_utf8(value).is_ok())
    };
    match values.map(is_text).position(|text| !text) {
        Some(row) => Err(Error::corrupt(format!("expected UTF-8, found other bytes in value {row}"))),
        // Bytes before the first value or behind the last are none of them.
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use proptest::prelude::*;

    #[test]
    fn a_value_that_is_not_text_is_an_error() {
        let e = strings(vec![0, 1, 3], vec![b'a', 0xc3, b'b'], None, true).unwrap_err();
        assert_eq!(e.reason(), "expected UTF-8, found other bytes in value 1");
        assert!(strings(vec![0, 1, 3], vec![b'a', 0xc3, b'b'], None, false).is_ok());
        // One character cut in two: all bytes together are UTF-8.
        assert!(strings(vec![0, 1, 2], vec![0xc3, 0xa4], None, true).is_err());
        // Nothing begins behind the last value.
        assert!(strings(vec![1, 2], vec![0xff, b'a', 0xff], None, true).is_ok());
    }

    #[test]
    fn room_is_made_once_and_not_for_more_than_is_likely() {
        let mut data = Vec::new();
        reserve(&mut data, 1000, 10, 100);
        assert!((10_000..12_000).contains(&data.capacity()), "{}", data.capacity());
        let mut data = Vec::new();
        reserve(&mut data, 1 << 24, 1, 1 << 20);
        assert!(data.capacity() < 1 << 25, "{}", data.capacity());
    }

    proptest! {
        #[test]
        fn as_strict_as_arrow(
            offsets in proptest::collection::vec(-1i32..12, 0..6),
            mut sorted in proptest::collection::vec(0i32..12, 1..6),
            data in prop_oneof!["[a-c]{0,9}".prop_map(String::into_bytes), "[ä-ö]{0,5}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..9)],
            nulls: bool,
        ) {
            sorted.sort_unstable();
            for offsets in [offsets, sorted] {
                let nulls = nulls.then(|| NullBuffer::new_valid(2));
                let known = offsets.first().is_some_and(|o| *o >= 0) && offsets.is_sorted();
                let arrow = known.then(|| OffsetBuffer::new(offsets.clone().into())).and_then(|o| {
                    StringArray::try_new(o, data.clone().into(), nulls.clone()).ok()
                });
                let found = strings(offsets, data.clone(), nulls, true).ok();
                if let Some(found) = &found {
                    found.to_data().validate_full().unwrap();
                }
                // Arrow also refuses what is not UTF-8 outside of the values.
                match (&arrow, &found) {
                    (Some(arrow), found) => prop_assert_eq!(found.as_deref(), Some(arrow as &dyn Array)),
                    (None, Some(_)) => prop_assert!(std::str::from_utf8(&data).is_err()),
                    (None, None) => {}
                }
            }
        }
    }
}
