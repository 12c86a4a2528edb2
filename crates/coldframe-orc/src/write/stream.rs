//! Writes one stream of a column: collects bytes, divides them into blocks, and compresses these to chunks.
//!
//! ```text
//! none       | the bytes |
//! otherwise  | header u24 LE = length << 1 | original | length bytes | header | ..      each a block of the stream
//! ```
//!
//! ORC specification v1, "Compression". A block that compression would not make smaller is stored
//! uncompressed. As in Java's `OutStream`, a block that is exactly full is not compressed until another byte
//! follows, so that positions equal Java's.

use coldframe_encoding::Result;
use coldframe_encoding::codec::{Algorithm, Compressor};

/// Chunks cannot be longer: the length in their header has 23 bits.
pub(super) const MAX_BLOCK: usize = (1 << 23) - 1;

/// The compressor for all streams of a file.
#[derive(Debug)]
pub(super) struct Codec {
    /// The algorithm; [`Algorithm::None`] for files without chunks.
    pub(super) algorithm: Algorithm,
    /// The level; `None` for the codec's default.
    pub(super) level: Option<i32>,
    /// Number of bytes of a block before compression.
    pub(super) block: usize,
    compressor: Compressor,
}

impl Codec {
    pub(super) fn new(algorithm: Algorithm, level: Option<i32>, block: usize) -> Self {
        Self { algorithm, level, block: block.clamp(1, MAX_BLOCK), compressor: Compressor::new() }
    }

    /// Appends one block as a chunk.
    fn chunk(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let header = out.len();
        out.extend_from_slice(&[0; 3]);
        let start = out.len();
        self.compressor.compress(self.algorithm, self.level, block, out)?;
        let original = out.len() - start >= block.len();
        if original {
            out.truncate(start);
            out.extend_from_slice(block);
        }
        let length = (out.len() - start) << 1 | usize::from(original);
        for (to, from) in out.iter_mut().skip(header).zip(length.to_le_bytes().into_iter().take(3)) {
            *to = from;
        }
        Ok(())
    }

    /// Compresses all of `bytes` as a separate stream, such as a footer or an index.
    pub(super) fn whole(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        if self.algorithm == Algorithm::None {
            return Ok(bytes.to_vec());
        }
        let mut out = Vec::new();
        for block in bytes.chunks(self.block) {
            self.chunk(block, &mut out)?;
        }
        Ok(out)
    }
}

/// The bytes of one stream in the current stripe.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The finished chunks.
    done: Vec<u8>,
    /// Bytes that are not in a chunk yet; all of them in an uncompressed file.
    pub(super) open: Vec<u8>,
}

impl Stream {
    /// Compresses all full blocks that are followed by another byte.
    pub(super) fn spill(&mut self, codec: &mut Codec) -> Result<()> {
        if codec.algorithm == Algorithm::None || self.open.len() <= codec.block {
            return Ok(());
        }
        let blocks = (self.open.len() - 1) / codec.block;
        let (full, _) = self.open.split_at(blocks * codec.block);
        for block in full.chunks(codec.block) {
            codec.chunk(block, &mut self.done)?;
        }
        self.open.drain(..blocks * codec.block);
        Ok(())
    }

    /// The position of the next byte, in the form of row indexes.
    pub(super) fn position(&self, codec: &Codec, to: &mut Vec<u64>) {
        if codec.algorithm != Algorithm::None {
            to.push(self.done.len() as u64);
        }
        to.push(self.open.len() as u64);
    }

    /// Returns the whole stream and begins a new stream.
    pub(super) fn take(&mut self, codec: &mut Codec) -> Result<Vec<u8>> {
        if codec.algorithm == Algorithm::None {
            return Ok(std::mem::take(&mut self.open));
        }
        for block in self.open.chunks(codec.block) {
            codec.chunk(block, &mut self.done)?;
        }
        self.open.clear();
        Ok(std::mem::take(&mut self.done))
    }

    /// Memory in use, as Java counts it: a stream that has begun has an input block, and two for output.
    pub(super) fn memory(&self, codec: &Codec) -> usize {
        if codec.algorithm == Algorithm::None {
            return self.open.len();
        }
        let blocks = usize::from(!self.open.is_empty()) + 2 * usize::from(!self.done.is_empty());
        self.done.len() + blocks * codec.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::codec::Decompressor;

    #[test]
    fn blocks_become_chunks_and_positions_lead_to_them() {
        let mut codec = Codec::new(Algorithm::Snappy, None, 100);
        let mut stream = Stream::default();
        stream.open.extend_from_slice(&[7; 100]);
        stream.spill(&mut codec).unwrap();
        let mut position = vec![];
        stream.position(&codec, &mut position);
        assert_eq!(position, [0, 100]);
        stream.open.extend_from_slice(&[7, 1, 2]);
        stream.spill(&mut codec).unwrap();
        stream.position(&codec, &mut position);
        let bytes = stream.take(&mut codec).unwrap();
        let first = usize::from(bytes[0] >> 1);
        assert_eq!(bytes[0] & 1, 0);
        let mut plain = vec![];
        Decompressor::new()
            .decompress_exact(Algorithm::Snappy, &bytes[3..3 + first], 100, &mut plain)
            .unwrap();
        assert_eq!(plain, [7; 100]);
        assert_eq!(position[2..], [3 + first as u64, 3]);
        // Compression does not make three bytes smaller.
        assert_eq!(bytes[3 + first..], [3 << 1 | 1, 0, 0, 7, 1, 2]);
        assert!(stream.take(&mut codec).unwrap().is_empty());
    }
}
