//! Decides by bloom filters whether a row group can contain a value of the scan's filter.
//!
//! ```text
//! BLOOM_FILTER, BLOOM_FILTER_UTF8 stream = BloomFilterIndex { one BloomFilter a row group }
//! BloomFilter = { k = numHashFunctions, bitset: fixed64 a word (original) | utf8bitset: bytes, LE words (utf8) }
//! bit of round i in 1..=k:  c = low32(h) + i * high32(h) as i32;  (c < 0 ? !c : c) % bits
//! ```
//!
//! ORC specification v1, "Bloom Filter Index". The writers compute the hash `h` as follows:
//!
//! | type | h |
//! |---|---|
//! | tinyint .. bigint, date | Thomas Wang's 64-bit mix of the number, or of the day as stored |
//! | float, double | the same mix of the bits of the double |
//! | timestamp | the same mix of the wall clock's milliseconds as if in UTC |
//! | string, varchar, char, binary | Murmur3 of the bytes; a char is padded |
//! | decimal | Murmur3 of its text, without trailing zeros (Java) or with them (early C++); in format 1.9999 the mix of the unscaled number |
//!
//! The original kind hashes strings and decimals in the character set of the writer's machine, and timestamps
//! in the machine's time zone, so only ASCII strings and numbers can be looked up.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use coldframe_encoding::hash::{ORC_SEED, murmur3_64};

use super::Stored;
use crate::layout::values::{decimal_text, mix};

/// How the filters of a stream compute hashes; this decides which values can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashing {
    /// `BLOOM_FILTER`.
    Original,
    /// `BLOOM_FILTER_UTF8`; whether its timestamps are in UTC (`bloomEncoding` of the column's encoding).
    Utf8 {
        /// Whether the timestamps in the filter are in UTC.
        utc: bool,
    },
}

/// One filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter<'a> {
    bitset: Bitset<'a>,
    hashes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Bitset<'a> {
    Numbers(&'a [u64]),
    Bytes(&'a [u8]),
}

impl<'a> Filter<'a> {
    /// A filter of the kind `BLOOM_FILTER`.
    pub(crate) fn original(bitset: &'a [u64], hashes: u32) -> Self {
        Self { bitset: Bitset::Numbers(bitset), hashes }
    }

    /// A filter of the kind `BLOOM_FILTER_UTF8`.
    pub(crate) fn utf8(bitset: &'a [u8], hashes: u32) -> Self {
        Self { bitset: Bitset::Bytes(bitset), hashes }
    }

    fn word_count(&self) -> usize {
        match self.bitset {
            Bitset::Numbers(all) => all.len(),
            Bitset::Bytes(all) => all.len() / 8,
        }
    }

    fn word(&self, index: usize) -> u64 {
        match self.bitset {
            Bitset::Numbers(all) => all.get(index).copied().unwrap_or(u64::MAX),
            Bitset::Bytes(all) => {
                let word = all.get(8 * index..).and_then(|rest| rest.first_chunk());
                word.map_or(u64::MAX, |w| u64::from_le_bytes(*w))
            }
        }
    }

    /// Whether a value with this hash may be present. A filter without bits or with an impossible number of
    /// hash functions rules out nothing.
    fn has_hash(&self, hash: u64) -> bool {
        let Ok(bits) = i32::try_from(self.word_count().saturating_mul(64)) else { return true };
        if bits == 0 || self.hashes == 0 || self.hashes > 1 << 10 {
            return true;
        }
        let low = u32::try_from(hash & 0xffff_ffff).unwrap_or_default().cast_signed();
        let high = u32::try_from(hash >> 32).unwrap_or_default().cast_signed();
        (1..=self.hashes).all(|round| {
            let mixed = low.wrapping_add(round.cast_signed().wrapping_mul(high));
            let place = if mixed < 0 { !mixed } else { mixed } % bits;
            let place = usize::try_from(place).unwrap_or_default();
            self.word(place / 64) >> (place % 64) & 1 == 1
        })
    }

    fn has_number(&self, value: i64) -> bool {
        self.has_hash(mix(value))
    }

    fn has_bytes(&self, value: &[u8]) -> bool {
        self.has_hash(murmur3_64(value, ORC_SEED))
    }

    /// Whether the row group may contain `values[i]`; `true` if unknown.
    pub(crate) fn may_hold(&self, values: &ArrayRef, i: usize, hashing: Hashing, stored: Stored) -> bool {
        if values.is_null(i) {
            return true;
        }
        match values.data_type() {
            DataType::Int8 => self.has_number(values.as_primitive::<Int8Type>().value(i).into()),
            DataType::Int16 => self.has_number(values.as_primitive::<Int16Type>().value(i).into()),
            DataType::Int32 => self.has_number(values.as_primitive::<Int32Type>().value(i).into()),
            DataType::Int64 => self.has_number(values.as_primitive::<Int64Type>().value(i)),
            DataType::Date32 => {
                let day = values.as_primitive::<Date32Type>().value(i);
                // The hybrid calendar has other numbers for days before its reform, 1582-10-15.
                (stored == Stored::HybridDate && day < -141_000) || self.has_number(day.into())
            }
            DataType::Float32 => self.has_double(values.as_primitive::<Float32Type>().value(i).into()),
            DataType::Float64 => self.has_double(values.as_primitive::<Float64Type>().value(i)),
            DataType::Utf8 => self.has_text(values.as_string::<i32>().value(i), hashing, stored),
            DataType::Binary => self.has_bytes(values.as_binary::<i32>().value(i)),
            DataType::Decimal128(_, scale) if hashing != Hashing::Original => {
                self.has_decimal(values.as_primitive::<Decimal128Type>().value(i), *scale, stored)
            }
            DataType::Timestamp(unit, _)
                if hashing == (Hashing::Utf8 { utc: true }) && stored != Stored::WallClock =>
            {
                super::nanoseconds(values, *unit, i).is_none_or(|ns| self.has_instant(ns))
            }
            _ => true,
        }
    }

    /// Zero is stored with either sign, and equals zero of both signs.
    fn has_double(&self, value: f64) -> bool {
        let has = |v: f64| self.has_number(v.to_bits().cast_signed());
        // NaN has many bit patterns.
        if value == 0.0 { has(0.0) || has(-0.0) } else { value.is_nan() || has(value) }
    }

    fn has_text(&self, value: &str, hashing: Hashing, stored: Stored) -> bool {
        if hashing == Hashing::Original && !value.is_ascii() {
            return true;
        }
        let Stored::Char(width) = stored else { return self.has_bytes(value.as_bytes()) };
        let trimmed = value.trim_end_matches(' ');
        let padded = |length: usize| {
            let blanks = width.saturating_sub(length).min(1 << 16);
            self.has_bytes(format!("{trimmed}{:blanks$}", "").as_bytes())
        };
        // Some writers pad to a number of characters, others to a number of bytes.
        self.has_bytes(value.as_bytes())
            || self.has_bytes(trimmed.as_bytes())
            || padded(trimmed.chars().count())
            || padded(trimmed.len())
    }

    fn has_decimal(&self, value: i128, scale: i8, stored: Stored) -> bool {
        if stored == Stored::Decimal64 {
            let Ok(unscaled) = i64::try_from(value) else { return true };
            return self.has_number(unscaled);
        }
        let full = decimal_text(value, scale);
        let trimmed = match full.contains('.') {
            true => full.trim_end_matches('0').trim_end_matches('.'),
            false => full.as_str(),
        };
        self.has_bytes(trimmed.as_bytes()) || self.has_bytes(full.as_bytes())
    }

    /// Milliseconds are rounded down (Java) or towards zero (C++). Around 1970 the second itself is
    /// uncertain, and before 1900 offsets and calendars are uncertain: no pruning there.
    fn has_instant(&self, ns: i128) -> bool {
        const DAY: i128 = 86_400_000_000_000;
        if ns.abs() < DAY || ns < -25_568 * DAY {
            return true;
        }
        [ns.div_euclid(1_000_000), ns / 1_000_000]
            .into_iter()
            .any(|ms| i64::try_from(ms).is_ok_and(|ms| self.has_number(ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal128Array, Int64Array, StringArray};
    use std::sync::Arc;

    /// A filter with the bits that a writer sets for `hashes`; the computation uses wider integers than the
    /// reader's.
    fn filter_of(hashes: &[u64], k: i64, word_count: usize) -> Vec<u64> {
        let mut bits = vec![0u64; word_count];
        let half = |n: u64| i64::from(u32::try_from(n & 0xffff_ffff).unwrap().cast_signed());
        for h in hashes {
            let (low, high) = (half(*h), half(*h >> 32));
            for i in 1..=k {
                let c = half((low + i * high).cast_unsigned());
                let at = usize::try_from(if c < 0 { !c } else { c }).unwrap() % (word_count * 64);
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        bits
    }

    #[test]
    fn added_values_match_and_most_others_do_not() {
        let added: Vec<i64> = (0..100).map(|i| i * 7919 - 300_000).collect();
        let hashes: Vec<u64> = added.iter().map(|v| mix(*v)).collect();
        let bitset = filter_of(&hashes, 4, 20);
        let bytes: Vec<u8> = bitset.iter().flat_map(|w| w.to_le_bytes()).collect();
        let values: ArrayRef = Arc::new(Int64Array::from(added));
        let others: ArrayRef = Arc::new((1_000_000..1_001_000i64).collect::<Int64Array>());
        for filter in [Filter::original(&bitset, 4), Filter::utf8(&bytes, 4)] {
            let utf8 = Hashing::Utf8 { utc: true };
            assert!((0..100).all(|i| filter.may_hold(&values, i, utf8, Stored::Plain)));
            let wrong = (0..1000).filter(|i| filter.may_hold(&others, *i, utf8, Stored::Plain)).count();
            assert!(wrong < 100, "{wrong} of 1000");
        }
    }

    #[test]
    fn texts_of_decimals_are_looked_up_as_writers_print_them() {
        let cases = [(0, 0, "0"), (0, 2, "0.00"), (-5, 1, "-0.5"), (12_340, 3, "12.340"), (7, 0, "7")];
        for (value, scale, text) in cases {
            assert_eq!(decimal_text(value, scale), text);
        }
        let trimmed = filter_of(&[murmur3_64(b"12.34", ORC_SEED)], 3, 4);
        let value: ArrayRef =
            Arc::new(Decimal128Array::from(vec![12_340]).with_precision_and_scale(9, 3).unwrap());
        let (utf8, filter) = (Hashing::Utf8 { utc: false }, Filter::original(&trimmed, 3));
        assert!(filter.may_hold(&value, 0, utf8, Stored::Plain));
        let other: ArrayRef =
            Arc::new(Decimal128Array::from(vec![12_341]).with_precision_and_scale(9, 3).unwrap());
        assert!(!filter.may_hold(&other, 0, utf8, Stored::Plain));
        assert!(filter.may_hold(&other, 0, Hashing::Original, Stored::Plain));
    }

    #[test]
    fn padded_and_non_ascii_texts_are_looked_up_where_possible() {
        let bits = filter_of(&[murmur3_64(b"ab   ", ORC_SEED)], 3, 4);
        let filter = Filter::original(&bits, 3);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab", "ab   ", "xy", "\u{e4}"]));
        let has = |i, hashing| filter.may_hold(&texts, i, hashing, Stored::Char(5));
        assert_eq!([0, 1, 2].map(|i| has(i, Hashing::Utf8 { utc: true })), [true, true, false]);
        assert!(has(3, Hashing::Original) && !has(3, Hashing::Utf8 { utc: true }));
    }

    #[test]
    fn invalid_filters_rule_out_nothing() {
        assert!(Filter::utf8(&[], 3).has_number(1));
        assert!(Filter::utf8(&[0; 8], 0).has_number(1));
        assert!(Filter::utf8(&[0; 8], u32::MAX).has_number(1));
        assert!(!Filter::utf8(&[0; 8], 1).has_number(1));
    }
}
