//! Collects byte strings with few distinct values, such as families and qualifiers, as a dictionary.
//!
//! Names mostly occur in the same order in each row. So each entry stores which entry followed it last, and
//! most strings are compared with only that entry.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array};
use arrow_schema::DataType;
use coldframe_core::{Error, Result, arrow_error};

use crate::scan::strings::Strings;
use crate::scan::visible::is_same;

/// If a batch has at most this many entries, the next batch keeps using them.
const MAX_KEPT: usize = 4096;

/// The type of a column that [`Names`] collects.
pub(crate) fn names_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary))
}

/// The location of an entry, and the entry that followed it last.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    end: usize,
    next: usize,
}

/// Collects byte strings as a dictionary.
#[derive(Debug, Default)]
pub(crate) struct Names {
    keys: Vec<i32>,
    entries: Vec<Entry>,
    /// The concatenated entries.
    bytes: Vec<u8>,
    numbers: HashMap<Box<[u8]>, usize>,
    /// The entry of the last string.
    last: usize,
    /// The entries as an array; `None` if an entry was added since the array was made.
    array_of_entries: Option<ArrayRef>,
}

impl Names {
    fn is_entry(&self, number: usize, name: &[u8]) -> bool {
        let entry = self.entries.get(number).and_then(|entry| self.bytes.get(entry.start..entry.end));
        entry.is_some_and(|entry| is_same(entry, name))
    }

    /// Appends one string.
    #[inline(always)]
    pub(crate) fn push(&mut self, name: &[u8]) {
        let expected = self.entries.get(self.last).map_or(0, |entry| entry.next);
        let number = if self.is_entry(expected, name) { expected } else { self.find(name) };
        self.last = number;
        self.keys.push(i32::try_from(number).unwrap_or(i32::MAX));
    }

    #[inline(never)]
    fn find(&mut self, name: &[u8]) -> usize {
        if self.is_entry(self.last, name) {
            return self.last;
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => self.add(name),
        };
        if let Some(last) = self.entries.get_mut(self.last) {
            last.next = number;
        }
        number
    }

    fn add(&mut self, name: &[u8]) -> usize {
        let (number, start) = (self.entries.len(), self.bytes.len());
        self.bytes.extend_from_slice(name);
        self.entries.push(Entry { start, end: self.bytes.len(), next: number });
        self.numbers.insert(name.into(), number);
        self.array_of_entries = None;
        number
    }

    /// Bytes of entries.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reserves room for this many more strings.
    pub(crate) fn reserve(&mut self, strings: usize) {
        self.keys.reserve(strings);
    }

    /// Keeps the first `rows` strings. Entries that only the removed strings use may stay.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.keys.truncate(rows);
    }

    /// Takes the strings.
    pub(crate) fn finish(&mut self) -> Result<DictionaryArray<Int32Type>> {
        if i32::try_from(self.bytes.len().max(self.entries.len())).is_err() {
            return Err(Error::unsupported("names of more than 2 GiB in one batch"));
        }
        let array_of_entries = match &self.array_of_entries {
            Some(array_of_entries) => array_of_entries.clone(),
            None => {
                let mut strings = Strings::new();
                let entries = self.entries.iter().filter_map(|entry| self.bytes.get(entry.start..entry.end));
                entries.for_each(|entry| strings.push(entry));
                Arc::new(strings.binary()?) as ArrayRef
            }
        };
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        let array = DictionaryArray::try_new(keys, array_of_entries.clone()).map_err(arrow_error)?;
        match self.entries.len() <= MAX_KEPT {
            true => self.array_of_entries = Some(array_of_entries),
            false => *self = Self::default(),
        }
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;

    fn values(array: &DictionaryArray<Int32Type>) -> Vec<Vec<u8>> {
        let values = array.values().as_binary::<i32>();
        array
            .keys()
            .values()
            .iter()
            .map(|key| values.value(usize::try_from(*key).unwrap()).to_vec())
            .collect()
    }

    #[test]
    fn strings_are_returned_in_any_order() {
        let all: Vec<Vec<u8>> =
            ["", "q1", "q2", "q2", "q2", "q1", "a long qualifier of some bytes", "", "q1"]
                .map(|name| name.as_bytes().to_vec())
                .into();
        let mut names = Names::default();
        for _ in 0..3 {
            all.iter().for_each(|name| names.push(name));
            names.push(b"dropped");
            names.truncate(all.len());
            let array = names.finish().unwrap();
            assert_eq!((values(&array), array.values().len()), (all.clone(), 5));
        }
    }

    #[test]
    fn many_entries_are_not_kept() {
        let mut names = Names::default();
        (0..=MAX_KEPT).for_each(|n| names.push(n.to_string().as_bytes()));
        assert_eq!(names.finish().unwrap().values().len(), MAX_KEPT + 1);
        names.push(b"x");
        assert_eq!(values(&names.finish().unwrap()), [b"x"]);
    }
}
