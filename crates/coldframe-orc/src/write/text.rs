//! Writes strings directly, or as indexes of a dictionary.
//!
//! ```text
//! DIRECT_V2      DATA the bytes | LENGTH of each value
//! DICTIONARY_V2  DATA the number of each value | LENGTH of each entry | DICTIONARY_DATA the entries, in order
//! ```
//!
//! As in Java's writer, the choice is made for the whole file after the first row group (or the first stripe,
//! without row groups): there is no dictionary if it would have more entries than `dictionary_threshold`
//! times the number of values. A stripe's entries are sorted, so the indexes of its values, and with them the
//! positions, are known only at the end of the stripe.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use coldframe_encoding::Result;
use coldframe_encoding::hash::murmur3_64;

use super::integers::IntStream;
use super::schema::Length;
use super::stream::{Codec, Stream};

/// Values of varchar and char as Java's writer stores them: truncated to the length, with char values padded
/// with blanks.
pub(super) fn fitted(values: ArrayRef, length: Length) -> ArrayRef {
    let (Length::AtMost(most) | Length::Exactly(most)) = length else { return values };
    let most = most as usize;
    let text = values.as_string::<i32>();
    let mut out = StringBuilder::with_capacity(text.len(), text.value_data().len());
    for value in text {
        let Some(value) = value else {
            out.append_null();
            continue;
        };
        let end = value.char_indices().nth(most).map_or(value.len(), |(at, _)| at);
        let (kept, _) = value.split_at_checked(end).unwrap_or((value, ""));
        if matches!(length, Length::Exactly(_)) {
            let missing = most - kept.chars().count().min(most);
            out.append_value(format!("{kept}{:missing$}", ""));
        } else {
            out.append_value(kept);
        }
    }
    Arc::new(out.finish())
}

/// The values of a stripe.
#[derive(Debug)]
pub(super) struct Text {
    threshold: f64,
    /// Whether there is a dictionary; `None` until this is decided.
    decided: Option<bool>,
    dictionary: Dictionary,
    /// The entry of each value.
    numbers: Vec<u32>,
    /// The number of values before each row group except the first.
    groups: Vec<usize>,
    pub(super) data: Stream,
    pub(super) lengths: IntStream,
    pub(super) entries: Stream,
    scratch: Vec<i64>,
}

impl Text {
    pub(super) fn new(threshold: f64, aligned: bool) -> Self {
        Self {
            threshold,
            decided: (threshold <= 0.0).then_some(false),
            dictionary: Dictionary::new(),
            numbers: Vec::new(),
            groups: Vec::new(),
            data: Stream::default(),
            lengths: IntStream::new(false, aligned),
            entries: Stream::default(),
            scratch: Vec::new(),
        }
    }

    /// Appends values.
    pub(super) fn write<'v>(
        &mut self,
        values: impl Iterator<Item = &'v [u8]>,
        codec: &mut Codec,
    ) -> Result<()> {
        if self.decided != Some(false) {
            self.numbers.extend(values.map(|v| self.dictionary.number(v)));
            return Ok(());
        }
        self.scratch.clear();
        for value in values {
            self.data.open.extend_from_slice(value);
            self.scratch.push(i64::try_from(value.len()).unwrap_or(i64::MAX));
        }
        self.lengths.write(&self.scratch, codec)?;
        self.data.spill(codec)
    }

    /// Whether a dictionary is written, or may still be.
    pub(super) fn has_dictionary(&self) -> bool {
        self.decided != Some(false)
    }

    /// Number of entries in the dictionary, if there is one.
    pub(super) fn dictionary_size(&self) -> Option<u32> {
        self.has_dictionary().then(|| u32::try_from(self.dictionary.ends.len()).unwrap_or(u32::MAX))
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn decide(&mut self, codec: &mut Codec) -> Result<()> {
        if self.decided.is_none() {
            let (entries, values) = (self.dictionary.ends.len(), self.numbers.len());
            self.decided = Some(entries as f64 <= self.threshold * values as f64);
        }
        if self.decided == Some(false) && !self.numbers.is_empty() {
            self.write_out(codec)?;
        }
        Ok(())
    }

    /// Writes the values so far without a dictionary.
    fn write_out(&mut self, codec: &mut Codec) -> Result<()> {
        let dictionary = std::mem::replace(&mut self.dictionary, Dictionary::new());
        let numbers = std::mem::take(&mut self.numbers);
        self.write(numbers.iter().map(|n| dictionary.entry(*n)), codec)
    }

    /// Ends a row group.
    pub(super) fn end_group(&mut self, codec: &mut Codec) -> Result<()> {
        self.groups.push(self.numbers.len());
        self.decide(codec)
    }

    /// The position of the next value, without a dictionary.
    pub(super) fn position(&self, codec: &Codec, to: &mut Vec<u64>) {
        if !self.has_dictionary() {
            self.data.position(codec, to);
            self.lengths.position(codec, to);
        }
    }

    /// Ends the stripe; with a dictionary, returns the positions of the row groups.
    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<Vec<Vec<u64>>> {
        self.decide(codec)?;
        if !self.has_dictionary() {
            self.groups.clear();
            return Ok(Vec::new());
        }
        let ranks = self.write_entries(codec)?;
        let mut rows = IntStream::new(false, self.lengths.is_aligned());
        let mut positions = Vec::with_capacity(self.groups.len());
        let mut start = 0;
        // The values after the last row group belong to no row group.
        for end in self.groups.drain(..).chain([self.numbers.len()]) {
            let mut position = Vec::new();
            rows.position(codec, &mut position);
            positions.push(position);
            let numbers = self.numbers.get(start..end).unwrap_or_default();
            self.scratch.clear();
            let rank = |n: &u32| ranks.get(*n as usize).copied().map_or(0, i64::from);
            self.scratch.extend(numbers.iter().map(rank));
            rows.write(&self.scratch, codec)?;
            start = end;
        }
        self.data = rows.into_stream()?;
        self.numbers.clear();
        Ok(positions)
    }

    /// Writes the sorted entries; returns the new index of each entry.
    fn write_entries(&mut self, codec: &mut Codec) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..self.dictionary_size().unwrap_or(0)).collect();
        order.sort_unstable_by(|a, b| self.dictionary.entry(*a).cmp(self.dictionary.entry(*b)));
        let mut ranks = vec![0; order.len()];
        self.scratch.clear();
        for (rank, number) in (0..).zip(&order) {
            if let Some(place) = ranks.get_mut(*number as usize) {
                *place = rank;
            }
            let entry = self.dictionary.entry(*number);
            self.entries.open.extend_from_slice(entry);
            self.scratch.push(i64::try_from(entry.len()).unwrap_or(i64::MAX));
        }
        self.entries.spill(codec)?;
        self.lengths.write(&self.scratch, codec)?;
        Ok(ranks)
    }

    /// Drops the stripe's entries.
    pub(super) fn clear(&mut self) {
        self.dictionary.clear();
    }

    /// Number of bytes of memory in use.
    pub(super) fn memory(&self, codec: &Codec) -> usize {
        let streams = self.data.memory(codec) + self.lengths.memory(codec);
        streams + self.dictionary.memory() + self.numbers.len() * 4
    }
}

/// Distinct values, numbered in order of arrival, with an open-addressing hash table.
#[derive(Debug)]
struct Dictionary {
    bytes: Vec<u8>,
    /// Where each entry ends in `bytes`.
    ends: Vec<usize>,
    /// Each slot has the number + 1 and some bits of the hash; 0 marks a free slot. The number of slots is a
    /// power of two.
    table: Vec<(u32, u32)>,
    seed: u32,
}

impl Dictionary {
    fn new() -> Self {
        // The seed comes from the operating system, so the author of the values cannot predict collisions.
        let seed = RandomState::new().hash_one(0) & 0xffff_ffff;
        let seed = u32::try_from(seed).unwrap_or_default();
        Self { bytes: Vec::new(), ends: Vec::new(), table: Vec::new(), seed }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.table.clear();
    }

    fn memory(&self) -> usize {
        self.bytes.len() + 8 * self.ends.len() + 8 * self.table.len()
    }

    fn entry(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|n| self.ends.get(n)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    /// The number of `value`, which becomes a new entry if necessary.
    fn number(&mut self, value: &[u8]) -> u32 {
        if self.ends.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mask = self.table.len().wrapping_sub(1);
        let hash = murmur3_64(value, self.seed);
        let [place, check] = halves(hash);
        let mut at = place as usize & mask;
        loop {
            match self.table.get(at) {
                Some((0, _)) | None => break,
                Some((next, stored)) if *stored == check && self.entry(next - 1) == value => return next - 1,
                Some(_) => at = (at + 1) & mask,
            }
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX - 1);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        if let Some(free) = self.table.get_mut(at) {
            *free = (number + 1, check);
        }
        number
    }

    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(1 << 10);
        self.table.clear();
        self.table.resize(length, (0, 0));
        let mut start = 0;
        for (number, end) in (1..).zip(&self.ends) {
            let entry = self.bytes.get(start..*end).unwrap_or_default();
            let [place, check] = halves(murmur3_64(entry, self.seed));
            let mut at = place as usize & (length - 1);
            while self.table.get(at).is_some_and(|(number, _)| *number != 0) {
                at = (at + 1) & (length - 1);
            }
            if let Some(free) = self.table.get_mut(at) {
                *free = (number, check);
            }
            start = *end;
        }
    }
}

fn halves(hash: u64) -> [u32; 2] {
    [hash & 0xffff_ffff, hash >> 32].map(|half| u32::try_from(half).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_own_number() {
        let mut dictionary = Dictionary::new();
        let values: Vec<String> = (0..5000).map(|i| format!("{}", i % 1700)).collect();
        let numbers: Vec<u32> = values.iter().map(|v| dictionary.number(v.as_bytes())).collect();
        assert_eq!(dictionary.ends.len(), 1700);
        for (value, number) in values.iter().zip(numbers) {
            assert_eq!(dictionary.entry(number), value.as_bytes());
        }
        assert_eq!(dictionary.number(b""), 1700);
        assert_eq!(dictionary.number(b""), 1700);
    }
}
