//! Decodes byte RLE, and bits packed in it.
//!
//! ```text
//! run       | n in 0..=127 | byte |        n + 3 times the byte
//! literals  | -n as i8 | n bytes |         n in 1..=128
//! booleans  a byte is eight of them, the highest bit first
//! ```
//!
//! ORC specification v1, "Byte Run Length Encoding", "Boolean Run Length Encoding".

use coldframe_encoding::Result;

use crate::layout::stripe::StreamKind;
use crate::scan::stream::{ByteStream, StreamPosition};

/// Decodes bytes.
#[derive(Debug)]
pub(crate) struct ByteRle {
    stream: ByteStream,
    /// Number of remaining bytes of the current run.
    left: usize,
    /// The repeated byte; `None` for literals.
    repeated: Option<u8>,
    /// Where the current run begins, as [`ByteStream::at`] counts, and its bytes.
    run: (u64, usize),
}

impl ByteRle {
    /// Creates a decoder at the start of a run.
    pub(crate) fn new(stream: ByteStream) -> Self {
        Self { stream, left: 0, repeated: None, run: (0, 0) }
    }

    /// The position of the decoder.
    pub(crate) fn position(&self, kind: StreamKind) -> StreamPosition {
        let (begin, count) = self.run;
        let run = (count > 0).then(|| (begin, count.saturating_sub(self.left)));
        StreamPosition { left: (self.left, 0), ..self.stream.position(kind, run) }
    }

    fn start_run(&mut self) -> Result<()> {
        let begin = self.stream.at();
        let header = self.stream.u8()?;
        if header < 0x80 {
            self.left = usize::from(header) + 3;
            self.repeated = Some(self.stream.u8()?);
        } else {
            self.left = 256 - usize::from(header);
            self.repeated = None;
        }
        self.run = (begin, self.left);
        Ok(())
    }

    /// Reads bytes until `out` is full.
    pub(crate) fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.left == 0 {
                self.start_run()?;
            }
            let n = self.left.min(out.len());
            let (now, later) = out.split_at_mut(n);
            match self.repeated {
                Some(byte) => now.fill(byte),
                None => {
                    let mut rest = now;
                    while !rest.is_empty() {
                        let bytes = self.stream.fill(1)?;
                        let some = bytes.len().min(rest.len());
                        let (to, behind) = rest.split_at_mut(some);
                        to.copy_from_slice(bytes.get(..some).unwrap_or_default());
                        rest = behind;
                        if some == 0 {
                            return Err(self.stream.ended("a literal byte"));
                        }
                        self.stream.consume(some);
                    }
                }
            }
            self.left -= n;
            out = later;
        }
        Ok(())
    }

    /// Skips `n` bytes.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<()> {
        while n > 0 {
            if self.left == 0 {
                self.start_run()?;
            }
            let some = self.left.min(n);
            if self.repeated.is_none() {
                self.stream.skip(some)?;
            }
            self.left -= some;
            n -= some;
        }
        Ok(())
    }
}

/// Decodes bits.
#[derive(Debug)]
pub(crate) struct BitRle {
    bytes: ByteRle,
    /// Unread bits of the last byte, lowest bit first.
    carry: u8,
    /// The number of bits in `carry`.
    carry_bits: u32,
}

impl BitRle {
    /// Creates a decoder at the start of a run.
    pub(crate) fn new(stream: ByteStream) -> Self {
        Self { bytes: ByteRle::new(stream), carry: 0, carry_bits: 0 }
    }

    /// The position of the decoder.
    pub(crate) fn position(&self, kind: StreamKind) -> StreamPosition {
        let position = self.bytes.position(kind);
        StreamPosition { left: (position.left.0, self.carry_bits), ..position }
    }

    /// The next `n` bits, least significant bit first as in Arrow; the bits after the last are zero.
    pub(crate) fn read(&mut self, n: usize) -> Result<Vec<u8>> {
        let carry_bits = (self.carry_bits as usize).min(n);
        let fresh = (n - carry_bits).div_ceil(8);
        let mut out = vec![0; n.div_ceil(8).max(fresh)];
        self.bytes.read(out.get_mut(..fresh).unwrap_or_default())?;
        for byte in &mut out {
            *byte = byte.reverse_bits();
        }
        if self.carry_bits == 0 {
            let last = out.get(fresh.wrapping_sub(1)).copied().unwrap_or(0);
            self.keep(last, n % 8);
        } else if fresh == 0 {
            if let Some(first) = out.first_mut() {
                *first = self.carry;
            }
            self.carry = self.carry.checked_shr(u32::try_from(n).unwrap_or(8)).unwrap_or(0);
            self.carry_bits -= u32::try_from(n).unwrap_or(self.carry_bits).min(self.carry_bits);
        } else {
            let last = out.get(fresh - 1).copied().unwrap_or(0);
            let (shift, mut carry) = (self.carry_bits, self.carry);
            for byte in &mut out {
                let now = *byte;
                *byte = carry | now << shift;
                carry = now >> (8 - shift);
            }
            self.keep(last, (n - carry_bits) % 8);
        }
        out.truncate(n.div_ceil(8));
        if let Some(last) = out.last_mut()
            && !n.is_multiple_of(8)
        {
            *last &= (1 << (n % 8)) - 1;
        }
        Ok(out)
    }

    /// Keeps the bits of `last` after the first `used`; no bits if `used` is 0.
    fn keep(&mut self, last: u8, used: usize) {
        if used == 0 {
            (self.carry, self.carry_bits) = (0, 0);
        } else {
            self.carry = last >> used;
            self.carry_bits = 8 - u32::try_from(used).unwrap_or(8);
        }
    }

    /// Skips `n` bits.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        let carry_bits = (self.carry_bits as usize).min(n);
        self.read(carry_bits)?;
        self.bytes.skip((n - carry_bits) / 8)?;
        self.read((n - carry_bits) % 8).map(drop)
    }

    /// Skips `run` bytes and then `bits` bits: a position of an index.
    pub(crate) fn skip_position(&mut self, run: usize, bits: usize) -> Result<()> {
        self.bytes.skip(run)?;
        if bits > 0 {
            self.read(bits)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::Limits;

    use crate::layout::compression::Compression;
    use crate::layout::proto::PostScript;

    /// Bits that are stored as literals and in a run.
    fn bits() -> BitRle {
        let plain = Compression::new(&PostScript::default(), &Limits::default()).unwrap();
        let stored = [0xfc, 0b1011_0010, 0b0111_0001, 0xff, 0x0f, 0x02, 0b1001_0110, 0xff, 0x81];
        BitRle::new(ByteStream::new(stored.to_vec().into(), 0, plain))
    }

    #[test]
    fn skip_advances_as_read_does() {
        let count = 8 * (4 + 5 + 1);
        for first in 0..20 {
            for skipped in 0..=count - first {
                let (mut skipping, mut reading) = (bits(), bits());
                assert_eq!(skipping.read(first).unwrap(), reading.read(first).unwrap());
                skipping.skip(skipped).unwrap();
                reading.read(skipped).unwrap();
                let left = count - first - skipped;
                assert_eq!(skipping.read(left).unwrap(), reading.read(left).unwrap(), "{first} {skipped}");
                assert!(skipping.skip(1).is_err());
            }
        }
    }
}
