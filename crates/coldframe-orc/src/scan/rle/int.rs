//! Decodes integer RLE: whole runs, directly into the target memory.
//!
//! ORC specification v1, "Integer Run Length Encoding, version 1" and "version 2". A run has at most 512
//! values; a run that extends past the batch is decoded into a buffer and returned from there.

mod v1;
mod v2;

use coldframe_encoding::bits::Unsigned;
use coldframe_encoding::varint::unzigzag;
use coldframe_encoding::{Error, Result};

use crate::layout::stripe::StreamKind;
use crate::scan::stream::{ByteStream, StreamPosition};

/// Maximum number of values of a run.
const MAX_RUN: usize = 512;

/// Memory for decoded integers, signed ones in two's complement, so that it becomes an array without a copy.
pub(crate) trait Word: Unsigned {
    /// `value`, or an error if it has more bits.
    fn from_signed(value: i64) -> Option<Self>;
    /// The signed number whose zigzag code this is.
    #[must_use]
    fn unzigzag(self) -> Self;
}

macro_rules! impl_word {
    ($($word:ty = $signed:ty;)*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn from_signed(value: i64) -> Option<Self> {
                <$signed>::try_from(value).ok().map(<$signed>::cast_unsigned)
            }

            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
        }
    )*};
}

impl_word! { u16 = i16; u32 = i32; u64 = i64; }

/// The version of the encoding in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version for `DIRECT` and `DICTIONARY`.
    V1,
    /// The version for `DIRECT_V2` and `DICTIONARY_V2`.
    V2,
}

/// Decodes integers.
#[derive(Debug)]
pub(crate) struct IntRle {
    stream: ByteStream,
    version: Version,
    signed: bool,
    /// Whether negative values may be stored as unsigned values of the same width.
    wraps: bool,
    /// The values of a run that extends past the request.
    pending: Vec<u64>,
    /// How many values of `pending` were returned.
    taken: usize,
    /// A pending run of one repeated value: the value, and how many remain.
    repeated: (i64, usize),
    /// Where the pending run begins, as [`ByteStream::at`] counts, and how many values it has; none if it is
    /// not the last that was decoded.
    run: (u64, usize),
    scratch: Vec<u64>,
}

/// How far whole runs were decoded.
struct Progress {
    /// Number of bytes of the decoded runs.
    used: usize,
    /// Number of their values.
    filled: usize,
    /// The error of the next run, if it fails.
    result: Result<()>,
}

impl IntRle {
    /// Creates a decoder at the start of a run.
    pub(crate) fn new(stream: ByteStream, version: Version, signed: bool) -> Self {
        let (pending, scratch) = (Vec::new(), Vec::new());
        let (taken, repeated, run) = (0, (0, 0), (0, 0));
        Self { stream, version, signed, wraps: false, pending, taken, repeated, run, scratch }
    }

    /// Takes values of a PATCHED_BASE run that only fit the unsigned type of the column's width as negative
    /// values, as cuDF stores them.
    pub(crate) fn wrapping(self, wraps: bool) -> Self {
        Self { wraps, ..self }
    }

    /// Fills `out`; values that exceed its type are an error.
    pub(crate) fn read<W: Word>(&mut self, mut out: &mut [W]) -> Result<()> {
        loop {
            let n = self.take_pending(out)?;
            out = out.get_mut(n..).unwrap_or_default();
            if out.is_empty() {
                return Ok(());
            }
            let n = self.runs(out)?;
            out = out.get_mut(n..).unwrap_or_default();
            if n == 0 {
                self.decode_pending()?;
            }
        }
    }

    /// Appends the next `n` values to `out`. Memory is zeroed shortly before its values are written, while it
    /// is in the cache.
    pub(crate) fn append<W: Word>(&mut self, n: usize, out: &mut Vec<W>) -> Result<()> {
        /// Number of values that are appended at a time.
        const STEP: usize = 4 * MAX_RUN;
        out.reserve(n);
        let end = out.len() + n;
        let mut filled = out.len();
        while filled < end {
            if end > out.len() && out.len() - filled < MAX_RUN {
                out.resize(end.min(out.len() + STEP), W::default());
            }
            let open = out.get_mut(filled..).unwrap_or_default();
            let mut n = self.take_pending(open)?;
            if n == 0 {
                n = self.runs(open)?;
            }
            if n == 0 {
                self.decode_pending()?;
            }
            filled += n;
        }
        Ok(())
    }

    /// Moves pending values to `out`; returns their number.
    fn take_pending<W: Word>(&mut self, out: &mut [W]) -> Result<usize> {
        let (value, left) = self.repeated;
        if left > 0 {
            let n = left.min(out.len());
            out.get_mut(..n).unwrap_or_default().fill(narrow(value)?);
            self.repeated.1 -= n;
            return Ok(n);
        }
        let buffered = self.pending.get(self.taken..).unwrap_or_default();
        let n = buffered.len().min(out.len());
        for (to, from) in out.iter_mut().zip(buffered) {
            *to = wrap(from.cast_signed(), self.wraps)?;
        }
        self.taken += n;
        Ok(n)
    }

    /// Decodes the next runs that are in the window and fit into `out`. Returns the number of values; 0 if
    /// the next run is too long.
    fn runs<W: Word>(&mut self, out: &mut [W]) -> Result<usize> {
        let Progress { used, filled, result } = match self.version {
            Version::V1 => v1::runs(self.stream.fill(v1::MAX_BYTES)?, self.signed, out),
            Version::V2 => {
                let signs = (self.signed, self.wraps);
                v2::runs(self.stream.fill(v2::MAX_BYTES)?, signs, &mut self.scratch, out)
            }
        };
        self.stream.consume(used);
        if filled > 0 {
            self.run = (0, 0);
        }
        result.map_err(|e| e.at(self.stream.offset())).map(|()| filled)
    }

    /// Decodes the next run into the pending values.
    fn decode_pending(&mut self) -> Result<()> {
        self.pending.clear();
        self.taken = 0;
        let begin = self.stream.at();
        let used = match self.version {
            Version::V1 => {
                let bytes = self.stream.fill(v1::MAX_BYTES)?;
                v1::head(bytes).and_then(|head| {
                    self.pending.resize(head.count, 0);
                    v1::run(bytes, head, self.signed, &mut self.pending)
                })
            }
            Version::V2 => {
                let bytes = self.stream.fill(v2::MAX_BYTES)?;
                v2::head(bytes).and_then(|head| {
                    if let Some((value, used)) = v2::repeated(bytes, head, self.signed)? {
                        self.repeated = (value, head.count());
                        return Ok(used);
                    }
                    self.pending.resize(head.count(), 0);
                    v2::run(bytes, head, (self.signed, self.wraps), &mut self.scratch, &mut self.pending)
                })
            }
        };
        match used {
            Ok(used) => {
                self.run = (begin, self.repeated.1.max(self.pending.len()));
                self.stream.consume(used);
                Ok(())
            }
            Err(e) => {
                self.pending.clear();
                Err(e.at(self.stream.offset()))
            }
        }
    }

    /// If the next values are one repeated value: takes at most `most` of them, and returns the value and
    /// their number. `None` otherwise.
    pub(crate) fn constant(&mut self, most: usize) -> Result<Option<(i64, usize)>> {
        if self.repeated.1 == 0 && self.taken >= self.pending.len() {
            self.decode_pending()?;
        }
        let n = self.repeated.1.min(most);
        self.repeated.1 -= n;
        Ok((n > 0).then_some((self.repeated.0, n)))
    }

    /// The largest of the remaining values, as far as they decode; at least 0.
    pub(crate) fn largest(mut self) -> i64 {
        let mut largest = 0;
        while self.stream.max_remaining() > 0 && self.decode_pending().is_ok() {
            let (value, repeated) = std::mem::take(&mut self.repeated);
            let of_run = self.pending.iter().map(|word| word.cast_signed()).max();
            largest = largest.max(of_run.unwrap_or(0)).max(if repeated > 0 { value } else { 0 });
        }
        largest
    }

    /// The most values that the rest of the stream can hold.
    pub(crate) fn most_left(&self) -> u64 {
        self.stream.max_remaining().saturating_mul(MAX_RUN) as u64
    }

    /// Its position.
    pub(crate) fn position(&self, kind: StreamKind) -> StreamPosition {
        let left = self.repeated.1 + (self.pending.len() - self.taken);
        let (begin, count) = self.run;
        let run = (count > 0).then(|| (begin, count.saturating_sub(left)));
        StreamPosition { left: (left, 0), ..self.stream.position(kind, run) }
    }

    /// Skips `n` values.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<()> {
        while n > 0 {
            let is_between = self.repeated.1 == 0 && self.taken >= self.pending.len();
            if is_between && self.version == Version::V2 {
                let (passed, used) = v2::passed(self.stream.fill(v2::MAX_BYTES)?, n);
                self.stream.consume(used);
                if passed > 0 {
                    self.run = (0, 0);
                    n -= passed;
                    continue;
                }
            }
            if self.constant(n)?.is_some_and(|(_, passed)| {
                n -= passed;
                true
            }) {
                continue;
            }
            let some = (self.pending.len() - self.taken).min(n);
            self.taken += some;
            n -= some;
        }
        Ok(())
    }
}

#[inline]
fn narrow<W: Word>(value: i64) -> Result<W> {
    W::from_signed(value).ok_or_else(|| too_wide::<W>(value))
}

/// `value`, or with `wraps` the negative value whose bits it has.
#[inline]
fn wrap<W: Word>(value: i64, wraps: bool) -> Result<W> {
    W::from_signed(value).map_or_else(|| wrapped(value, wraps), Ok)
}

#[cold]
#[inline(never)]
fn wrapped<W: Word>(value: i64, wraps: bool) -> Result<W> {
    let bits = value.cast_unsigned();
    if wraps && bits.checked_shr(W::BITS).unwrap_or(0) == 0 {
        Ok(W::from_low_bits(bits))
    } else {
        Err(too_wide::<W>(value))
    }
}

#[cold]
#[inline(never)]
fn too_wide<W: Word>(value: i64) -> Error {
    Error::corrupt(format!("expected an integer of {} bits, found {value}", W::BITS))
}

#[cold]
#[inline(never)]
fn short() -> Error {
    Error::corrupt("expected a run of integers, found the end of the stream")
}

/// A varint of at most 64 bits at the front of `bytes`, and its length.
#[inline(always)]
fn varint(bytes: &[u8]) -> Result<(u64, usize)> {
    match crate::scan::varint::short(bytes) {
        Some(decoded) => Ok(decoded),
        None => long_varint(bytes),
    }
}

#[cold]
#[inline(never)]
fn long_varint(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(short())
}

/// Like [`varint`], but signed if the stream is.
#[inline(always)]
fn signed_varint(bytes: &[u8], signed: bool) -> Result<(i64, usize)> {
    let (value, used) = varint(bytes)?;
    Ok((if signed { unzigzag(value) } else { value.cast_signed() }, used))
}

#[cfg(test)]
mod tests;
