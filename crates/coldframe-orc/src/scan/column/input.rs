//! Opens the streams of a stripe where a row group begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coldframe_core::{Changes, Error, Limits, Result};

use super::Present;
use super::dictionary::Dictionaries;
use crate::layout::compression::Compression;
use crate::layout::index::{IndexPosition, Positions};
use crate::layout::proto::ColumnEncoding;
use crate::layout::quirks::Quirks;
use crate::layout::stripe::{StreamKind, StripeLayout};
use crate::layout::types::TypeTree;
use crate::scan::rle::bytes::{BitRle, ByteRle};
use crate::scan::rle::int::{IntRle, Version};
use crate::scan::stream::ByteStream;

/// Part of a stream, decrypted.
#[derive(Clone, Debug)]
pub(crate) struct StoredPart {
    /// The offset of the part in the stream.
    pub(crate) start: u64,
    /// The offset of the part in the file.
    pub(crate) offset: u64,
    /// The bytes of the part.
    pub(crate) bytes: Bytes,
}

/// The parts of streams that were fetched, by column and kind.
pub(crate) type StoredStreams = HashMap<(usize, StreamKind), Vec<StoredPart>>;

/// The size limit of a batch, for all columns together: the memory does not grow with their number.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    single_row: bool,
    pub(super) limits: Limits,
    batch_bytes: BatchBytes,
}

/// Number of bytes of variable-length values in the current batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchBytes(Arc<AtomicU64>);

impl BatchBytes {
    /// Starts the next batch.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The bytes so far.
    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds `bytes`; returns the sum.
    fn add(&self, bytes: u64) -> u64 {
        let add = |bytes_so_far: u64| Some(bytes_so_far.saturating_add(bytes));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        before.unwrap_or_default().saturating_add(bytes)
    }
}

impl Bound {
    /// Fails if the values of a batch take too many `bytes`; the caller then retries with fewer rows. `most`
    /// computes the maximum that the streams can decode to: a larger size is damage.
    pub(crate) fn check(&self, what: &'static str, bytes: u64, most: impl FnOnce() -> u64) -> Result<()> {
        // Damaged lengths do not count, so that the other columns of the batch are still read.
        let most = if bytes > self.limits.batch_bytes() { most() } else { u64::MAX };
        if bytes > most {
            return Err(Error::corrupt(format!("expected at most {most} bytes, found {what} of {bytes}")));
        }
        let together = self.batch_bytes.add(bytes);
        if self.single_row {
            // A batch has at least one row, so a longer row is an error.
            self.limits.block("a row", together)?;
            return self.limits.check_batch(what, 1, bytes);
        }
        if together <= self.limits.batch_bytes() {
            return Ok(());
        }
        Err(Error::batch_too_long(what, together))
    }

    /// The number of rows to report in that error: one if the batch has a single row, however many values it
    /// has.
    pub(crate) fn rows(&self, values: usize) -> usize {
        if self.single_row { 1 } else { values.max(2) }
    }
}

/// The input of column readers.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    /// The file's types.
    pub(crate) tree: &'a TypeTree,
    /// Counts values that decoding changes.
    pub(crate) changes: &'a Changes,
    /// The stripe's footer.
    pub(crate) layout: &'a StripeLayout,
    /// The fetched parts.
    pub(crate) streams: &'a StoredStreams,
    /// Where to begin; `None` for the stripe's start.
    pub(crate) positions: Option<&'a Positions>,
    /// The file's codec.
    pub(crate) compression: Compression,
    /// The dictionaries, shared by all readers of a column.
    pub(crate) dictionaries: &'a Dictionaries,
    /// Java's name of the writer's zone.
    pub(crate) timezone: Option<&'a str>,
    /// The name of the reader's zone, if timestamps are instants.
    pub(crate) timestamps_in: Option<&'a str>,
    /// The calendar, and how decimals are stored.
    pub(crate) quirks: Quirks,
    /// The limits on memory.
    pub(crate) limits: Limits,
    /// Number of rows of the stripe.
    pub(crate) rows: u64,
    /// Length of the file.
    pub(crate) file_len: u64,
    /// Whether batches have a single row, which is read however long its values are.
    pub(crate) single_row: bool,
    /// The current size of the batch.
    pub(crate) batch_bytes: &'a BatchBytes,
    /// Whether structs inside structs have values for their nulls, too: see [`crate::scan::superfluous`].
    pub(crate) superfluous: bool,
}

impl Input<'_> {
    /// A column's encoding.
    pub(crate) fn encoding(&self, column: usize) -> ColumnEncoding {
        self.layout.encoding(column)
    }

    /// The size limit of a batch; only a single row may exceed it.
    pub(crate) fn bound(&self) -> Bound {
        Bound { single_row: self.single_row, limits: self.limits, batch_bytes: self.batch_bytes.clone() }
    }

    /// The version of integer RLE in a column's encoding.
    pub(crate) fn version(&self, column: usize) -> Result<Version> {
        match self.encoding(column).kind() {
            0 | 1 => Ok(Version::V1),
            2 | 3 => Ok(Version::V2),
            other => Err(Error::unsupported(format!("ORC column encoding {other}"))),
        }
    }

    fn position(&self, column: usize, kind: StreamKind) -> IndexPosition {
        self.positions.map(|p| p.of(column, kind)).unwrap_or_default()
    }

    /// A stream from its start, which every row group needs; empty if the stripe has no such stream.
    pub(crate) fn whole(&self, column: usize, kind: StreamKind) -> Result<ByteStream> {
        self.open_at(column, kind, IndexPosition::default())
    }

    fn open_at(&self, column: usize, kind: StreamKind, position: IndexPosition) -> Result<ByteStream> {
        let parts = self.streams.get(&(column, kind)).map(Vec::as_slice).unwrap_or_default();
        // The last part that begins before the position: parts overlap only by the chunks after their last
        // row group.
        let behind = parts.partition_point(|p| p.start <= position.chunk);
        let part = parts.get(behind.wrapping_sub(1)).filter(|p| p.start <= position.chunk);
        let Some(part) = part else {
            if position != IndexPosition::default() {
                return Err(Error::corrupt(format!("expected a stream {}, found none", kind.name())));
            }
            return Ok(ByteStream::new(Bytes::new(), 0, self.compression));
        };
        let mut stream = ByteStream::new(part.bytes.clone(), part.offset, self.compression);
        let skip = |n: u64| {
            usize::try_from(n)
                .map_err(|_| Error::corrupt(format!("expected a position in memory, found {n}")))
        };
        stream.seek_chunk(skip(position.chunk - part.start)?)?;
        stream.seek_byte(skip(position.byte)?)?;
        Ok(stream)
    }

    /// A stream of plain bytes.
    pub(crate) fn bytes(&self, column: usize, kind: StreamKind) -> Result<ByteStream> {
        self.open_at(column, kind, self.position(column, kind)).map_err(|e| e.within(kind.name()))
    }

    /// A stream of integers.
    pub(crate) fn integers(
        &self,
        column: usize,
        kind: StreamKind,
        version: Version,
        signed: bool,
    ) -> Result<IntRle> {
        let mut rle = IntRle::new(self.bytes(column, kind)?, version, signed);
        rle.skip(self.run(column, kind)?).map_err(|e| e.within(kind.name()))?;
        Ok(rle)
    }

    /// A byte RLE stream.
    pub(crate) fn byte_runs(&self, column: usize, kind: StreamKind) -> Result<ByteRle> {
        let mut rle = ByteRle::new(self.bytes(column, kind)?);
        rle.skip(self.run(column, kind)?).map_err(|e| e.within(kind.name()))?;
        Ok(rle)
    }

    /// A stream of bits.
    pub(crate) fn bits(&self, column: usize, kind: StreamKind) -> Result<BitRle> {
        let mut rle = BitRle::new(self.bytes(column, kind)?);
        let bit = usize::try_from(self.position(column, kind).bit).unwrap_or(usize::MAX).min(8);
        rle.skip_position(self.run(column, kind)?, bit).map_err(|e| e.within(kind.name()))?;
        Ok(rle)
    }

    /// Number of values of the run before the row group: a run has at most 512 integers, or 130 bytes.
    fn run(&self, column: usize, kind: StreamKind) -> Result<usize> {
        let run = self.position(column, kind).run;
        usize::try_from(run).ok().filter(|n| *n <= 512).ok_or_else(|| {
            Error::corrupt(format!("expected a position in a run of at most 512 values, found {run}"))
        })
    }

    /// The nulls of a column.
    pub(super) fn present(&self, column: usize) -> Result<Present> {
        if self.layout.stream(column, StreamKind::Present).is_none() {
            return Ok(Present(None));
        }
        self.bits(column, StreamKind::Present).map(|bits| Present(Some(bits)))
    }
}
