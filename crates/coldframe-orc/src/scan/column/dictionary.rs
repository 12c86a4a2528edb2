//! Reads the dictionary of a string column in a stripe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::BinaryArray;
use coldframe_core::arrays::{TextDictionary, binary_of_lengths, readable_text};
use coldframe_core::{Error, ErrorContext, Limits, Result};

use crate::scan::rle::int::IntRle;
use crate::scan::stream::ByteStream;

/// The dictionaries of a stripe, by column.
pub(crate) type Dictionaries = Mutex<HashMap<usize, Arc<Dictionary>>>;

/// The entries of a column's dictionary.
#[derive(Debug)]
pub(crate) enum Dictionary {
    /// The entries are text; the indexes name the entries that are not UTF-8 and are replaced by empty text.
    Text(TextDictionary, Vec<usize>),
    /// The entries are bytes of text that the user declared as binary.
    Bytes(BinaryArray),
}

/// Approximate memory of an entry: its position, its first bytes, its offset.
const ENTRY: u64 = 32;

/// Limits the number of entries of a stripe's dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryLimit {
    /// Number of rows of the stripe: a column outside lists and maps has no more values, and so no more
    /// entries.
    pub(super) rows: u64,
    /// Whether a list or map repeats the column.
    pub(super) repeated: bool,
    /// Length of the file.
    pub(super) file_len: u64,
}

impl EntryLimit {
    /// An error for an impossible number of entries. Empty entries take no bytes in the file, so nothing else
    /// limits their number.
    fn check(self, entries: u64, limits: &Limits) -> Result<usize> {
        if entries > self.rows && !self.repeated {
            return Err(Error::corrupt(format!(
                "expected a dictionary of at most {} entries, found {entries}",
                self.rows
            )));
        }
        if entries > self.rows {
            limits.decoded("a dictionary's entries", entries.saturating_mul(ENTRY), self.file_len)?;
        }
        // A run of 512 lengths takes at least four bytes, so an entry takes part of a byte.
        Ok(limits.block("a dictionary's entries", entries.saturating_mul(4))? / 4)
    }
}

/// Reads a dictionary with this many entries, from the streams of their lengths and bytes.
pub(super) fn read(
    entries: u64,
    mut lengths: IntRle,
    mut data: ByteStream,
    limits: &Limits,
    limit: EntryLimit,
    is_text: bool,
) -> Result<Dictionary> {
    let most = lengths.most_left();
    if entries > most {
        let e = Error::corrupt(format!("expected a dictionary of at most {most} entries, found {entries}"));
        return Err(e.within("LENGTH"));
    }
    let mut sizes = vec![0u32; limit.check(entries, limits)?];
    lengths.read(&mut sizes).within(|| "LENGTH")?;
    let total: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
    let bytes = data.take(total).within(|| "DICTIONARY_DATA")?;
    let rest = data.max_remaining();
    if rest > 0 {
        let message = format!("expected entries of {} bytes, found lengths of {total}", total + rest as u64);
        return Err(Error::corrupt(message).at(data.offset()).within("DICTIONARY_DATA"));
    }
    if !is_text {
        return Ok(Dictionary::Bytes(binary_of_lengths(&sizes, bytes.into(), None)?));
    }
    let (text, malformed) = readable_text(&sizes, bytes.into(), None, false)?;
    Ok(Dictionary::Text(TextDictionary::new(text), malformed))
}
