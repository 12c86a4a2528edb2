//! Decompresses the bytes of one stream on demand, chunk by chunk.
//!
//! ```text
//! stored    | chunk | chunk | original chunk | chunk |     bytes of the file, all in memory
//! window            [ rest | chunk ]                       decompressed: one chunk, and the rest of the previous one
//! plain                       [ original chunk ]           a range of the stored bytes, without a copy
//! seam      [ rest of a chunk | first bytes of plain ]     a run that reaches from a window into plain
//! ```
//!
//! A run of values may begin in one chunk and end in the next: [`ByteStream::fill`] moves the rest of the window to its
//! front and decompresses after it, so decoders see whole runs. Without a codec the whole stream is one plain chunk. A
//! stream uses memory for about one chunk.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use coldframe_core::io::LONG;
use coldframe_encoding::codec::{Algorithm, with_decompressor};
use coldframe_encoding::{Cursor, Error, Result};

use crate::layout::compression::{Chunk, ChunkHeader, Compression, HEADER};
use crate::layout::index::IndexPosition;
use crate::layout::stripe::StreamKind;

/// The structure of errors of a chunk: its header, its decompression, its length. All content before the
/// error is sound.
const CHUNK: &str = "chunk";

/// Whether a chunk cannot be opened, so that the values before it are sound.
pub(crate) fn is_of_chunk(e: &Error) -> bool {
    e.structure().ends_with(CHUNK)
}

/// Shared values keep at most this many times their length in memory.
const FEW: u64 = 16;

/// The longest form that a codec gives to no bytes.
const EMPTY_CHUNK: usize = 32;
/// The chunk's offset in the file, and an offset in its content. The place after a chunk's last byte is the
/// start of the next chunk.
pub(crate) type Place = (u64, u64);

/// How many bytes of content before the unread bytes have a known place: more than the longest run takes.
const PLACED: u64 = 8192;

/// The position of a reader in a stream, comparable between readers that were opened at different positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPosition {
    /// The column; its reader fills it in.
    pub(crate) column: Option<usize>,
    /// The kind of the stream.
    pub(crate) kind: StreamKind,
    /// The place of the next byte.
    pub(crate) place: Place,
    /// The rest of the current run: values, and bits of a byte.
    pub(crate) left: (usize, u32),
    /// Where the current run begins, and how many of its values were returned.
    pub(crate) run: Option<(Place, usize)>,
    /// Whether more bytes follow.
    pub(crate) more: bool,
}

impl StreamPosition {
    /// Whether both readers return the same value next.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        (self.kind, self.place, self.left) == (other.kind, other.place, other.left)
    }

    /// Whether no value remains, apart from the remaining bits of a byte.
    pub(crate) fn is_at_end(&self) -> bool {
        !self.more && self.left.0 == 0
    }

    /// Whether the reader is at the position that an index states, compared in the form of the index; `start`
    /// is the offset of the stream in the file. An index may also name the same position by an earlier run or
    /// the end of a chunk, which only a reader that is opened there shows.
    pub(crate) fn is_at(&self, index: &IndexPosition, start: u64, plain: bool) -> bool {
        let chunk = start.saturating_add(index.chunk);
        let place = if plain { (chunk, 0) } else { (chunk, index.byte) };
        let bits = if self.left.1 > 0 { 8 - u64::from(self.left.1) } else { 0 };
        let is_whole = self.left.0 == 0 && bits == 0;
        match self.run {
            _ if index.run == 0 && index.bit == 0 && is_whole => self.place == place,
            // The byte whose bits are being returned counts as returned.
            Some((begin, taken)) => {
                let taken = (taken as u64).checked_sub(u64::from(bits > 0));
                begin == place && taken == Some(index.run) && bits == index.bit
            }
            None => false,
        }
    }
}

/// Decompressed bytes. The memory keeps its largest size, so it is zeroed only once.
#[derive(Debug, Default)]
struct Window {
    memory: Vec<u8>,
    /// The unread part.
    left: Range<usize>,
}

impl Window {
    #[inline(always)]
    fn len(&self) -> usize {
        self.left.len()
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.memory.get(self.left.clone()).unwrap_or_default()
    }

    #[inline(always)]
    fn consume(&mut self, n: usize) {
        self.left.start = self.left.start.saturating_add(n).min(self.left.end);
    }

    /// Moves the unread part to the front.
    fn compact(&mut self) {
        self.memory.copy_within(self.left.clone(), 0);
        self.left = 0..self.left.len();
    }

    fn extend(&mut self, bytes: &[u8]) {
        let end = self.left.end.saturating_add(bytes.len());
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        self.memory.get_mut(self.left.end..end).unwrap_or_default().copy_from_slice(bytes);
        self.left.end = end;
    }
}

/// One stream, read from front to back: the rest of the window, then the plain bytes, then the chunks from `next` on.
#[derive(Debug)]
pub(crate) struct ByteStream {
    stored: Bytes,
    /// The offset in `stored` of the next chunk's header.
    next: usize,
    /// The offset of `stored` in the file.
    offset: u64,
    compression: Compression,
    window: Window,
    /// The rest of an uncompressed chunk, in `stored`.
    plain: Range<usize>,
    /// How many bytes at the window's end are copies of the bytes before `plain`.
    seam: usize,
    /// Number of bytes of content opened so far.
    opened: u64,
    /// The chunks whose content is in memory or shortly before it: their offsets in the file, and the bytes of
    /// content before them.
    chunks: VecDeque<(u64, u64)>,
}

impl ByteStream {
    /// Creates a stream of `stored`, which begins with a chunk at `offset` of the file.
    pub(crate) fn new(stored: Bytes, offset: u64, compression: Compression) -> Self {
        let (next, plain) = match compression.algorithm {
            Algorithm::None => (stored.len(), 0..stored.len()),
            _ => (0, 0..0),
        };
        Self {
            stored,
            next,
            offset,
            compression,
            window: Window::default(),
            plain,
            seam: 0,
            opened: 0,
            chunks: VecDeque::new(),
        }
    }

    /// The offset of the next chunk in the file, or of the next byte in a plain stream.
    pub(crate) fn offset(&self) -> u64 {
        let at = if self.plain.is_empty() { self.next } else { self.plain.start };
        self.offset + at as u64
    }

    /// The decompressed bytes in memory.
    #[inline]
    pub(crate) fn buffered(&self) -> &[u8] {
        if self.window.len() > 0 {
            self.window.bytes()
        } else {
            self.stored.get(self.plain.clone()).unwrap_or_default()
        }
    }

    /// Makes `want` bytes available, or fewer at the stream's end.
    #[inline]
    pub(crate) fn fill(&mut self, want: usize) -> Result<&[u8]> {
        if self.buffered().len() < want {
            self.refill(want)?;
        }
        Ok(self.buffered())
    }

    fn refill(&mut self, want: usize) -> Result<()> {
        loop {
            let rest = self.window.len();
            let available = if rest > 0 { rest } else { self.plain.len() };
            let nothing_behind = self.next >= self.stored.len() && (rest == 0 || self.plain.is_empty());
            if available >= want || nothing_behind {
                return Ok(());
            }
            self.window.compact();
            if self.plain.is_empty() {
                self.next_chunk()?;
                continue;
            }
            // The seam is as long as the wanted bytes: once all bytes before it are consumed, reading
            // continues in the plain chunk itself.
            let n = self.plain.len().min(want);
            let seam = self.plain.start..self.plain.start + n;
            self.plain.start = seam.end;
            self.window.extend(self.stored.get(seam).unwrap_or_default());
            self.seam += n;
        }
    }

    /// Number of decompressed bytes in memory.
    fn buffered_len(&self) -> usize {
        self.window.len() + self.plain.len()
    }

    /// The number of bytes of content before the next byte, since the stream was opened.
    #[inline]
    pub(crate) fn at(&self) -> u64 {
        match self.compression.algorithm {
            Algorithm::None => (self.stored.len() as u64).saturating_sub(self.buffered_len() as u64),
            _ => self.opened.saturating_sub(self.buffered_len() as u64),
        }
    }

    /// The place of the byte with `at` bytes of content before it: the next byte, or a byte shortly before
    /// it.
    fn place(&self, at: u64) -> Place {
        match self.compression.algorithm {
            Algorithm::None => (self.offset + at, 0),
            _ => {
                let chunk = self.chunks.iter().rev().find(|(_, before)| *before <= at);
                let chunk = chunk.filter(|_| at < self.opened);
                chunk.map_or((self.offset + self.next as u64, 0), |(start, before)| (*start, at - before))
            }
        }
    }

    /// The reader's position; `run` is where the current run begins, as [`Self::at`] counts, and how many of
    /// its values were returned.
    pub(crate) fn position(&self, kind: StreamKind, run: Option<(u64, usize)>) -> StreamPosition {
        let more = self.buffered_len() > 0 || self.has_content(self.next);
        let run = run.map(|(begin, taken)| (self.place(begin), taken));
        StreamPosition { column: None, kind, place: self.place(self.at()), left: (0, 0), run, more }
    }

    /// Whether a chunk from `at` on has content. cuDF stores a stream without values as a chunk of no bytes.
    fn has_content(&self, mut at: usize) -> bool {
        while at < self.stored.len() {
            let Ok((chunk, end)) = Self::chunk(&self.stored, at, self.offset, self.compression) else {
                return true;
            };
            let is_empty = chunk.bytes.is_empty()
                || (!chunk.original && chunk.bytes.len() <= EMPTY_CHUNK && self.is_empty(&chunk));
            if !is_empty {
                return true;
            }
            at = end;
        }
        false
    }

    fn is_empty(&self, chunk: &Chunk<'_>) -> bool {
        let mut content = Vec::new();
        let compression = self.compression;
        with_decompressor(|codec| compression.decompress(codec, chunk, &mut content))
            .is_ok_and(|()| content.is_empty())
    }

    /// Records that the chunk at [`Self::next`] is opened, with `length` bytes of content.
    fn note_chunk(&mut self, length: usize) {
        let at = self.opened.saturating_sub(self.buffered_len().saturating_sub(length) as u64);
        while self.chunks.get(1).is_some_and(|(_, before)| before.saturating_add(PLACED) <= at) {
            self.chunks.pop_front();
        }
        self.chunks.push_back((self.offset + self.next as u64, self.opened));
        self.opened = self.opened.saturating_add(length as u64);
    }

    /// Opens the next chunk after the window: as a plain chunk, or decompressed.
    fn next_chunk(&mut self) -> Result<()> {
        self.open_chunk().map_err(|e| e.within(CHUNK))
    }

    fn open_chunk(&mut self) -> Result<()> {
        self.seam = 0;
        let (chunk, end) = Self::chunk(&self.stored, self.next, self.offset, self.compression)?;
        if chunk.original {
            self.check_full(chunk.bytes.len(), end)?;
            let length = chunk.bytes.len();
            self.plain = end - length..end;
            self.note_chunk(length);
        } else {
            let (compression, at) = (self.compression, self.window.left.end);
            let memory = &mut self.window.memory;
            let length = with_decompressor(|codec| compression.decompress_over(codec, &chunk, memory, at))?;
            self.window.left.end += length;
            self.check_full(length, end)?;
            self.note_chunk(length);
        }
        self.next = end;
        Ok(())
    }

    /// Appends the content of the next chunk to `out`; returns where the chunk ends.
    fn append_chunk(&self, out: &mut Vec<u8>) -> Result<usize> {
        let (chunk, end) = Self::chunk(&self.stored, self.next, self.offset, self.compression)?;
        let (before, compression) = (out.len(), self.compression);
        with_decompressor(|codec| compression.decompress(codec, &chunk, out))?;
        self.check_full(out.len() - before, end)?;
        Ok(end)
    }

    /// The chunk whose header is at `at`, and where it ends.
    fn chunk(stored: &Bytes, at: usize, offset: u64, compression: Compression) -> Result<(Chunk<'_>, usize)> {
        let mut chunks = Cursor::new(stored.get(at..).unwrap_or_default(), offset + at as u64);
        let chunk = compression.stored(&mut chunks)?;
        Ok((chunk, stored.len() - chunks.remaining()))
    }

    /// An error if the chunk is not full: writers fill every chunk except the last.
    fn check_full(&self, length: usize, end: usize) -> Result<()> {
        if self.compression.strict && end < self.stored.len() && length < self.compression.block_size {
            let message =
                format!("expected a chunk of {} bytes, found {length}", self.compression.block_size);
            return Err(Error::corrupt(message).at(self.offset + end as u64));
        }
        Ok(())
    }

    /// Skips `n` bytes that are in memory.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        if self.window.len() == 0 {
            self.plain.start = self.plain.start.saturating_add(n).min(self.plain.end);
            return;
        }
        self.window.consume(n);
        if self.window.len() <= self.seam {
            self.leave_window();
        }
    }

    /// Returns the rest of the window to `plain`, which it precedes.
    fn leave_window(&mut self) {
        self.plain.start -= self.window.len();
        self.seam = 0;
        self.window.left = 0..0;
        if self.next >= self.stored.len() {
            self.window = Window::default();
        }
    }

    /// The error for a stream that is too short.
    #[cold]
    #[inline(never)]
    pub(crate) fn ended(&self, what: &str) -> Error {
        Error::corrupt(format!("expected {what}, found the end of the stream")).at(self.offset())
    }

    /// The next byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        let Some(byte) = self.fill(1)?.first().copied() else { return Err(self.ended("a byte")) };
        self.consume(1);
        Ok(byte)
    }

    /// Appends the next `n` bytes to `out`.
    pub(crate) fn append(&mut self, mut n: usize, out: &mut Vec<u8>) -> Result<()> {
        while n > 0 {
            // A chunk that is certain to fit is decompressed directly into its place.
            if n >= self.compression.block_size && self.next < self.stored.len() && self.buffered().is_empty()
            {
                let before = out.len();
                let end = self.append_chunk(out).map_err(|e| e.within(CHUNK))?;
                self.chunks.clear();
                self.opened = self.opened.saturating_add((out.len() - before) as u64);
                self.next = end;
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

    /// The next `n` bytes, which must exist.
    pub(crate) fn take(&mut self, n: u64) -> Result<Vec<u8>> {
        let most = self.max_remaining();
        let Some(n) = usize::try_from(n).ok().filter(|n| *n <= most) else {
            return Err(Error::corrupt(format!("expected {n} bytes, found at most {most}")).at(self.offset()));
        };
        let mut out = Vec::with_capacity(n);
        self.append(n, &mut out)?;
        Ok(out)
    }

    /// The next `n` bytes, which must exist: shared if they are in one plain chunk, otherwise copied.
    pub(crate) fn share(&mut self, n: u64) -> Result<Bytes> {
        let plain = self.plain.clone();
        match usize::try_from(n).ok().filter(|n| self.window.len() == 0 && *n <= plain.len()) {
            Some(n) => {
                self.consume(n);
                Ok(self.stored.slice(plain.start..plain.start + n))
            }
            None => self.take(n).map(Bytes::from),
        }
    }

    /// Like [`Self::share`] for a large part of a long stream. Other values are copied: a short value would
    /// keep many other bytes in memory.
    pub(crate) fn share_much(&mut self, n: u64) -> Result<Bytes> {
        let all = self.stored.len() as u64;
        if all > LONG && n >= all / FEW { self.share(n) } else { self.take(n).map(Bytes::from) }
    }

    /// Skips `n` bytes.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<()> {
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

    /// Skips whole chunks, `stored` bytes in total. Must be called before any read.
    pub(crate) fn seek_chunk(&mut self, stored: usize) -> Result<()> {
        if stored > self.stored.len() {
            let message = format!("expected a position of at most {}, found {stored}", self.stored.len());
            return Err(Error::corrupt(message).at(self.offset()));
        }
        match self.compression.algorithm {
            Algorithm::None => self.plain.start = stored,
            _ => self.next = stored,
        }
        Ok(())
    }

    /// Skips `n` bytes of content in the chunk after [`Self::seek_chunk`]; it must have them.
    pub(crate) fn seek_byte(&mut self, n: usize) -> Result<()> {
        let length = if n == 0 { 0 } else { self.fill(1)?.len() };
        if n > length {
            let message = format!("expected a chunk of at least {n} bytes, found {length}");
            return Err(Error::corrupt(message).at(self.offset()));
        }
        self.consume(n);
        Ok(())
    }

    /// The maximum number of remaining bytes, to check whether a count is plausible.
    pub(crate) fn max_remaining(&self) -> usize {
        let mut most = self.buffered_len();
        let mut rest = self.stored.get(self.next..).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::codec::Compressor;
    use proptest::prelude::*;

    /// `content` in chunks of `block` bytes; `compressed` selects the chunks to compress.
    fn stored(content: &[u8], block: usize, compressed: &[bool]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, chunk) in content.chunks(block).enumerate() {
            let mut bytes = chunk.to_vec();
            let original = !compressed[i % compressed.len()];
            if !original {
                bytes.clear();
                Compressor::new().compress(Algorithm::Snappy, None, chunk, &mut bytes).unwrap();
            }
            let header = u32::try_from(bytes.len()).unwrap() << 1 | u32::from(original);
            out.extend_from_slice(&header.to_le_bytes()[..HEADER]);
            out.extend_from_slice(&bytes);
        }
        out
    }

    #[test]
    fn few_values_do_not_keep_a_stream_in_memory() {
        let compression = Compression { algorithm: Algorithm::None, block_size: 0, strict: true };
        let long = Bytes::from(vec![7; usize::try_from(LONG).unwrap() + 1]);
        let much = LONG / 2;
        for (stored, n, stays) in
            [(long.clone(), much, true), (long.clone(), 9, false), (long.slice(1..), much, false)]
        {
            let mut stream = ByteStream::new(stored.clone(), 0, compression);
            let shared = stream.share_much(n).unwrap();
            assert_eq!((shared.len() as u64, shared.as_ptr() == stored.as_ptr()), (n, stays));
            assert!(stream.share_much(LONG).is_err());
            assert_eq!(stream.share_much(1).unwrap(), [7][..]);
        }
    }

    #[test]
    fn a_stream_of_empty_chunks_has_no_values() {
        let compression = Compression { algorithm: Algorithm::Snappy, block_size: 64, strict: true };
        let ends = |bytes: &[u8]| {
            let stream = ByteStream::new(Bytes::copy_from_slice(bytes), 0, compression);
            stream.position(StreamKind::Data, None).is_at_end()
        };
        // No chunk, a stored chunk of no bytes, a compressed chunk, and two compressed chunks.
        let empty: [&[u8]; 4] = [&[], &[1, 0, 0], &[2, 0, 0, 0], &[1, 0, 0, 2, 0, 0, 0]];
        assert!(empty.into_iter().all(ends));
        // A stored chunk of one byte, a compressed chunk, and a chunk that is cut short.
        let others: [&[u8]; 4] = [&[3, 0, 0, 7], &[6, 0, 0, 1, 0, 7], &[1, 0, 0, 3, 0, 0, 7], &[4, 0, 0, 1]];
        assert!(!others.into_iter().any(ends));
    }

    proptest! {
        /// For any chunks and steps, each byte is returned once and in order.
        #[test]
        fn steps_of_any_size_return_each_byte_once(
            content in proptest::collection::vec(any::<u8>(), 0..600),
            block in 1usize..70,
            compressed in proptest::collection::vec(any::<bool>(), 1..6),
            steps in proptest::collection::vec((0usize..100, 0usize..100, any::<bool>()), 1..60),
            plain in any::<bool>(),
        ) {
            let algorithm = if plain { Algorithm::None } else { Algorithm::Snappy };
            let block_size = if plain { 0 } else { block };
            let compression = Compression { algorithm, block_size, strict: true };
            let bytes = if plain { content.clone() } else { stored(&content, block, &compressed) };
            let mut stream = ByteStream::new(bytes.into(), 0, compression);
            let mut read = Vec::new();
            for (want, take, append) in steps {
                let left = content.len() - read.len();
                prop_assert!(stream.max_remaining() >= left);
                if append {
                    stream.append(take.min(left), &mut read).unwrap();
                    continue;
                }
                let bytes = stream.fill(want).unwrap();
                prop_assert!(bytes.len() >= want.min(left));
                let n = take.min(bytes.len());
                read.extend_from_slice(&bytes[..n]);
                stream.consume(n);
            }
            stream.append(content.len() - read.len(), &mut read).unwrap();
            prop_assert_eq!(read, content);
            prop_assert!(stream.fill(1).unwrap().is_empty());
        }
    }
}
