//! Bloom files: bloom filters for the keys of a rowset.
//!
//! ```text
//! file  | a CFile of BINARY without values: the value index leads from a block's first key to the block |
//! block | header length u32 LE | BloomBlockHeaderPB | bits, lowest of a byte first |
//! ```
//!
//! A key's bits are `h, h + step, h + 2 step ...` modulo the number of bits, where `h` and `step` are the low and the high half of its
//! 64-bit hash (CityHash, in `gutil`'s version), in 32-bit arithmetic. (`bloom_filter.h`, `bloomfile.cc`.)

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::hash::city64;
use prost::Message;

use super::proto::BloomBlockHeader;

/// A block of a bloom file.
#[derive(Clone, Copy, Debug)]
pub struct BloomBlock<'a> {
    /// The number of bits that a key sets.
    pub hashes: u32,
    bits: &'a [u8],
}

impl<'a> BloomBlock<'a> {
    /// Parses the contents of a block.
    pub fn parse(contents: &'a [u8], at: u64) -> Result<Self> {
        let mut cursor = Cursor::new(contents, at);
        let len = cursor.u32_le()?;
        let message_at = cursor.offset();
        let message = cursor.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        let header = BloomBlockHeader::decode(message).map_err(|e| {
            Error::corrupt(format!("expected a header, found something else ({e})")).at(message_at)
        })?;
        let number = header.num_hash_functions.unwrap_or(0);
        let hashes = u32::try_from(number).ok().filter(|n| (1..=1024).contains(n));
        let hashes = hashes.ok_or_else(|| {
            Error::corrupt(format!("expected 1 to 1024 hash functions, found {number}")).at(message_at)
        })?;
        if cursor.is_empty() || cursor.remaining() > (u32::MAX / 8) as usize {
            return Err(Error::corrupt(format!("expected bits, found {} bytes", cursor.remaining())).at(at));
        }
        Ok(Self { hashes, bits: cursor.rest() })
    }

    /// The number of bits.
    pub fn len(&self) -> u64 {
        self.bits.len() as u64 * 8
    }

    /// Whether there are no bits, which is false for every parsed block.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Whether the block may have the key: `false` only if `key` was certainly not added.
    pub fn might_contain(&self, key: &[u8]) -> bool {
        let hash = city64(key).to_le_bytes();
        let half = |from: usize| {
            hash.get(from..).and_then(|h| h.first_chunk()).map_or(0, |h| u32::from_le_bytes(*h))
        };
        let (mut at, step) = (half(0), half(4));
        let bits = u32::try_from(self.len()).unwrap_or(u32::MAX);
        (0..self.hashes).all(|_| {
            let bit = at.checked_rem(bits).unwrap_or(0);
            at = at.wrapping_add(step);
            self.bits.get((bit / 8) as usize).is_some_and(|b| b >> (bit % 8) & 1 == 1)
        })
    }
}
