//! Definition levels as a run-length coded bit stream.
//!
//! ```text
//! run      [1] value:w count:ULEB128     from (w + 9) / (1 + w) equal levels on
//! level    [0] value:w                   otherwise, for each
//! ```
//!
//! `w` is the bit length of the largest level. The stream fills each byte from its lowest bit, and the 8-bit groups of
//! a count begin at whatever bit the stream is at. The last byte is padded with zeros. Source: the README's "Nested
//! Encoding"; for what it does not state (bit order, the limit of "more compact"), the bytes of reference
//! files.

/// Encodes the levels of one page after another.
#[derive(Debug)]
pub(super) struct DefinitionLevels {
    /// Bits of a level; 0 if there are no levels to store.
    width: u32,
    /// The smallest number of equal levels that a run stores in fewer bits.
    run_from: usize,
    /// The current run.
    level: u8,
    count: usize,
    /// The closed runs; their last bits are still in `word`.
    stream: Vec<u8>,
    word: u64,
    held: u32,
}

impl DefinitionLevels {
    pub(super) fn new(max: u8) -> Self {
        let width = u8::BITS - max.leading_zeros();
        // A single level is never a run, although the formula gives 1 from 8 bits on.
        let run_from = ((width + 9) / (1 + width)).max(2) as usize;
        Self { width, run_from, level: 0, count: 0, stream: Vec::new(), word: 0, held: 0 }
    }

    /// The bytes that the reference writer counts: closed runs, and 64 bytes for its own fields.
    pub(super) fn counted_bytes(&self) -> usize {
        if self.width == 0 { 0 } else { 64 + self.stream.len() }
    }

    /// Appends `count` times `level`; closes the previous run if it has another level.
    pub(super) fn extend(&mut self, level: u8, count: usize) {
        if self.width == 0 {
            return;
        }
        if level != self.level {
            self.close_run();
            self.level = level;
        }
        self.count += count;
    }

    fn close_run(&mut self) {
        let level = u64::from(self.level);
        if self.count >= self.run_from {
            self.push(1 | level << 1, 1 + self.width);
            let mut count = self.count;
            while count >= 0x80 {
                self.push((count & 0x7f | 0x80) as u64, 8);
                count >>= 7;
            }
            self.push(count as u64, 8);
        } else {
            for _ in 0..self.count {
                self.push(level << 1, 1 + self.width);
            }
        }
        self.count = 0;
    }

    /// Appends the low `width` bits, 9 at most, of `bits`. Fewer than 8 bits stay in the word.
    #[inline]
    fn push(&mut self, bits: u64, width: u32) {
        self.word |= bits << self.held;
        self.held += width;
        while self.held >= 8 {
            self.stream.push(self.word.to_le_bytes()[0]);
            self.word >>= 8;
            self.held -= 8;
        }
    }

    /// Ends the stream, passes it to `take`, and starts a new stream.
    pub(super) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        self.close_run();
        if self.held > 0 {
            self.stream.push(self.word.to_le_bytes()[0]);
        }
        let taken = take(&self.stream);
        self.stream.clear();
        (self.word, self.held) = (0, 0);
        taken
    }
}

/// How many levels at the start are equal to the first level.
pub(super) fn run_length(levels: &[u8]) -> usize {
    let Some(first) = levels.first() else { return 0 };
    let (words, tail) = levels.as_chunks::<8>();
    let expected = u64::from_ne_bytes([*first; 8]);
    for (i, word) in words.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ expected;
        if differing != 0 {
            return i * 8 + differing.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + tail.iter().take_while(|l| *l == first).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(max: u8, levels: &[u8]) -> Vec<u8> {
        let mut encoder = DefinitionLevels::new(max);
        levels.iter().for_each(|l| encoder.extend(*l, 1));
        encoder.finish(<[u8]>::to_vec)
    }

    /// Decodes bit by bit.
    fn decode(max: u8, bytes: &[u8], count: usize) -> Vec<u8> {
        let width = u8::BITS - max.leading_zeros();
        let mut at = 0;
        let mut bits = |n: u32| {
            let value = (0..n).fold(0u64, |v, b| {
                let bit = at + b as usize;
                v | u64::from(bytes[bit / 8] >> (bit % 8) & 1) << b
            });
            at += n as usize;
            value
        };
        let mut levels = Vec::new();
        while levels.len() < count {
            let run = bits(1) == 1;
            let level = u8::try_from(bits(width)).unwrap();
            let mut n = u64::from(!run);
            if run {
                for shift in (0..).step_by(7) {
                    let group = bits(8);
                    n |= (group & 0x7f) << shift;
                    if group < 0x80 {
                        break;
                    }
                }
            }
            levels.resize(levels.len() + usize::try_from(n).unwrap(), level);
        }
        assert_eq!(at.div_ceil(8), bytes.len());
        levels
    }

    #[test]
    fn runs_begin_at_a_count_that_depends_on_the_width() {
        // (largest level, the first count that is a run)
        for (max, from) in
            [(1, 5), (2, 3), (3, 3), (4, 3), (7, 3), (8, 2), (15, 2), (16, 2), (127, 2), (128, 2)]
        {
            let is_run = |n: usize| encode(max, &vec![max; n])[0] & 1 == 1;
            assert!((1..from).all(|n| !is_run(n)) && is_run(from), "{max}");
        }
    }

    /// The first case is from a page of a reference file: a run of four levels 2, whose count is at an
    /// unaligned bit.
    #[test]
    fn bits_fill_bytes_from_the_lowest() {
        assert_eq!(encode(2, &[2; 4]), [0x25, 0x00]);
        assert_eq!(encode(1, &[1, 1, 0, 1]), [0b10_00_10_10]);
        assert!(encode(1, &[]).is_empty());
        assert!(encode(0, &[0; 9]).is_empty());
        // The bits are [1][1][200 as ULEB128: c8 01].
        assert_eq!(encode(1, &[1; 200]), [0b0010_0011, 0b0000_0111, 0]);
    }

    #[test]
    fn only_closed_runs_are_counted() {
        let mut encoder = DefinitionLevels::new(1);
        encoder.extend(1, 1000);
        assert_eq!(encoder.counted_bytes(), 64);
        encoder.extend(0, 1);
        assert_eq!(encoder.counted_bytes(), 64 + 2);
        encoder.finish(|stream| assert_eq!(stream.len(), 3));
        assert_eq!(encoder.counted_bytes(), 64);
        assert_eq!(DefinitionLevels::new(0).counted_bytes(), 0);
    }

    proptest! {
        #[test]
        fn every_level_is_the_same_after_writing_and_reading(max in 1u8..=255, runs in prop::collection::vec((any::<u8>(), 1usize..400), 0..60)) {
            let levels: Vec<u8> =
                runs.iter().flat_map(|(l, n)| vec![u8::try_from(u32::from(*l) % (u32::from(max) + 1)).unwrap(); *n]).collect();
            prop_assert_eq!(decode(max, &encode(max, &levels), levels.len()), levels.clone());

            // Levels added in runs give the same bytes as levels added one by one.
            let mut bulk = DefinitionLevels::new(max);
            let mut rest = &levels[..];
            while let Some(first) = rest.first() {
                let n = run_length(rest);
                prop_assert!(rest[..n].iter().all(|l| l == first) && rest.get(n) != Some(first));
                bulk.extend(*first, n);
                rest = &rest[n..];
            }
            prop_assert_eq!(bulk.finish(<[u8]>::to_vec), encode(max, &levels));
        }
    }
}
