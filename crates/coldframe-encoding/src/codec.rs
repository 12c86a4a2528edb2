//! Compression: all algorithms and their limits.
//!
//! | [`Algorithm`] | on disk | max. expansion | decoder |
//! |---|---|---|---|
//! | `None` | the bytes | 1:1 | |
//! | `Zlib` | 2-byte header, deflate, Adler-32 (RFC 1950) | 1032:1 | libdeflate |
//! | `Gzip` | 10-byte header, deflate, CRC-32, size; several members may follow each other (RFC 1952) | 1032:1 | libdeflate |
//! | `Deflate` | raw deflate (RFC 1951) | 1032:1 | libdeflate |
//! | `Snappy` | raw block: LEB128 size, tags (`google/snappy` `format_description.txt`) | 22:1 | snap |
//! | `Lz4` | raw block (`lz4/lz4` `lz4_Block_format.md`) | 255:1 | lz4_flex, safe code |
//! | `Lzo` | LZO1X block (Linux `Documentation/staging/lzo.rst`) | 255:1 | own, safe code |
//! | `Zstd` | frames (RFC 8878) | 32768:1 | libzstd |
//! | `Bzip2` | `BZh` streams, several may follow each other | no useful bound | libbz2-rs |
//! | `Brotli` | RFC 7932 stream, window up to 16 MiB | no useful bound | brotli |
//!
//! A claimed size is compared with the maximum expansion of `src` before memory is allocated. For the last
//! three algorithms, which have no tight maximum, the output buffer begins with 64 times the input and grows
//! only after the stream has filled it. Hadoop's block framing is in [`hadoop`].
//!
//! After an error, `out` has its previous length.
//!
//! Measured on one core of a shared 2-core x86-64 machine, with text cells of an RCFile in blocks of 256 KiB
//! to 1 MiB, at the usual level. In MB/s of uncompressed bytes (compressing / decompressing): zlib 65 / 620,
//! snappy 380 / 1250, lz4 470 / 3200, lzo 300 / 1030, zstd 160 / 800, bzip2 13 / 36, brotli 22 / 360.

mod blocks;
mod compress;
mod deflate;
pub mod hadoop;
mod kept;
mod lzo;
mod streams;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use compress::Compressor;
pub use deflate::check_end;
pub use kept::with_decompressor;

use crate::{Error, Result};

/// A compression algorithm, without any framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// No compression.
    None,
    /// Deflate in a zlib wrapper.
    Zlib,
    /// Deflate in gzip members.
    Gzip,
    /// Raw deflate.
    Deflate,
    /// A raw snappy block.
    Snappy,
    /// A raw LZ4 block.
    Lz4,
    /// An LZO1X block.
    Lzo,
    /// Zstandard frames.
    Zstd,
    /// Bzip2 streams.
    Bzip2,
    /// A brotli stream.
    Brotli,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 10] = [
        Self::None,
        Self::Zlib,
        Self::Gzip,
        Self::Deflate,
        Self::Snappy,
        Self::Lz4,
        Self::Lzo,
        Self::Zstd,
        Self::Bzip2,
        Self::Brotli,
    ];

    /// The lower-case name, as options use it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Lzo => "lzo",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Brotli => "brotli",
        }
    }

    /// The maximum number of bytes to which `compressed` bytes can decompress; `usize::MAX` if there is no
    /// useful bound.
    pub fn max_expansion(self, compressed: usize) -> usize {
        match self {
            Self::None => compressed,
            Self::Zlib | Self::Gzip | Self::Deflate => compressed.saturating_mul(1032),
            Self::Snappy => compressed.saturating_mul(22),
            Self::Lz4 | Self::Lzo => compressed.saturating_mul(255),
            // A block of 128 KiB takes at least its 3-byte header and one byte to repeat.
            Self::Zstd => (compressed / 4).saturating_add(1).saturating_mul(128 << 10),
            Self::Bzip2 | Self::Brotli => usize::MAX,
        }
    }

    /// The size of the first output buffer for `compressed` bytes of input.
    fn justified(self, compressed: usize) -> usize {
        match self {
            Self::Zstd | Self::Bzip2 | Self::Brotli => compressed.saturating_mul(64).max(1 << 20),
            _ => self.max_expansion(compressed),
        }
    }

    /// The size of the output, if the compressed bytes state it. It is only a hint.
    fn content_size(self, src: &[u8]) -> Option<usize> {
        match self {
            Self::None => Some(src.len()),
            Self::Snappy => blocks::snappy_content_size(src),
            Self::Gzip => src.last_chunk().and_then(|n| usize::try_from(u32::from_le_bytes(*n)).ok()),
            Self::Zstd => streams::zstd_content_size(src),
            _ => None,
        }
    }

    #[cold]
    fn too_long(self, most: usize) -> Error {
        self.corrupt(format_args!("expected at most {most} bytes, found more"))
    }

    #[cold]
    #[inline(never)]
    fn corrupt(self, message: impl fmt::Display) -> Error {
        Error::corrupt(format!("{self}: {message}"))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let algorithm = Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name));
        algorithm.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("expected a compression of {names}, found \"{name}\""))
        })
    }
}

/// The result of one attempt to decode into a slice.
enum Filled {
    /// The stream ended, together with the input, after this many bytes of output.
    To(usize),
    /// The slice is too short.
    Overflow,
}

/// Decompresses, and keeps the decoders' working memory between calls.
#[derive(Default)]
pub struct Decompressor {
    inflate: deflate::Inflate,
    snappy: snap::raw::Decoder,
    zstd: streams::ZstdDecoder,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Decompressor {
    /// Creates a decompressor, without allocating memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the contents of `src` to `out`; which must be exactly `expected` bytes.
    pub fn decompress_exact(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        expected: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        check_expansion(algorithm, src, expected)?;
        let first = expected.min(algorithm.justified(src.len()));
        let len = self.append(algorithm, src, first, expected, out)?;
        if len == Some(expected) {
            return Ok(());
        }
        if let Some(len) = len {
            out.truncate(out.len().saturating_sub(len));
        }
        let len = len.map_or_else(|| "more".to_owned(), |n| n.to_string());
        Err(algorithm.corrupt(format_args!("expected {expected} bytes, found {len}")))
    }

    /// Appends the contents of `src` to `out`; which may be at most `ceiling` bytes. This is for streams of
    /// unknown size. Returns the number of bytes.
    pub fn decompress_bounded(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        ceiling: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let (first, most) = bounds(algorithm, src, ceiling);
        let len = self.append(algorithm, src, first, most, out)?;
        len.ok_or_else(|| algorithm.too_long(most))
    }

    /// Like [`Self::decompress_bounded`], but overwrites `out` from `at` on and extends it if needed. Bytes
    /// after the result are arbitrary, so that callers can reuse memory without clearing it.
    pub fn decompress_over(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        ceiling: usize,
        out: &mut Vec<u8>,
        at: usize,
    ) -> Result<usize> {
        let (first, most) = bounds(algorithm, src, ceiling);
        let len = self.write_at(algorithm, src, first, most, out, at)?;
        len.ok_or_else(|| algorithm.too_long(most))
    }

    /// Appends the decoded bytes to `out`; appends nothing and returns `None` if they are more than `most`.
    fn append(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        room: usize,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let start = out.len();
        let len = self.write_at(algorithm, src, room, most, out, start);
        let appended = if let Ok(Some(n)) = &len { *n } else { 0 };
        out.truncate(start.saturating_add(appended));
        len
    }

    /// Decodes into `out` from `at` on, into a buffer that first has `room` bytes and at most `most` bytes;
    /// `None` if that is too short.
    fn write_at(
        &mut self,
        algorithm: Algorithm,
        src: &[u8],
        mut room: usize,
        most: usize,
        out: &mut Vec<u8>,
        at: usize,
    ) -> Result<Option<usize>> {
        loop {
            let end = at.saturating_add(room);
            if out.len() < end {
                out.resize(end, 0);
            }
            match self.fill(algorithm, src, out.get_mut(at..end).unwrap_or_default())? {
                Filled::To(n) => return Ok(Some(n)),
                Filled::Overflow if room < most => {
                    room = room.saturating_mul(8).clamp(4096, most.max(4096)).min(most);
                }
                Filled::Overflow => return Ok(None),
            }
        }
    }

    /// Decodes all of `src` into the front of `dst`.
    fn fill(&mut self, algorithm: Algorithm, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        match algorithm {
            Algorithm::None => blocks::copy(src, dst),
            Algorithm::Zlib => self.inflate.zlib(src, dst),
            Algorithm::Gzip => self.inflate.gzip(src, dst),
            Algorithm::Deflate => self.inflate.raw(src, dst),
            Algorithm::Snappy => blocks::snappy(&mut self.snappy, src, dst),
            Algorithm::Lz4 => blocks::lz4(src, dst),
            Algorithm::Lzo => lzo::decompress(src, dst),
            Algorithm::Zstd => self.zstd.fill(src, dst),
            Algorithm::Bzip2 => streams::bzip2(src, dst),
            Algorithm::Brotli => streams::brotli(src, dst),
        }
    }
}

/// If the output size is unknown: the buffer size to try first, and the maximum.
fn bounds(algorithm: Algorithm, src: &[u8], ceiling: usize) -> (usize, usize) {
    let guess = match algorithm.content_size(src) {
        Some(n) => n,
        None => src.len().saturating_mul(16).max(64 << 10),
    };
    let most = ceiling.min(algorithm.max_expansion(src.len()));
    (guess.min(most).min(algorithm.justified(src.len())), most)
}

/// An error if `src` cannot expand to `claimed` bytes.
fn check_expansion(algorithm: Algorithm, src: &[u8], claimed: usize) -> Result<()> {
    let most = algorithm.max_expansion(src.len());
    if claimed <= most {
        return Ok(());
    }
    let n = src.len();
    Err(algorithm
        .corrupt(format_args!("expected {claimed} bytes, found {n} bytes that expand to at most {most}")))
}
