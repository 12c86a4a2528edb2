//! The texts that a compressed log repeats, by number. HBase: `LRUDictionary`.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use coldframe_core::{Error, Result};

/// Texts by number. A new text takes the next number or, once all are taken, that of the text that was not used for the
/// longest time: reading must follow the uses as the writer made them.
#[derive(Debug)]
pub(super) struct Dictionary {
    capacity: usize,
    /// Each text with the time of its last use.
    texts: Vec<(Bytes, u64)>,
    numbers: HashMap<Bytes, u16>,
    /// The numbers by the time of their last use.
    by_use: BTreeMap<u64, u16>,
    now: u64,
}

impl Dictionary {
    /// `capacity`: at most 2^15.
    pub(super) fn new(capacity: usize) -> Self {
        let (texts, numbers, by_use) = (Vec::new(), HashMap::new(), BTreeMap::new());
        Self { capacity, texts, numbers, by_use, now: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The text with a number.
    pub(super) fn text(&mut self, number: u16) -> Result<Bytes> {
        let count = self.texts.len();
        let Some((text, used)) = self.texts.get_mut(usize::from(number)) else {
            return Err(Error::corrupt(format!(
                "expected one of {count} texts of a dictionary, found number {number}"
            )));
        };
        self.by_use.remove(used);
        self.now += 1;
        *used = self.now;
        self.by_use.insert(self.now, number);
        Ok(text.clone())
    }

    /// Adds a new text. Empty texts have no number.
    pub(super) fn add(&mut self, text: &Bytes) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(number) = self.numbers.get(text) {
            return Err(Error::corrupt(format!(
                "expected number {number} of a dictionary, found its text once more"
            )));
        }
        let number = if self.texts.len() < self.capacity {
            self.texts.push((Bytes::new(), 0));
            u16::try_from(self.texts.len() - 1).ok()
        } else {
            self.by_use.pop_first().map(|(_, number)| number)
        };
        let entry = number.and_then(|number| Some((number, self.texts.get_mut(usize::from(number))?)));
        let Some((number, entry)) = entry else {
            return Err(Error::invalid("a dictionary without capacity"));
        };
        self.now += 1;
        self.numbers.remove(&entry.0);
        // The text may be a part of a large buffer.
        let text = Bytes::copy_from_slice(text);
        *entry = (text.clone(), self.now);
        self.numbers.insert(text, number);
        self.by_use.insert(self.now, number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_was_not_used_for_longest_gives_its_number() {
        let mut dictionary = Dictionary::new(3);
        for text in ["a", "b", "c"] {
            dictionary.add(&Bytes::from(text)).unwrap();
        }
        assert_eq!(dictionary.text(0).unwrap(), "a");
        dictionary.add(&Bytes::from("d")).unwrap();
        dictionary.add(&Bytes::from("e")).unwrap();
        assert_eq!([0, 1, 2].map(|number| dictionary.text(number).unwrap()), ["a", "d", "e"]);
        dictionary.add(&Bytes::from("b")).unwrap();
        assert_eq!(dictionary.text(0).unwrap(), "b");
        dictionary.add(&Bytes::new()).unwrap();
        assert_eq!(dictionary.len(), 3);
        assert!(dictionary.text(3).unwrap_err().to_string().contains("one of 3 texts"));
        assert!(dictionary.add(&Bytes::from("e")).unwrap_err().to_string().contains("number 2"));
    }

    #[test]
    fn one_text_replaces_another() {
        let mut dictionary = Dictionary::new(1);
        dictionary.add(&Bytes::from("a")).unwrap();
        dictionary.add(&Bytes::from("b")).unwrap();
        assert_eq!(dictionary.text(0).unwrap(), "b");
    }
}
