//! Views of contiguous values.
//!
//! ```text
//! short   | length | bytes, padded with zeros            |   at most 12 bytes
//! long    | length | first 4 bytes | buffer | offset     |
//!           4        4               4        4            little endian: a number of 128 bits
//! ```
//!
//! Both forms of a view are computed from the 16 bytes at the start of the value, and one is selected without
//! a branch.

use std::sync::Arc;

use arrow_array::types::ByteViewType;
use arrow_array::{BinaryViewArray, GenericByteViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use coldframe_encoding::{Error, Result};

use super::readable_text;

/// The longest value that fits into its view.
pub(super) const SHORT: u32 = 12;

/// The mask of a short value, by its length.
const BITS: [u128; SHORT as usize + 1] = {
    let mut all = [0; SHORT as usize + 1];
    let mut rest: &mut [u128] = &mut all;
    let mut bits = 0;
    while let Some((of_length, behind)) = rest.split_first_mut() {
        *of_length = bits;
        bits = bits << 8 | 0xff;
        rest = behind;
    }
    all
};

/// Views into one buffer, and whether any value is too long for its view.
struct Views {
    views: Vec<u128>,
    has_long: bool,
}

/// The view of a value that begins with `word` and is at `offset` of a buffer.
#[inline(always)]
pub(super) fn view(word: u128, length: u32, buffer: u32, offset: u32) -> u128 {
    let bits = BITS.get(length as usize).copied().unwrap_or_default();
    let short = (word & bits) << 32;
    let place = u128::from(buffer) << 64 | u128::from(offset) << 96;
    let long = (word & 0xffff_ffff) << 32 | place;
    let is_long = u128::from(length > SHORT).wrapping_neg();
    u128::from(length) | (short & !is_long) | (long & is_long)
}

/// The 16 bytes from `at` on, padded with zeros at the end.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> u128 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk::<16>() {
        Some(word) => u128::from_le_bytes(*word),
        None => last_word(rest),
    }
}

#[cold]
#[inline(never)]
fn last_word(rest: &[u8]) -> u128 {
    let mut word = [0; 16];
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(word)
}

impl Views {
    /// Views of values with these lengths, which must add up to the length of `bytes`.
    fn of_lengths(lengths: &[u32], bytes: &[u8]) -> Result<Self> {
        let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
        if total != bytes.len() as u64 || i32::try_from(total).is_err() {
            let len = bytes.len();
            return Err(Error::corrupt(format!(
                "expected values of {len} bytes together, found lengths of {total}"
            )));
        }
        let (mut at, mut longest) = (0u32, 0);
        let views = lengths.iter().map(|length| {
            let made = view(word(bytes, at as usize), *length, 0, at);
            at = at.wrapping_add(*length);
            longest = longest.max(*length);
            made
        });
        let views = views.collect();
        Ok(Self { views, has_long: longest > SHORT })
    }

    /// An array of these views. For text, the values must be UTF-8.
    fn array<T: ByteViewType + ?Sized>(
        self,
        bytes: Buffer,
        nulls: Option<NullBuffer>,
    ) -> Result<GenericByteViewArray<T>> {
        let rows = self.views.len();
        check_nulls(nulls.as_ref(), rows)?;
        // If all values are short, the bytes are not needed.
        let buffers: Arc<[Buffer]> = if self.has_long { Arc::from([bytes]) } else { Arc::from([]) };
        let views = ScalarBuffer::new(Buffer::from_vec(self.views), 0, rows);
        // SAFETY: the null bitmap has the same number of values, as checked above. A view is 0 (an empty value) or
        // was made by `view` for a value inside `bytes`. In `of_lengths` each value is inside because the lengths
        // add up to the length of `bytes`, at most `i32::MAX`; in `TextDictionary` because its entries are those of
        // an array. `view` pads a short value with zeros, and refers to buffer 0 for a long value; that buffer
        // exists if any value is long. The callers, here and in `TextDictionary`, make text only from checked UTF-8
        // or from the values of a text array.
        #[expect(unsafe_code, reason = "the safe constructor would check each value again")]
        Ok(unsafe { GenericByteViewArray::new_unchecked(views, buffers, nulls) })
    }
}

fn check_nulls(nulls: Option<&NullBuffer>, rows: usize) -> Result<()> {
    match nulls.map(NullBuffer::len).filter(|len| *len != rows) {
        None => Ok(()),
        Some(len) => Err(Error::corrupt(format!("expected a null bitmap of {rows} values, found {len}"))),
    }
}

/// Binary values with these lengths, which must add up to the length of `bytes`.
pub fn binary(lengths: &[u32], bytes: Buffer, nulls: Option<NullBuffer>) -> Result<BinaryViewArray> {
    Views::of_lengths(lengths, &bytes)?.array(bytes, nulls)
}

/// Text like the text of [`readable_text`]: a value that is not UTF-8 becomes null or empty.
pub fn text(
    lengths: &[u32],
    bytes: Buffer,
    nulls: Option<NullBuffer>,
    nullable: bool,
) -> Result<(StringViewArray, Vec<usize>)> {
    let views = Views::of_lengths(lengths, &bytes)?;
    if bytes.is_ascii() || is_text(lengths, &bytes) {
        return Ok((views.array(bytes, nulls)?, Vec::new()));
    }
    let (text, malformed) = readable_text(lengths, bytes, nulls, nullable)?;
    Ok((StringViewArray::from(&text), malformed))
}

/// Whether all bytes together are UTF-8 and no value begins inside a character.
fn is_text(lengths: &[u32], bytes: &[u8]) -> bool {
    let mut at = 0;
    let mut begins_inside = |length: &u32| {
        let byte = bytes.get(at).copied().unwrap_or_default();
        at += *length as usize;
        byte & 0xc0 == 0x80
    };
    simdutf8::basic::from_utf8(bytes).is_ok() && !lengths.iter().any(&mut begins_inside)
}

/// An array of views into `text` that the caller has made with [`view`].
pub(super) fn of_entries(
    views: Vec<u128>,
    text: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<StringViewArray> {
    Views { views, has_long: true }.array(text, nulls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array, BinaryArray, StringArray};
    use proptest::prelude::*;

    fn lengths_of<T: AsRef<[u8]>>(values: &[T]) -> Vec<u32> {
        values.iter().map(|v| u32::try_from(v.as_ref().len()).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn views_equal_plain_values(
            values in proptest::collection::vec("[a-cä]{0,11}|[a-z]{11,14}|[a-zö]{15,40}", 0..30),
            null_of in 1usize..9,
        ) {
            let bytes = Buffer::from_vec(values.concat().into_bytes());
            let nulls = NullBuffer::from_iter((0..values.len()).map(|i| i % null_of != 0));
            let lengths = lengths_of(&values);
            let (array, malformed) = text(&lengths, bytes.clone(), Some(nulls.clone()), true).unwrap();
            array.to_data().validate_full().unwrap();
            let nullable = |i: usize| nulls.is_valid(i).then_some(values[i].as_str());
            let expected = StringArray::from_iter((0..values.len()).map(nullable));
            prop_assert_eq!(array, StringViewArray::from(&expected));
            prop_assert!(malformed.is_empty());
            let array = binary(&lengths_of(&values), bytes, None).unwrap();
            array.to_data().validate_full().unwrap();
            let expected = BinaryArray::from_iter_values(&values);
            prop_assert_eq!(array, BinaryViewArray::from(&expected));
        }

        #[test]
        fn text_is_checked_as_in_plain_arrays(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..6),
        ) {
            let (lengths, bytes) = (lengths_of(&values), values.concat());
            let (array, malformed) = text(&lengths, Buffer::from_vec(bytes.clone()), None, true).unwrap();
            array.to_data().validate_full().unwrap();
            let (plain, expected) = readable_text(&lengths, bytes.into(), None, true).unwrap();
            prop_assert_eq!(malformed, expected);
            prop_assert_eq!(array, StringViewArray::from(&plain));
        }
    }

    #[test]
    fn bytes_of_short_values_are_not_kept() {
        let (array, _) =
            text(&[12, 0, 3], Buffer::from_vec(b"twelve bytesabc".to_vec()), None, true).unwrap();
        assert!(array.data_buffers().is_empty());
        assert_eq!(array.iter().flatten().collect::<Vec<_>>(), ["twelve bytes", "", "abc"]);
    }

    #[test]
    fn lengths_must_add_up_to_the_bytes() {
        assert!(binary(&[1, 2], Buffer::from_vec(vec![0u8; 4]), None).is_err());
        assert!(binary(&[u32::MAX, 1], Buffer::from_vec(vec![0u8; 0]), None).is_err());
        assert!(binary(&[1, 2], Buffer::from_vec(vec![0u8; 3]), Some(NullBuffer::new_null(3))).is_err());
    }
}
