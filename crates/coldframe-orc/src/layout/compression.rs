//! Reads the chunks in which a file with a codec stores everything except the postscript.
//!
//! ```text
//! none       | the bytes |
//! otherwise  | header u24 LE = length << 1 | original | length bytes | header | ..
//! ```
//!
//! ORC specification v1, "Compression". A chunk decompresses to at most `compressionBlockSize` bytes; if the
//! lowest bit of the header is set, its bytes are stored uncompressed.

use coldframe_encoding::codec::{Algorithm, Decompressor, check_end, with_decompressor};
use coldframe_encoding::{Cursor, Error, Limits, Result};

use super::proto::PostScript;

/// The block size of files that do not state it.
const DEFAULT_BLOCK: u64 = 256 << 10;
/// The maximum number of values that a byte of content can hold: a run of 130 bytes of eight bits each takes
/// two bytes.
const VALUES_OF_A_BYTE: u64 = 520;
/// Bytes of a chunk's header.
pub(crate) const HEADER: usize = 3;

/// The codec of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compression {
    /// [`Algorithm::None`]: there are no chunks.
    pub(crate) algorithm: Algorithm,
    /// Maximum number of bytes of a chunk after decompression.
    pub(crate) block_size: usize,
    /// Whether each chunk must end at the end of its compressed data, and each chunk except the last must be
    /// full. Required after damage, where a short chunk would shift all values.
    pub(crate) strict: bool,
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    /// Number of bytes after the header.
    pub(crate) length: usize,
    /// Whether the bytes after the header are stored uncompressed.
    pub(crate) original: bool,
}

/// A chunk in its stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    /// The bytes after the header.
    pub(crate) bytes: &'a [u8],
    /// The offset of the bytes in the file.
    pub(crate) start: u64,
    /// Whether the bytes are stored uncompressed.
    pub(crate) original: bool,
}

impl ChunkHeader {
    /// Parses the three bytes of a header.
    pub(crate) fn new([a, b, c]: [u8; HEADER]) -> Self {
        let word = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        Self { length: word >> 1, original: word & 1 == 1 }
    }
}

impl Compression {
    /// The codec that the postscript states.
    pub(crate) fn new(postscript: &PostScript, limits: &Limits) -> Result<Self> {
        let algorithm = match postscript.compression() {
            0 => Algorithm::None,
            1 => Algorithm::Deflate,
            2 => Algorithm::Snappy,
            3 => Algorithm::Lzo,
            4 => Algorithm::Lz4,
            5 => Algorithm::Zstd,
            6 => Algorithm::Brotli,
            other => return Err(Error::unsupported(format!("ORC compression kind {other}"))),
        };
        let size = postscript.compression_block_size.filter(|n| *n > 0).unwrap_or(DEFAULT_BLOCK);
        let block_size = match algorithm {
            Algorithm::None => 0,
            _ => limits.block("the compression block size", size)?,
        };
        Ok(Self { algorithm, block_size, strict: false })
    }

    /// The maximum number of values that this number of stored bytes of streams can hold.
    pub(crate) fn most_values(self, stored: u64) -> u64 {
        let stored = usize::try_from(stored).unwrap_or(usize::MAX);
        (self.algorithm.max_expansion(stored) as u64).saturating_mul(VALUES_OF_A_BYTE)
    }

    /// The specification's name of the codec.
    pub(crate) fn name(self) -> &'static str {
        match self.algorithm {
            Algorithm::Deflate => "zlib",
            other => other.name(),
        }
    }

    /// The next chunk in its stored form.
    pub(crate) fn stored<'a>(self, chunks: &mut Cursor<'a>) -> Result<Chunk<'a>> {
        let header = ChunkHeader::new(chunks.array()?);
        let start = chunks.offset();
        let bytes = chunks.take(header.length)?;
        if header.original && bytes.len() > self.block_size {
            let message =
                format!("expected a chunk of at most {} bytes, found {}", self.block_size, bytes.len());
            return Err(Error::corrupt(message).at(start));
        }
        Ok(Chunk { bytes, start, original: header.original })
    }

    /// Appends the content of a chunk to `out`.
    pub(crate) fn decompress(
        self,
        codec: &mut Decompressor,
        chunk: &Chunk<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if chunk.original {
            out.extend_from_slice(chunk.bytes);
            return Ok(());
        }
        codec
            .decompress_bounded(self.algorithm, chunk.bytes, self.block_size, out)
            .map_err(|e| e.at(chunk.start))?;
        self.check_end(chunk)
    }

    /// Writes a compressed chunk's content over `out` from `at` on; returns its length.
    pub(crate) fn decompress_over(
        self,
        codec: &mut Decompressor,
        chunk: &Chunk<'_>,
        out: &mut Vec<u8>,
        at: usize,
    ) -> Result<usize> {
        let len = codec.decompress_over(self.algorithm, chunk.bytes, self.block_size, out, at);
        let len = len.map_err(|e| e.at(chunk.start))?;
        self.check_end(chunk)?;
        Ok(len)
    }

    fn check_end(self, chunk: &Chunk<'_>) -> Result<()> {
        if self.strict && self.algorithm == Algorithm::Deflate {
            return check_end(chunk.bytes).map_err(|e| e.at(chunk.start));
        }
        Ok(())
    }

    /// The content of a whole message (a footer, an index) that is stored at `offset` of a file of `file_len` bytes.
    pub(crate) fn message(
        self,
        stored: &[u8],
        offset: u64,
        limits: &Limits,
        file_len: u64,
    ) -> Result<Vec<u8>> {
        if self.algorithm == Algorithm::None {
            limits.metadata("a message", stored.len() as u64)?;
            return Ok(stored.to_vec());
        }
        let mut chunks = Cursor::new(stored, offset);
        let mut out = Vec::new();
        while !chunks.is_empty() {
            let chunk = self.stored(&mut chunks)?;
            with_decompressor(|codec| self.decompress(codec, &chunk, &mut out))?;
            limits.metadata("a message", out.len() as u64).map_err(|e| e.at(offset))?;
            // The message itself and its decoded form are both counted.
            limits.decoded("a message", 2 * out.len() as u64, file_len).map_err(|e| e.at(offset))?;
        }
        Ok(out)
    }
}
