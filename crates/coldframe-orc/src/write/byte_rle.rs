//! Encodes byte RLE, and bits packed in it.
//!
//! ```text
//! run       | n in 0..=127 | byte |        n + 3 times the byte
//! literals  | -n as i8 | n bytes |         n in 1..=128
//! booleans  a byte is eight of them, the highest bit first
//! ```
//!
//! ORC specification v1, "Byte Run Length Encoding", "Boolean Run Length Encoding". Runs begin and end as in
//! Java's `RunLengthByteWriter`.

const MIN_REPEAT: usize = 3;
const MAX_LITERALS: usize = 128;
const MAX_REPEAT: usize = 127 + MIN_REPEAT;

/// Encodes bytes. Pending bytes belong to the run that is written next.
#[derive(Debug)]
pub(super) struct ByteRle {
    literals: [u8; MAX_LITERALS],
    pending: usize,
    repeat: bool,
    /// How many literals at the end are equal.
    tail: usize,
}

impl Default for ByteRle {
    fn default() -> Self {
        Self { literals: [0; MAX_LITERALS], pending: 0, repeat: false, tail: 0 }
    }
}

impl ByteRle {
    /// Number of values in the current run.
    pub(super) fn pending(&self) -> u64 {
        self.pending as u64
    }

    /// Ends the current run.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(literals) = self.literals.get(..self.pending.min(MAX_LITERALS)) else { return };
        if self.repeat {
            out.push(low_byte(self.pending - MIN_REPEAT));
            out.extend(literals.first());
        } else if self.pending > 0 {
            out.push(low_byte(self.pending.wrapping_neg()));
            out.extend_from_slice(literals);
        }
        (self.pending, self.repeat, self.tail) = (0, false, 0);
    }

    fn first(&self) -> Option<u8> {
        self.literals.first().copied()
    }

    fn put(&mut self, value: u8) {
        if let Some(place) = self.literals.get_mut(self.pending) {
            *place = value;
        }
        self.pending += 1;
    }

    pub(super) fn write(&mut self, value: u8, out: &mut Vec<u8>) {
        if self.pending == 0 {
            self.put(value);
            self.tail = 1;
            return;
        }
        if self.repeat {
            if self.first() == Some(value) {
                self.pending += 1;
                if self.pending == MAX_REPEAT {
                    self.flush(out);
                }
            } else {
                self.flush(out);
                self.put(value);
                self.tail = 1;
            }
            return;
        }
        let last = self.literals.get(self.pending - 1).copied();
        self.tail = if last == Some(value) { self.tail + 1 } else { 1 };
        if self.tail < MIN_REPEAT {
            self.put(value);
            if self.pending == MAX_LITERALS {
                self.flush(out);
            }
            return;
        }
        if self.pending + 1 > MIN_REPEAT {
            self.pending -= MIN_REPEAT - 1;
            self.flush(out);
            self.pending = 0;
            self.put(value);
        }
        (self.repeat, self.pending) = (true, MIN_REPEAT);
    }

    /// Appends the same value `count` times.
    pub(super) fn repeat(&mut self, value: u8, mut count: usize, out: &mut Vec<u8>) {
        while count > 0 {
            let in_run = self.repeat && self.pending > 0 && self.first() == Some(value);
            let room = MAX_REPEAT - 1 - self.pending.min(MAX_REPEAT - 1);
            if in_run && room > 0 && count > 1 {
                let step = room.min(count - 1);
                self.pending += step;
                count -= step;
            }
            self.write(value, out);
            count -= 1;
        }
    }
}

/// Encodes booleans.
#[derive(Debug, Default)]
pub(super) struct BitRle {
    bytes: ByteRle,
    current: u8,
    /// Number of bits of `current` in use.
    used: u32,
}

impl BitRle {
    /// Bytes in the current run, and bits in the current byte.
    pub(super) fn pending(&self, to: &mut Vec<u64>) {
        to.extend([self.bytes.pending(), self.used.into()]);
    }

    pub(super) fn write(&mut self, values: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
        for value in values {
            self.used += 1;
            self.current |= u8::from(value) << (8 - self.used);
            self.end_byte(out);
        }
    }

    fn end_byte(&mut self, out: &mut Vec<u8>) {
        if self.used == 8 {
            self.bytes.write(self.current, out);
            (self.current, self.used) = (0, 0);
        }
    }

    /// Appends `true` this many times.
    pub(super) fn write_true(&mut self, mut count: usize, out: &mut Vec<u8>) {
        while self.used > 0 && count > 0 {
            self.write(std::iter::once(true), out);
            count -= 1;
        }
        self.bytes.repeat(0xff, count / 8, out);
        self.write(std::iter::repeat_n(true, count % 8), out);
    }

    /// Ends the current byte and run.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        if self.used > 0 {
            self.used = 8;
            self.end_byte(out);
        }
        self.bytes.flush(out);
    }
}

fn low_byte(value: usize) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(mut src: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        while let Some((&control, rest)) = src.split_first() {
            let n = control.cast_signed();
            if n >= 0 {
                out.extend(std::iter::repeat_n(rest[0], usize::from(n.unsigned_abs()) + 3));
                src = &rest[1..];
            } else {
                out.extend_from_slice(&rest[..usize::from(n.unsigned_abs())]);
                src = &rest[usize::from(n.unsigned_abs())..];
            }
        }
        out
    }

    fn encode(values: &[u8]) -> Vec<u8> {
        let (mut rle, mut out) = (ByteRle::default(), vec![]);
        values.iter().for_each(|v| rle.write(*v, &mut out));
        rle.flush(&mut out);
        out
    }

    /// The examples of the specification.
    #[test]
    fn the_examples_of_the_specification_are_encoded() {
        assert_eq!(encode(&[0; 100]), [0x61, 0x00]);
        assert_eq!(encode(&[0x44, 0x45]), [0xfe, 0x44, 0x45]);
        let (mut bits, mut out) = (BitRle::default(), vec![]);
        bits.write([true, false, false, false, false, false, false, false].into_iter(), &mut out);
        bits.flush(&mut out);
        assert_eq!(out, [0xff, 0x80]);
    }

    fn runs() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec((0u8..3, 1usize..300), 0..20)
            .prop_map(|runs| runs.iter().flat_map(|(v, n)| std::iter::repeat_n(*v, 1 + n % 7 * n)).collect())
    }

    proptest! {
        #[test]
        fn encoded_values_are_decoded(values in runs()) {
            prop_assert_eq!(decode(&encode(&values)), values);
        }

        #[test]
        fn repeat_equals_repeated_writes(before in runs(), count in 0usize..1000, after in runs()) {
            let (mut rle, mut out) = (ByteRle::default(), vec![]);
            before.iter().for_each(|v| rle.write(*v, &mut out));
            rle.repeat(1, count, &mut out);
            after.iter().for_each(|v| rle.write(*v, &mut out));
            rle.flush(&mut out);
            let all: Vec<u8> = before.iter().copied().chain(std::iter::repeat_n(1, count)).chain(after).collect();
            prop_assert_eq!(out, encode(&all));
        }

        #[test]
        fn bits_are_encoded_in_bytes(parts in proptest::collection::vec((any::<bool>(), 0usize..100), 0..9)) {
            let (mut rle, mut out, mut expected) = (BitRle::default(), vec![], vec![]);
            for (value, count) in parts {
                if value { rle.write_true(count, &mut out) } else { rle.write(std::iter::repeat_n(false, count), &mut out) }
                expected.extend(std::iter::repeat_n(value, count));
            }
            rle.flush(&mut out);
            let bytes = decode(&out);
            let decoded: Vec<bool> = (0..expected.len()).map(|i| bytes[i / 8] >> (7 - i % 8) & 1 == 1).collect();
            prop_assert_eq!(decoded, expected);
        }
    }
}
