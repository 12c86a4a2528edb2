//! Arrays of strings from lengths and bytes that were checked in bulk.
//!
//! Arrow's safe constructors look at each pair of offsets, and at each byte with the standard library's check of UTF-8;
//! here lengths cannot make offsets fall, and text is checked several bytes at a time.

use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use coldframe_core::{Error, ErrorKind, Result};

use crate::scan::stream::ByteStream;

/// Offsets of values with these lengths, which must be `len` bytes together.
fn offsets(lengths: &[u32], len: usize) -> Result<Vec<u32>> {
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if total != len as u64 || i32::try_from(total).is_err() {
        return Err(Error::corrupt(format!(
            "expected values of {len} bytes together, found lengths of {total}"
        )));
    }
    // The sum of all fits, so no sum of some overflows. Four at a time, so that only one addition waits for the four before.
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
    Ok(offsets)
}

fn arrow_offsets(offsets: Vec<u32>) -> OffsetBuffer<i32> {
    let count = offsets.len();
    let offsets = ScalarBuffer::new(Buffer::from_vec(offsets), 0, count);
    // SAFETY: `offsets` has made them: the first is 0, each is the one before and a length without overflow, and
    // the last, so every one, is in the range of i32.
    #[expect(unsafe_code, reason = "the safe constructor would check the same again, one pair at a time")]
    unsafe {
        OffsetBuffer::new_unchecked(offsets)
    }
}

/// Binary values.
pub(super) fn binary(lengths: &[u32], bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<BinaryArray> {
    let offsets = arrow_offsets(offsets(lengths, bytes.len())?);
    BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls).map_err(coldframe_core::arrow_error)
}

/// Strings; an error where a value is not UTF-8.
pub(super) fn strings(lengths: &[u32], bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<StringArray> {
    let offsets = offsets(lengths, bytes.len())?;
    if !bytes.is_ascii() {
        check(&offsets, &bytes)?;
    }
    new(offsets, bytes, nulls)
}

/// Strings whose bytes are whole entries of a dictionary of checked text.
pub(super) fn checked_strings(
    lengths: &[u32],
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<StringArray> {
    new(offsets(lengths, bytes.len())?, bytes, nulls)
}

/// All bytes together must be UTF-8, and no value may begin inside a character.
fn check(offsets: &[u32], bytes: &[u8]) -> Result<()> {
    let whole = simdutf8::basic::from_utf8(bytes).is_ok();
    let inside = |at: &u32| bytes.get(*at as usize).is_some_and(|b| b & 0xc0 == 0x80);
    if whole && !offsets.iter().any(inside) {
        return Ok(());
    }
    let bad = offsets.windows(2).position(|w| {
        let [start, end] = *w.first_chunk().unwrap_or(&[0, 0]);
        bytes.get(start as usize..end as usize).is_none_or(|b| simdutf8::basic::from_utf8(b).is_err())
    });
    match bad {
        Some(row) => {
            Err(Error::corrupt(format!("expected UTF-8, found other bytes in value {row} of the batch")))
        }
        None => Ok(()),
    }
}

fn new(offsets: Vec<u32>, bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<StringArray> {
    if nulls.as_ref().is_some_and(|n| n.len() + 1 != offsets.len()) {
        return Err(Error::corrupt(format!("expected nulls of {} values", offsets.len() - 1)));
    }
    let offsets = arrow_offsets(offsets);
    // SAFETY: offsets begin at 0, do not fall and end where `bytes` end: `offsets` saw to it. Each value is UTF-8:
    // `check` saw to it, or the bytes are ASCII, or each value is a whole entry of a dictionary that was checked.
    #[expect(unsafe_code, reason = "the safe constructor would check the text again, a byte at a time")]
    Ok(unsafe { StringArray::new_unchecked(offsets, Buffer::from_vec(bytes), nulls) })
}

/// The sum of lengths, if an array can hold it.
pub(super) fn total(lengths: &[u32]) -> Result<usize> {
    check_total(lengths.iter().map(|n| u64::from(*n)).sum())
}

pub(super) fn check_total(total: u64) -> Result<usize> {
    usize::try_from(total).ok().filter(|_| i32::try_from(total).is_ok()).ok_or_else(|| {
        Error::new(ErrorKind::LimitExceeded {
            what: "a batch's text",
            asked: total,
            limit: i32::MAX.unsigned_abs().into(),
            option: "batch_size",
        })
    })
}

/// The next `n` bytes of a stream, which must be able to have them.
pub(super) fn take(stream: &mut ByteStream, n: usize) -> Result<Vec<u8>> {
    let most = stream.most_left();
    if n > most {
        return Err(Error::corrupt(format!("expected {n} bytes, found at most {most}")).at(stream.offset()));
    }
    let mut out = Vec::with_capacity(n);
    stream.append(n, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn a_value_that_is_not_text_is_an_error() {
        let e = strings(&[1, 2], vec![b'a', 0xc3, b'b'], None).unwrap_err();
        assert_eq!(e.reason(), "expected UTF-8, found other bytes in value 1 of the batch");
        // One character cut in two: all bytes together are UTF-8.
        assert!(strings(&[1, 1], vec![0xc3, 0xa4], None).is_err());
        let text = strings(&[2, 0, 1], vec![0xc3, 0xa4, b'x'], None).unwrap();
        assert_eq!(text.iter().flatten().collect::<Vec<_>>(), ["ä", "", "x"]);
        text.to_data().validate_full().unwrap();
    }

    #[test]
    fn lengths_must_be_those_of_the_bytes() {
        assert!(binary(&[1, 2], vec![0; 4], None).is_err());
        assert!(binary(&[u32::MAX, 1], vec![], None).is_err());
        assert!(binary(&[1, 2], vec![0; 3], Some(NullBuffer::new_null(3))).is_err());
        assert!(strings(&[1, 2], vec![0; 3], Some(NullBuffer::new_null(3))).is_err());
        assert_eq!(binary(&[1, 2], vec![0; 3], None).unwrap().len(), 2);
    }
}
