//! Compares texts with the minimum and maximum that a file states of them.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;

/// The minimum and maximum of text. Nearly all values differ from both in their first bytes.
pub(super) struct TextBounds {
    least: String,
    most: String,
    /// The first bytes of both.
    between: (u64, u64),
}

impl TextBounds {
    /// The bounds in two arrays of one text each; `None` if they are not texts.
    pub(super) fn new(min: &ArrayRef, max: &ArrayRef) -> Option<Self> {
        let text = |bound: &ArrayRef| Some(bound.as_string_opt::<i32>()?.value(0).to_owned());
        let (least, most) = (text(min)?, text(max)?);
        let between = (first_bytes(&least), first_bytes(&most));
        Some(Self { least, most, between })
    }

    /// Whether a text lies outside.
    pub(super) fn exclude(&self, text: &str) -> bool {
        let first = first_bytes(text);
        let (least, most) = self.between;
        (first <= least || first >= most) && (text < self.least.as_str() || text > self.most.as_str())
    }
}

/// The first eight bytes of a text as a number, filled up with zeros: texts sort as these numbers do, where they
/// differ.
fn first_bytes(text: &str) -> u64 {
    let bytes = text.as_bytes();
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let unused = 8 * (8 - bytes.len());
    // Two reads that may overlap take all bytes of a shorter text, without a loop.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(u32::from_be_bytes(*last)) << unused;
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte) << (56 - 8 * at));
    byte(0) | byte(1) | byte(2)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn first_bytes_sort_as_texts() {
        let texts = ["", "\0", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abd"];
        for text in texts {
            let mut filled = [0; 8];
            filled[..text.len()].copy_from_slice(text.as_bytes());
            assert_eq!(first_bytes(text), u64::from_be_bytes(filled), "{text}");
        }
        assert!(texts.windows(2).all(|pair| first_bytes(pair[0]) <= first_bytes(pair[1])));
    }

    #[test]
    fn texts_are_compared_beyond_their_first_bytes() {
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        let bounds = TextBounds::new(&text("b"), &text("common prefix 5")).unwrap();
        for inside in ["b", "b\0", "c", "common p", "common prefix 4", "common prefix 5"] {
            assert!(!bounds.exclude(inside), "{inside}");
        }
        for outside in ["", "a", "azzzzzzzzz", "common prefix 6", "common prefix 55", "d"] {
            assert!(bounds.exclude(outside), "{outside}");
        }
    }
}
