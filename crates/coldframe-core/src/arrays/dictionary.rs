//! Text values from a dictionary.
//!
//! The entries are checked once, when the dictionary is read. Values are copies of whole entries, so they
//! need no check.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, StringArray, StringViewArray};
use arrow_buffer::NullBuffer;
use coldframe_encoding::values::spread;
use coldframe_encoding::{Error, Limits, Result};

use super::views::{of_entries, view, word};
use super::{checked_text, cuts_characters, offsets_of_lengths};

/// Entries of at most this many bytes are copied with one instruction.
const SHORT: usize = 16;

/// A dictionary of text.
#[derive(Debug)]
pub struct TextDictionary {
    /// Start and length of each entry.
    entries: Vec<(u32, u32)>,
    /// The entries in fixed-size form, if all entries are short; otherwise empty.
    short: Vec<ShortEntry>,
    /// The entries, concatenated.
    values: Arc<StringArray>,
    /// The entries as views, made on first use.
    views: OnceLock<Vec<u128>>,
    /// Whether every entry is one byte long, as in columns of flags.
    are_bytes: bool,
    ascii: bool,
}

/// An entry of at most [`SHORT`] bytes.
#[derive(Debug)]
struct ShortEntry {
    /// The entry, padded with zeros.
    bytes: [u8; SHORT],
    length: u32,
}

/// Copies of whole entries, concatenated: valid UTF-8.
#[derive(Debug)]
pub struct Gathered {
    bytes: Vec<u8>,
    ascii: bool,
}

impl TextDictionary {
    /// A dictionary of these entries; no entry may be null.
    pub fn new(values: StringArray) -> Self {
        let bytes = values.value_data();
        let ascii = bytes.is_ascii();
        let ends = values.value_offsets().iter().map(|end| end.unsigned_abs());
        let starts = ends.clone();
        let entries: Vec<(u32, u32)> =
            starts.zip(ends.skip(1)).map(|(start, end)| (start, end.saturating_sub(start))).collect();
        let word = |(start, length): &(u32, u32)| {
            let mut word = ShortEntry { bytes: [0; SHORT], length: *length };
            let from = bytes.get(*start as usize..(start + length) as usize).unwrap_or_default();
            word.bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            word
        };
        let short = entries.iter().all(|(_, length)| *length as usize <= SHORT);
        let short = if short { entries.iter().map(word).collect() } else { Vec::new() };
        let are_bytes = entries.iter().all(|(_, length)| *length == 1);
        Self { entries, short, values: Arc::new(values), views: OnceLock::new(), are_bytes, ascii }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the dictionary has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries as an array, for callers that want no copies.
    pub fn values(&self) -> ArrayRef {
        self.values.clone()
    }

    /// Views of the entries at the indexes `places`, without copying their bytes. The array has `rows` rows;
    /// `stored` marks the rows that have an index, and `nulls` marks the valid rows among these. An index
    /// beyond the entries is an error.
    pub fn views_of(
        &self,
        places: &[u32],
        rows: usize,
        stored: Option<&NullBuffer>,
        nulls: Option<NullBuffer>,
    ) -> Result<StringViewArray> {
        let views = self.views.get_or_init(|| {
            let bytes = self.values.value_data();
            let made = |(start, length): &(u32, u32)| view(word(bytes, *start as usize), *length, 0, *start);
            self.entries.iter().map(made).collect()
        });
        self.check_indexes(places)?;
        let of = |place: &u32| views.get(*place as usize).copied().unwrap_or_default();
        let mut of_rows = Vec::with_capacity(rows);
        of_rows.extend(places.iter().map(of));
        of_rows.resize(rows, 0);
        if let Some(stored) = stored {
            spread(&mut of_rows, stored.validity())?;
        }
        of_entries(of_rows, self.values.values().clone(), nulls)
    }

    /// An error for an index beyond the entries.
    fn check_indexes(&self, places: &[u32]) -> Result<()> {
        let largest = places.iter().copied().fold(0, u32::max);
        if !places.is_empty() && largest as usize >= self.entries.len() {
            let count = self.entries.len();
            return Err(Error::corrupt(format!("expected an index of {count} entries, found {largest}")));
        }
        Ok(())
    }

    /// The entries at the indexes `places`, concatenated; `places` become their lengths. An index beyond the
    /// entries, or a result longer than a batch may be, is an error that leaves `places` unchanged.
    pub fn gather(&self, places: &mut [u32], limits: &Limits) -> Result<Gathered> {
        self.gather_of(places, places.len(), limits)
    }

    /// [`Self::gather`] for the values of `rows` rows. The values of a single row may exceed the limit of a
    /// batch, since a caller cannot read fewer rows.
    pub fn gather_of(&self, places: &mut [u32], rows: usize, limits: &Limits) -> Result<Gathered> {
        self.check_indexes(places)?;
        let length = |place: &u32| self.entries.get(*place as usize).map_or(0, |(_, length)| *length);
        let total: u64 = places.iter().map(|place| u64::from(length(place))).sum();
        limits.check_batch("the text of a batch", rows, total)?;
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let bytes = match (self.are_bytes, self.short.is_empty()) {
            (true, _) => self.copy_bytes(places),
            (_, true) => self.copy_long(places, total),
            _ => self.copy_short(places, total),
        };
        Ok(Gathered { bytes, ascii: self.ascii })
    }

    fn copy_bytes(&self, places: &mut [u32]) -> Vec<u8> {
        let start = self.entries.first().map_or(0, |(start, _)| *start as usize);
        let bytes = self.values.value_data().get(start..).unwrap_or_default();
        let out =
            places.iter().map(|place| bytes.get(*place as usize).copied().unwrap_or_default()).collect();
        places.fill(1);
        out
    }

    /// A fixed-size copy is one instruction; the excess bytes are cut off.
    fn copy_short(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(total + SHORT);
        let mut at = 0;
        for place in places {
            let Some(entry) = self.short.get(*place as usize) else { continue };
            out.extend_from_slice(&entry.bytes);
            at += entry.length as usize;
            out.truncate(at);
            *place = entry.length;
        }
        out
    }

    fn copy_long(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(total);
        let bytes = self.values.value_data();
        for place in places {
            let (start, length) = self.entries.get(*place as usize).copied().unwrap_or_default();
            out.extend_from_slice(bytes.get(start as usize..(start + length) as usize).unwrap_or_default());
            *place = length;
        }
        out
    }
}

impl Gathered {
    /// Total bytes of all values.
    pub fn total(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The values as an array. `lengths` are the lengths of the gathered entries, plus a zero for each null.
    pub fn text(self, lengths: &[u32], nulls: Option<NullBuffer>) -> Result<StringArray> {
        let offsets = offsets_of_lengths(lengths, self.bytes.len())?;
        // If these are the lengths of whole entries, values end at characters; but a caller might pass other
        // lengths.
        if !self.ascii && cuts_characters(&offsets, &self.bytes) {
            return Err(Error::invalid(
                "expected the lengths of entries, found a length that cuts a character",
            ));
        }
        checked_text(offsets, self.bytes.into(), nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::super::text_of_lengths;
    use super::*;
    use arrow_array::Array;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_the_entries_at_their_indexes(
            entries in proptest::collection::vec(prop_oneof![
                "[a-zä]{0,6}|[a-z]{15,20}",
                "[a-z]",
            ], 1..9),
            picks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40),
        ) {
            let lengths: Vec<u32> = entries.iter().map(|e| u32::try_from(e.len()).unwrap()).collect();
            let text = text_of_lengths(&lengths, entries.concat().into_bytes(), None).unwrap();
            let dictionary = TextDictionary::new(text);
            let picks: Vec<usize> = picks.iter().map(|p| p.index(entries.len())).collect();
            let mut places: Vec<u32> = picks.iter().map(|p| u32::try_from(*p).unwrap()).collect();
            let views = dictionary.views_of(&places, places.len(), None, None).unwrap();
            views.to_data().validate_full().unwrap();
            let gathered = dictionary.gather(&mut places, &Limits::default()).unwrap();
            let text = gathered.text(&places, None).unwrap();
            text.to_data().validate_full().unwrap();
            let expected: Vec<&str> = picks.iter().map(|p| entries[*p].as_str()).collect();
            prop_assert_eq!(text.iter().flatten().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(views.iter().flatten().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn invalid_indexes_and_lengths_are_errors() {
        let dictionary = TextDictionary::new(text_of_lengths(&[2, 1], "äx".into(), None).unwrap());
        assert_eq!((dictionary.len(), dictionary.is_empty(), dictionary.values().len()), (2, false, 2));
        let mut places = [0, 2];
        assert_eq!(
            dictionary.gather(&mut places, &Limits::default()).unwrap_err().reason(),
            "expected an index of 2 entries, found 2"
        );
        assert_eq!(places, [0, 2]);
        assert_eq!(
            dictionary.views_of(&[0, 2], 2, None, None).unwrap_err().reason(),
            "expected an index of 2 entries, found 2"
        );
        let gathered = dictionary.gather(&mut [0, 1], &Limits::default()).unwrap();
        assert!(gathered.text(&[1, 2], None).is_err());
        assert!(text_of_lengths(&[1, 2], "äx".into(), None).is_err());
    }

    #[test]
    fn too_many_bytes_are_an_error_that_asks_for_fewer_rows() {
        let long = vec![b'x'; 1 << 20];
        let dictionary = TextDictionary::new(text_of_lengths(&[1 << 20], long, None).unwrap());
        let limits = Limits { memory_limit: 80 << 20, ..Limits::default() };
        assert!(dictionary.gather(&mut [0; 20], &limits).unwrap_err().is_batch_too_long());
        assert!(dictionary.gather(&mut [0; 20], &Limits::default()).is_ok());
        assert!(dictionary.gather(&mut [0; 10], &limits).is_ok());
    }
}
