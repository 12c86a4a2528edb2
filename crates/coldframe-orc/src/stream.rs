//! The bytes of one stream, decompressed chunk by chunk as they are asked for.
//!
//! ```text
//! stored    | chunk | chunk | chunk |          of the file, all at hand
//! window            [ rest | chunk  ]          decompressed, one chunk and what was left of the one before
//! ```
//!
//! A run of values may begin in one chunk and end in the next: [`ByteStream::fill`] moves the rest of the window to its front
//! and decompresses behind it, so decoders see whole runs. Without a codec the window is the stored bytes themselves. Memory
//! of a stream is that of about one chunk.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coldframe_encoding::codec::{Algorithm, Decompressor};
use coldframe_encoding::{Cursor, Error, Result};

use crate::compression::{ChunkHeader, Compression, HEADER};

/// Decompressors that the streams of a stripe share: as many as there are threads at work.
#[derive(Clone, Debug, Default)]
pub struct Codec(Arc<Mutex<Vec<Decompressor>>>);

impl Codec {
    fn chunk(&self, compression: Compression, chunks: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<()> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut codec = idle.unwrap_or_default();
        let result = compression.chunk(&mut codec, chunks, out);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(codec);
        result
    }
}

/// One stream, read from front to back.
#[derive(Debug)]
pub struct ByteStream {
    stored: Bytes,
    /// Place in `stored` of the next chunk; of the next byte without a codec.
    next: usize,
    /// Place in the file of `stored`.
    offset: u64,
    compression: Compression,
    codec: Codec,
    window: Vec<u8>,
    /// Bytes of the window that are read.
    read: usize,
}

impl ByteStream {
    /// `stored` begins with a chunk, at `offset` of the file.
    pub fn new(stored: Bytes, offset: u64, compression: Compression, codec: Codec) -> Self {
        Self { stored, next: 0, offset, compression, codec, window: Vec::new(), read: 0 }
    }

    fn is_plain(&self) -> bool {
        self.compression.algorithm == Algorithm::None
    }

    /// Where in the file it is, to the chunk.
    pub fn offset(&self) -> u64 {
        self.offset + self.next as u64
    }

    /// The bytes at hand.
    #[inline]
    pub fn buffered(&self) -> &[u8] {
        if self.is_plain() {
            self.stored.get(self.next..).unwrap_or_default()
        } else {
            self.window.get(self.read..).unwrap_or_default()
        }
    }

    /// Sees to it that `want` bytes are at hand; they are fewer only at the stream's end.
    #[inline]
    pub fn fill(&mut self, want: usize) -> Result<&[u8]> {
        if !self.is_plain() && self.window.len() - self.read < want {
            self.refill(want)?;
        }
        Ok(self.buffered())
    }

    fn refill(&mut self, want: usize) -> Result<()> {
        if self.next >= self.stored.len() {
            return Ok(());
        }
        let rest = self.window.len() - self.read;
        self.window.copy_within(self.read.., 0);
        self.window.truncate(rest);
        self.read = 0;
        while self.window.len() < want && self.next < self.stored.len() {
            Self::chunk(
                &self.stored,
                &mut self.next,
                self.offset,
                self.compression,
                &self.codec,
                &mut self.window,
            )?;
        }
        Ok(())
    }

    /// Appends the next chunk to `out`.
    fn chunk(
        stored: &Bytes,
        next: &mut usize,
        offset: u64,
        compression: Compression,
        codec: &Codec,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let rest = stored.get(*next..).unwrap_or_default();
        let mut chunks = Cursor::new(rest, offset + *next as u64);
        let before = out.len();
        codec.chunk(compression, &mut chunks, out)?;
        *next += rest.len() - chunks.remaining();
        let found = out.len() - before;
        // Writers fill every chunk but the last.
        if compression.strict && *next < stored.len() && found < compression.block_size {
            let message = format!("expected a chunk of {} bytes, found {found}", compression.block_size);
            return Err(Error::corrupt(message).at(offset + *next as u64));
        }
        Ok(())
    }

    /// Passes over `n` bytes that are at hand.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        if self.is_plain() {
            self.next = self.next.saturating_add(n).min(self.stored.len());
            return;
        }
        self.read = self.read.saturating_add(n).min(self.window.len());
        if self.read == self.window.len() && self.next >= self.stored.len() {
            self.window = Vec::new();
            self.read = 0;
        }
    }

    /// An error that says the stream is too short.
    #[cold]
    #[inline(never)]
    pub fn ended(&self, what: &str) -> Error {
        Error::corrupt(format!("expected {what}, found the end of the stream")).at(self.offset())
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        let Some(byte) = self.fill(1)?.first().copied() else { return Err(self.ended("a byte")) };
        self.consume(1);
        Ok(byte)
    }

    /// Appends the next `n` bytes to `out`.
    pub fn append(&mut self, mut n: usize, out: &mut Vec<u8>) -> Result<()> {
        while n > 0 {
            // A chunk that must fit goes straight where it belongs.
            let whole = !self.is_plain()
                && self.read == self.window.len()
                && n >= self.compression.block_size
                && self.next < self.stored.len();
            if whole {
                let before = out.len();
                Self::chunk(&self.stored, &mut self.next, self.offset, self.compression, &self.codec, out)?;
                n = n.saturating_sub(out.len() - before);
                continue;
            }
            let bytes = self.fill(1)?;
            let some = bytes.len().min(n);
            if some == 0 {
                return Err(self.ended(&format!("{n} bytes more")));
            }
            out.extend_from_slice(bytes.get(..some).unwrap_or_default());
            self.consume(some);
            n -= some;
        }
        Ok(())
    }

    /// Passes over `n` bytes.
    pub fn skip(&mut self, mut n: usize) -> Result<()> {
        while n > 0 {
            let some = self.fill(1)?.len().min(n);
            if some == 0 {
                return Err(self.ended(&format!("{n} bytes more")));
            }
            self.consume(some);
            n -= some;
        }
        Ok(())
    }

    /// Passes over whole chunks up to `stored` bytes from where it is now; used before anything was read.
    pub fn seek_chunk(&mut self, stored: usize) -> Result<()> {
        if stored > self.stored.len() {
            let message = format!("expected a position of at most {}, found {stored}", self.stored.len());
            return Err(Error::corrupt(message).at(self.offset()));
        }
        self.next = stored;
        Ok(())
    }

    /// Passes over `n` bytes of the chunk that [`Self::seek_chunk`] led to; it must have them.
    pub fn seek_byte(&mut self, n: usize) -> Result<()> {
        let found = if n == 0 { 0 } else { self.fill(1)?.len() };
        if n > found {
            let message = format!("expected a chunk of at least {n} bytes, found {found}");
            return Err(Error::corrupt(message).at(self.offset()));
        }
        self.consume(n);
        Ok(())
    }

    /// How many bytes there may be at most; for deciding whether a count is credible.
    pub fn most_left(&self) -> usize {
        let stored = self.stored.len().saturating_sub(self.next);
        if self.is_plain() {
            return stored;
        }
        let (mut rest, mut most) =
            (self.stored.get(self.next..).unwrap_or_default(), self.window.len() - self.read);
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER>() {
            let header = ChunkHeader::new(*header);
            most = most.saturating_add(if header.original {
                header.length
            } else {
                self.compression.block_size
            });
            rest = behind.get(header.length..).unwrap_or_default();
        }
        most
    }
}
