//! Codecs by the ordinals in trailers, and decryption of compressed data.
//!
//! ```text
//! data of a block       | [IV length u8 | IV] | AES-CTR( stream ) |      the first two only in encrypted files
//! stream, GZ and BZIP2  | one gzip member, or bzip2 stream |
//! stream, the others    | raw length i32 | ( compressed length i32 | chunk ) ... |   Hadoop's framing; may repeat
//! ```
//!
//! HBase: `Compression.Algorithm`, `HFileBlockDefaultDecodingContext`, `EncryptionUtil`.

use std::collections::BTreeMap;
use std::fmt;

use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::codec::{Algorithm, Decompressor};
use coldframe_encoding::crypt::{AesCtr, BLOCK};
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, ErrorKind, Result};
use prost::Message;

use crate::layout::proto::WrappedKey;

/// A codec, by its ordinal in trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    /// The codec's name in HBase.
    pub name: &'static str,
    hadoop: Option<HadoopCodec>,
}

/// The magic of zstd frames. Hadoop's own codec writes such frames without the framing above.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Codec {
    /// No compression.
    pub const NONE: Self = Self { name: "NONE", hadoop: None };

    /// The codec with this ordinal.
    pub fn from_ordinal(ordinal: u32) -> Result<Self> {
        let (name, algorithm) = match ordinal {
            0 => ("LZO", Algorithm::Lzo),
            1 => ("GZ", Algorithm::Gzip),
            2 => return Ok(Self::NONE),
            3 => ("SNAPPY", Algorithm::Snappy),
            4 => ("LZ4", Algorithm::Lz4),
            5 => ("BZIP2", Algorithm::Bzip2),
            6 => ("ZSTD", Algorithm::Zstd),
            7 => return Err(Error::unsupported("codec LZMA")),
            8 => ("BROTLI", Algorithm::Brotli),
            _ => return Err(Error::corrupt(format!("expected a codec of 0 to 8, found {ordinal}"))),
        };
        let hadoop = match algorithm {
            Algorithm::Gzip | Algorithm::Bzip2 => HadoopCodec::from_algorithm(algorithm)?,
            framed => HadoopCodec::framed(framed),
        };
        Ok(Self { name, hadoop: Some(hadoop) })
    }

    /// Every supported codec, for files whose trailer is lost.
    pub fn all() -> impl Iterator<Item = Self> {
        [2, 1, 3, 4, 6, 0, 8, 5].into_iter().filter_map(|n| Self::from_ordinal(n).ok())
    }

    /// Whether data is stored uncompressed.
    pub fn is_none(self) -> bool {
        self.hadoop.is_none()
    }

    /// The maximum number of bytes to which `stored` bytes can be decompressed.
    pub fn max_expansion(self, stored: usize) -> u64 {
        self.hadoop.map_or(stored, |codec| codec.algorithm.max_expansion(stored)) as u64
    }

    /// Decompresses `stream`, which must expand to `raw` bytes, and appends the result to `out`.
    pub fn decompress(
        self,
        decompressor: &mut Decompressor,
        stream: &[u8],
        raw: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self.hadoop {
            None => {
                out.extend_from_slice(stream);
                Ok(())
            }
            Some(codec) if codec.algorithm == Algorithm::Zstd && stream.starts_with(&ZSTD_MAGIC) => {
                decompressor.decompress_exact(Algorithm::Zstd, stream, raw, out)
            }
            // For an empty block HBase writes an empty gzip member; other writers store no bytes for it.
            Some(codec) => codec.decompress_exact(decompressor, stream, raw, out),
        }
    }
}

/// The key that a file's data is encrypted with.
#[derive(Clone, PartialEq, Eq)]
pub struct DataKey(Vec<u8>);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

impl DataKey {
    /// The candidates for the data key: the trailer's wrapped key, unwrapped with each master key. A wrong master key
    /// gives a wrong data key, with which the file info cannot be read.
    pub fn candidates(wrapped: &[u8], masters: &BTreeMap<String, Vec<u8>>) -> Result<Vec<Self>> {
        let corrupt = |e: &dyn fmt::Display| Error::corrupt(format!("wrapped key: {e}")).within("trailer");
        let wrapped = WrappedKey::decode_length_delimited(wrapped).map_err(|e| corrupt(&e))?;
        if wrapped.algorithm != "AES" {
            return Err(Error::unsupported(format!("data encrypted by {}", wrapped.algorithm)));
        }
        if masters.is_empty() {
            let message = "the file is encrypted: give the master key as `keys={alias: key}`";
            return Err(Error::new(ErrorKind::KeyUnavailable(message.to_owned())));
        }
        let iv = wrapped.iv.unwrap_or_default();
        let iv = <[u8; BLOCK]>::try_from(iv)
            .map_err(|iv| corrupt(&format!("expected an IV of 16 bytes, found {}", iv.len())))?;
        let length = usize::try_from(wrapped.length).unwrap_or(usize::MAX);
        let mut candidates = Vec::with_capacity(masters.len());
        for (alias, master) in masters {
            let mut key = wrapped.data.clone();
            let cipher = AesCtr::new(master, &iv);
            cipher.within(|| format!("master key `{alias}`"))?.apply(&mut key);
            key.truncate(length);
            // Fails if the data key has a length that AES does not support.
            AesCtr::new(&key, &iv).map_err(|e| corrupt(&e.reason()))?;
            candidates.push(Self(key));
        }
        Ok(candidates)
    }

    /// Decrypts a block's data and appends it to `out`.
    pub fn decrypt(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (len, rest) = data
            .split_first()
            .ok_or_else(|| Error::corrupt("expected the length of an IV, found nothing"))?;
        if *len == 0 {
            out.extend_from_slice(rest);
            return Ok(());
        }
        let iv = rest.first_chunk::<BLOCK>().filter(|_| usize::from(*len) == BLOCK);
        let (Some(iv), Some(data)) = (iv, rest.get(BLOCK..)) else {
            return Err(Error::corrupt(format!(
                "expected an IV of 16 bytes, found one of {len} in {}",
                rest.len()
            )));
        };
        let start = out.len();
        out.extend_from_slice(data);
        AesCtr::new(&self.0, iv)?.apply(out.get_mut(start..).unwrap_or_default());
        Ok(())
    }
}
