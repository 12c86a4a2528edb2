//! The dictionary of a string column in a stripe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::ArrayRef;
use coldframe_core::{Error, ErrorContext, Limits, Result};

use super::build::{self, check_total, take, total};
use crate::scan::rle::int::IntRle;
use crate::scan::stream::ByteStream;

/// Dictionaries of a stripe, by column.
pub(crate) type Dictionaries = Mutex<HashMap<usize, Arc<Dictionary>>>;

/// Entries of at most so many bytes are copied as one word.
const WORD: usize = 16;

/// The entries of a stripe's dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// Where each begins, and its length.
    entries: Vec<(u32, u32)>,
    /// The first bytes of each, where none is longer.
    words: Vec<[u8; WORD]>,
    /// The bytes, UTF-8.
    bytes: Vec<u8>,
    /// The entries as an array, for those who want no copies.
    values: ArrayRef,
}

impl Dictionary {
    /// Of so many entries, with the streams of their lengths and bytes.
    pub(crate) fn read(
        entries: u64,
        mut lengths: IntRle,
        mut data: ByteStream,
        limits: &Limits,
    ) -> Result<Self> {
        // An entry takes a bit of its length's run at least, a run four bytes for 512 of them.
        let entries = limits.block("a dictionary's entries", entries.saturating_mul(4))? / 4;
        let mut sizes = vec![0u32; entries];
        lengths.read(&mut sizes).within(|| "LENGTH")?;
        let total = total(&sizes)?;
        let bytes = take(&mut data, total).within(|| "DICTIONARY_DATA")?;
        let mut at = 0;
        let mut place = |size: &u32| {
            at += size;
            (at - size, *size)
        };
        let entries: Vec<(u32, u32)> = sizes.iter().map(&mut place).collect();
        let word = |(start, length): &(u32, u32)| {
            let mut word = [0; WORD];
            let from = bytes.get(*start as usize..(start + length) as usize).unwrap_or_default();
            word.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            word
        };
        let short = sizes.iter().all(|size| *size as usize <= WORD);
        let words = if short { entries.iter().map(word).collect() } else { Vec::new() };
        let values = Arc::new(build::strings(&sizes, bytes.clone(), None)?);
        Ok(Self { entries, words, bytes, values })
    }

    /// The entries as an array.
    pub(crate) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// The entries that `places` name, one behind the other; `places` become their lengths.
    pub(crate) fn gather(&self, places: &mut [u32]) -> Result<Vec<u8>> {
        let mut total = 0u64;
        let mut missing = None;
        for place in places.iter() {
            match self.entries.get(*place as usize) {
                Some((_, length)) => total += u64::from(*length),
                None => missing = Some(*place),
            }
        }
        if let Some(place) = missing {
            let found = self.entries.len();
            return Err(
                Error::corrupt(format!("expected one of {found} entries, found {place}")).within("DATA")
            );
        }
        let total = check_total(total)?;
        if self.words.is_empty() {
            Ok(self.copy_long(places, total))
        } else {
            Ok(self.copy_short(places, total))
        }
    }

    /// A copy of fixed size is one instruction; what is too much is written over by the next.
    fn copy_short(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = vec![0u8; total + WORD];
        let mut at = 0;
        for place in places {
            let index = *place as usize;
            let (Some(word), Some((_, length))) = (self.words.get(index), self.entries.get(index)) else {
                continue;
            };
            if let Some(to) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *to = *word;
            }
            at += *length as usize;
            *place = *length;
        }
        out.truncate(total);
        out
    }

    fn copy_long(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(total);
        for place in places {
            let (start, length) = self.entries.get(*place as usize).copied().unwrap_or_default();
            out.extend_from_slice(
                self.bytes.get(start as usize..(start + length) as usize).unwrap_or_default(),
            );
            *place = length;
        }
        out
    }
}
