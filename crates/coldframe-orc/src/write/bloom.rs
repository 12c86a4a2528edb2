//! Writes bloom filters of the kind `BLOOM_FILTER_UTF8`, one per row group, with the size of Java's
//! `BloomFilter`.
//!
//! [`crate::prune::bloom`] describes the hashes.

use coldframe_encoding::hash::{ORC_SEED, murmur3_64};

use crate::layout::proto;
use crate::layout::values::mix;

/// The filter of the current row group, and the filters of the stripe's finished row groups.
#[derive(Clone, Debug)]
pub(super) struct Bloom {
    words: Vec<u64>,
    hashes: u32,
    done: Vec<proto::BloomFilter>,
}

impl Bloom {
    /// Creates a filter for `rows` values, where `fpp` is the probability of a false positive.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "Java's conversions; no value is negative, and at most 2^31 rows have an index"
    )]
    pub(super) fn new(rows: usize, fpp: f64) -> Self {
        let ln2 = std::f64::consts::LN_2;
        let rows = rows.max(1) as f64;
        let bits = (-rows * fpp.ln() / (ln2 * ln2)) as usize;
        let words = bits / 64 + 1;
        let hashes = ((words * 64) as f64 / rows * ln2).round().max(1.0) as u32;
        Self { words: vec![0; words], hashes, done: Vec::new() }
    }

    fn add_hash(&mut self, hash: u64) {
        let Ok(bits) = u32::try_from(self.words.len().saturating_mul(64)) else { return };
        let [low, high] =
            [hash & 0xffff_ffff, hash >> 32].map(|half| u32::try_from(half).unwrap_or_default());
        let mut mixed = low;
        for _ in 0..self.hashes {
            mixed = mixed.wrapping_add(high);
            let positive = if mixed.cast_signed() < 0 { !mixed } else { mixed };
            let place = positive % bits;
            if let Some(word) = self.words.get_mut((place / 64) as usize) {
                *word |= 1 << (place % 64);
            }
        }
    }

    pub(super) fn add_number(&mut self, value: i64) {
        self.add_hash(mix(value));
    }

    pub(super) fn add_bytes(&mut self, value: &[u8]) {
        self.add_hash(murmur3_64(value, ORC_SEED));
    }

    /// Ends the row group.
    pub(super) fn end_group(&mut self) {
        let bytes = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.done.push(proto::BloomFilter {
            num_hash_functions: Some(self.hashes),
            bitset: Vec::new(),
            utf8bitset: Some(bytes),
        });
        self.words.fill(0);
    }

    /// Takes the filters of the stripe.
    pub(super) fn take(&mut self) -> proto::BloomFilterIndex {
        proto::BloomFilterIndex { bloom_filter: std::mem::take(&mut self.done) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prune::Stored;
    use crate::prune::bloom::{Filter, Hashing};
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    /// The sizes of Java's `BloomFilter(10000, 0.01)`, `(1000, 0.05)`.
    #[test]
    fn sizes_equal_the_sizes_of_java() {
        let sizes = [(10_000, 0.01), (1000, 0.05)].map(|(rows, fpp)| Bloom::new(rows, fpp));
        assert_eq!(sizes.map(|b| (b.words.len() * 64, b.hashes)), [(95_872, 7), (6_272, 4)]);
    }

    #[test]
    fn added_values_match() {
        let mut bloom = Bloom::new(100, 0.01);
        (0..100).for_each(|i| bloom.add_number(i * 3));
        bloom.add_bytes("\u{e4}".as_bytes());
        bloom.end_group();
        let stored = bloom.take().bloom_filter.remove(0);
        let filter = Filter::utf8(stored.utf8bitset.as_deref().unwrap(), stored.num_hash_functions.unwrap());
        let numbers: ArrayRef = Arc::new((0..3000).collect::<Int64Array>());
        let may_hold = |i| filter.may_hold(&numbers, i, Hashing::Utf8 { utc: true }, Stored::Plain);
        assert!((0..100).all(|i| may_hold(i * 3)));
        assert!((300..3000).filter(|i| may_hold(*i)).count() < 100);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["\u{e4}"]));
        assert!(filter.may_hold(&text, 0, Hashing::Utf8 { utc: true }, Stored::Plain));
    }
}
