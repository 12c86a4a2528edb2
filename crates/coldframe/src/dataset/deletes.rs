//! Rows of a file that are deleted by their numbers.
//!
//! ```text
//! delete file        pairs of a data file and a row number
//! deletion vector    length of magic and bitmaps, 4 bytes | D1 D3 39 64 | bitmaps | CRC-32 of magic and bitmaps, 4 bytes
//!   bitmaps          64-bit Roaring bitmaps in the portable form
//! ```
//!
//! Length and checksum are big-endian. From the Puffin specification of Iceberg, "deletion-vector-v1", and
//! <https://github.com/RoaringBitmap/RoaringFormatSpec>.

use arrow_array::{BooleanArray, Int64Array, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;
use coldframe_core::{Error, Result, arrow_error};
use coldframe_encoding::checksum::check_crc32;
use roaring::RoaringTreemap;

use super::storage::shown_path;

const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// The numbers of the deleted rows of one file, counted from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Positions(pub RoaringTreemap);

impl Positions {
    /// Adds the numbers in the delete file `path`. An error if one of them is null or negative.
    pub fn add(&mut self, numbers: &Int64Array, path: &str) -> Result<()> {
        for number in numbers {
            let number = number.and_then(|number| u64::try_from(number).ok());
            let wrong = || {
                let what = "expected the number of a deleted row, found null or a negative number";
                Error::corrupt(what).within("position deletes").in_file(shown_path(path))
            };
            self.0.insert(number.ok_or_else(wrong)?);
        }
        Ok(())
    }

    /// Adds the numbers of a deletion vector, which lies at `offset` of a file.
    pub fn add_vector(&mut self, vector: &[u8], path: &str, offset: u64) -> Result<()> {
        let (at, bitmaps) = checked(vector).map_err(|(at, e)| damaged(e, path, offset + at))?;
        let numbers = numbers_of(bitmaps).map_err(|e| damaged(e, path, offset + at))?;
        self.0 |= numbers;
        Ok(())
    }

    /// The rows of a batch that are not deleted; `None` if all rows stay. `numbers`: the row numbers, ascending.
    pub fn remaining(&self, batch: &RecordBatch, numbers: &Int64Array) -> Result<Option<RecordBatch>> {
        let numbers = numbers.values();
        let Some(first) = numbers.first() else { return Ok(None) };
        let mut deleted = self.0.iter();
        deleted.advance_to(u64::try_from(*first).unwrap_or_default());
        let mut deleted = deleted.map_while(|number| i64::try_from(number).ok()).peekable();
        let is_kept = |number: &i64| {
            while deleted.next_if(|deleted| deleted < number).is_some() {}
            deleted.peek() != Some(number)
        };
        let kept: BooleanBuffer = numbers.iter().map(is_kept).collect();
        if kept.count_set_bits() == kept.len() {
            return Ok(None);
        }
        filter_record_batch(batch, &BooleanArray::new(kept, None)).map(Some).map_err(arrow_error)
    }
}

/// The bitmaps of a vector, and their offset in it. An error has the offset of what is wrong.
fn checked(vector: &[u8]) -> std::result::Result<(u64, &[u8]), (u64, Error)> {
    let wrong = |at: u64, what: String| (at, Error::corrupt(what));
    let short = || wrong(0, format!("expected at least 20 bytes, found {}", vector.len()));
    let (length, rest) = vector.split_first_chunk::<4>().ok_or_else(short)?;
    let (body, stored) = rest.split_last_chunk::<4>().ok_or_else(short)?;
    let (magic, bitmaps) =
        body.split_first_chunk::<4>().filter(|(_, rest)| rest.len() >= 8).ok_or_else(short)?;
    let length = u32::from_be_bytes(*length);
    if usize::try_from(length).ok() != Some(body.len()) {
        return Err(wrong(0, format!("expected {} bytes, found a length of {length}", body.len())));
    }
    if *magic != MAGIC {
        return Err(wrong(4, format!("expected the magic {MAGIC:02x?}, found {magic:02x?}")));
    }
    check_crc32(u32::from_be_bytes(*stored), body).map_err(|e| (4 + body.len() as u64, e))?;
    Ok((8, bitmaps))
}

fn numbers_of(bitmaps: &[u8]) -> Result<RoaringTreemap> {
    let wrong = |what: String| Error::corrupt(format!("not Roaring bitmaps: {what}"));
    let count = bitmaps.first_chunk::<8>().map(|count| u64::from_le_bytes(*count));
    let mut rest = bitmaps;
    let numbers = RoaringTreemap::deserialize_from(&mut rest).map_err(|e| wrong(e.to_string()))?;
    if !rest.is_empty() {
        return Err(wrong(format!("{} bytes after the last bitmap", rest.len())));
    }
    // Of two bitmaps with the same upper half, the crate keeps the second.
    if count != Some(numbers.bitmaps().count() as u64) {
        return Err(wrong("two have the same upper half".to_owned()));
    }
    Ok(numbers)
}

#[cold]
fn damaged(e: Error, path: &str, offset: u64) -> Error {
    e.within("deletion vector").at(offset).in_file(shown_path(path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Array;

    use super::*;

    fn framed(bitmaps: &[u8]) -> Vec<u8> {
        let body = [&MAGIC[..], bitmaps].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let sum = coldframe_encoding::checksum::crc32(&body).to_be_bytes();
        [&length[..], &body, &sum].concat()
    }

    fn vector(numbers: &RoaringTreemap) -> Vec<u8> {
        let mut bitmaps = Vec::new();
        numbers.serialize_into(&mut bitmaps).unwrap();
        framed(&bitmaps)
    }

    fn refused(vector: &[u8]) -> String {
        let e = Positions::default().add_vector(vector, "dv.puffin", 100).unwrap_err();
        assert!(e.is_damage(), "{e}");
        assert_eq!((e.path(), e.structure().as_str()), (Some("dv.puffin"), "deletion vector"));
        let offset = e.offset().unwrap();
        assert!((100..100 + vector.len().max(1) as u64).contains(&offset), "{e}");
        e.reason()
    }

    #[test]
    fn a_vector_has_its_numbers_beside_those_of_files() {
        let numbers = RoaringTreemap::from_iter([1, 5, 65_535, 65_536, 3 << 32, (3 << 32) + 7]);
        let mut positions = Positions::default();
        positions.add_vector(&vector(&numbers), "dv.puffin", 4).unwrap();
        positions.add(&Int64Array::from(vec![9, 5]), "deletes.orc").unwrap();
        assert_eq!(positions.0, numbers | RoaringTreemap::from_iter([9]));
    }

    #[test]
    fn changed_and_cut_vectors_are_damage() {
        let whole = vector(&RoaringTreemap::from_iter([1, 2, 3]));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x41;
            refused(&changed);
            refused(&whole[..at]);
        }
        let two = [
            &2u64.to_le_bytes()[..],
            &[0; 4],
            &whole[20..whole.len() - 4],
            &[0; 4],
            &whole[20..whole.len() - 4],
        ];
        assert!(refused(&framed(&two.concat())).contains("the same upper half"));
        assert!(refused(&framed(&(1u64 << 60).to_le_bytes())).contains("Roaring"));
        assert!(refused(&framed(&[0; 9])).contains("1 bytes after"));
    }

    #[test]
    fn the_other_rows_of_a_batch_remain() {
        let mut positions = Positions::default();
        positions.add(&Int64Array::from(vec![7, 3, 3, 100]), "deletes.orc").unwrap();
        let remaining = |numbers: Vec<i64>| {
            let numbers = Int64Array::from(numbers);
            let batch = RecordBatch::try_from_iter([("x", Arc::new(numbers.clone()) as _)]).unwrap();
            let left = positions.remaining(&batch, &numbers).unwrap();
            left.map(|left| left.column(0).to_data().buffer::<i64>(0).to_vec())
        };
        assert_eq!(remaining(vec![2, 3, 4]), Some(vec![2, 4]));
        assert_eq!(remaining(vec![2, 3, 99, 100, 101]), Some(vec![2, 99, 101]));
        assert_eq!(remaining(vec![3]), Some(vec![]));
        assert_eq!(remaining(vec![4, 5, 6]), None);
        assert_eq!(remaining(vec![]), None);
    }

    #[test]
    fn wrong_numbers_are_damage() {
        for wrong in [Some(-1), None] {
            let e = Positions::default().add(&Int64Array::from(vec![wrong]), "deletes.orc").unwrap_err();
            assert_eq!((e.is_damage(), e.path()), (true, Some("deletes.orc")));
        }
    }
}
