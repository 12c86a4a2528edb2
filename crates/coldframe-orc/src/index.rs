//! Row indexes: where row groups begin in the streams of a column.
//!
//! ```text
//! ROW_INDEX stream = RowIndex { one entry a row group: positions, statistics }
//! positions        = of each stream of the column in turn: [chunk] byte [value in the run] [bit]
//! ```
//!
//! ORC specification v1, "Row Index". The number of the chunk's place is only there in files with a codec; streams of plain
//! bytes have no place in a run, only bits have one in a byte. A stream that the stripe does not have has no numbers.

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::codec::{Algorithm, Decompressor};
use prost::Message;

use crate::compression::Compression;
use crate::encryption::Encryption;
use crate::proto;
use crate::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};
use crate::types::{Column, Kind};

/// Where a row group begins in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPosition {
    /// Stored bytes in front of its chunk; of itself without a codec.
    pub chunk: u64,
    /// Bytes in front of it in the chunk.
    pub byte: u64,
    /// Values in front of it in the run.
    pub run: u64,
    /// Bits in front of it in the byte.
    pub bit: u64,
}

/// Where a row group begins in the streams of all columns that are read.
#[derive(Clone, Debug, Default)]
pub struct Positions(Vec<((usize, StreamKind), StreamPosition)>);

impl Positions {
    /// Of streams, each of which is there once.
    pub fn new(mut all: Vec<((usize, StreamKind), StreamPosition)>) -> Self {
        all.sort_unstable_by_key(|(stream, _)| *stream);
        Self(all)
    }

    /// Where it begins in a stream; at the start of one that is not known.
    pub fn of(&self, column: usize, kind: StreamKind) -> StreamPosition {
        let found = self.0.binary_search_by_key(&(column, kind), |(stream, _)| *stream);
        found.ok().and_then(|at| self.0.get(at)).map(|(_, position)| *position).unwrap_or_default()
    }
}

/// What is needed to read index streams of a file.
#[derive(Clone, Copy, Debug)]
pub struct IndexReader<'a> {
    /// The file.
    pub source: &'a dyn ReadAt,
    /// Its codec.
    pub compression: Compression,
    /// Its keys.
    pub encryption: &'a Encryption,
    /// Bounds.
    pub limits: &'a Limits,
}

impl IndexReader<'_> {
    /// The messages of some streams of a stripe, read together.
    pub fn read<M: Message + Default>(&self, stripe: &Stripe, places: &[&StreamPlace]) -> Result<Vec<M>> {
        let ranges: Vec<_> = places.iter().map(|p| p.bytes.clone()).collect();
        for range in &ranges {
            self.limits.metadata("an index", range.end - range.start).at(range.start)?;
        }
        let stored = coldframe_core::io::read_coalesced(self.source, &ranges)?;
        let mut codec = Decompressor::new();
        let message = |(place, stored): (&&StreamPlace, bytes::Bytes)| {
            let stored = decrypt(stored, place, 0, stripe, self.encryption)?;
            let bytes = self.compression.message(&mut codec, &stored, place.bytes.start, self.limits)?;
            proto::decode("index", &bytes).at(place.bytes.start)
        };
        places.iter().zip(stored).map(message).collect::<Result<_>>().map_err(|e| e.within(stripe.name()))
    }

    /// The row indexes of `columns`, or what `M` has of them; nothing for one that has none.
    pub fn row_indexes<M: Message + Default>(
        &self,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
    ) -> Result<Vec<Option<M>>> {
        let place =
            |column: &usize| layout.stream(*column, StreamKind::RowIndex).filter(|p| !p.bytes.is_empty());
        let places: Vec<_> = columns.iter().filter_map(place).collect();
        let mut found = self.read(stripe, &places)?.into_iter();
        Ok(columns.iter().map(|c| place(c).and_then(|_| found.next())).collect())
    }
}

/// The bytes of a stream as they were before encryption; `start` is the place of `stored` in the stream.
pub fn decrypt(
    stored: bytes::Bytes,
    place: &StreamPlace,
    start: u64,
    stripe: &Stripe,
    encryption: &Encryption,
) -> Result<bytes::Bytes> {
    let Some(variant) = place.variant else { return Ok(stored) };
    let key =
        encryption.stream_key(variant, stripe.number, stripe.encryption_number, place.column, place.kind)?;
    let mut plain = stored.to_vec();
    key.decrypt(start, &mut plain)?;
    Ok(plain.into())
}

/// The streams of a column that have positions, in the order of the numbers; for each whether there is a number for the run,
/// and one for the bit.
fn order(column: &Column, dictionary: bool, short_decimals: bool) -> &'static [(StreamKind, bool, bool)] {
    use StreamKind::{Data, Length, Secondary};
    match column.kind {
        Kind::Boolean => &[(Data, true, true)],
        Kind::Byte | Kind::Short | Kind::Int | Kind::Long | Kind::Date | Kind::Union => {
            &[(Data, true, false)]
        }
        Kind::Float | Kind::Double => &[(Data, false, false)],
        Kind::String | Kind::Varchar | Kind::Char if dictionary => &[(Data, true, false)],
        Kind::String | Kind::Varchar | Kind::Char | Kind::Binary | Kind::Geometry | Kind::Geography => {
            &[(Data, false, false), (Length, true, false)]
        }
        Kind::Timestamp | Kind::TimestampInstant => &[(Data, true, false), (Secondary, true, false)],
        Kind::Decimal if short_decimals && (1..=18).contains(&column.precision) => &[(Data, true, false)],
        Kind::Decimal => &[(Data, false, false), (Secondary, true, false)],
        Kind::List | Kind::Map => &[(Length, true, false)],
        Kind::Struct => &[],
    }
}

/// Whether an encoding has a dictionary.
pub fn is_dictionary(encoding: &proto::ColumnEncoding) -> bool {
    matches!(encoding.kind(), 1 | 3)
}

/// Where a row group of a column begins in each of its streams.
pub fn positions(
    column: &Column,
    layout: &StripeLayout,
    compression: Compression,
    short_decimals: bool,
    numbers: &[u64],
) -> Result<Vec<(StreamKind, StreamPosition)>> {
    let plain = compression.algorithm == Algorithm::None;
    let dictionary = is_dictionary(&layout.encoding(column.id));
    let present = layout.stream(column.id, StreamKind::Present).map(|_| (StreamKind::Present, true, true));
    let streams = present.iter().chain(order(column, dictionary, short_decimals));
    let mut numbers = numbers.iter().copied();
    let mut next = || {
        numbers.next().ok_or_else(|| {
            let message = format!("expected positions of all streams of column {}, found fewer", column.id);
            Error::corrupt(message).within("row index")
        })
    };
    let mut found = Vec::with_capacity(3);
    for (kind, run, bit) in streams {
        let mut position = StreamPosition { chunk: next()?, ..StreamPosition::default() };
        if !plain {
            position.byte = next()?;
        }
        if *run {
            position.run = next()?;
        }
        if *bit {
            position.bit = next()?;
        }
        found.push((*kind, position));
    }
    Ok(found)
}
