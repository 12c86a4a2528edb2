//! Reads row indexes: the positions of row groups in the streams of a column.
//!
//! ```text
//! ROW_INDEX stream = RowIndex { one entry a row group: positions, statistics }
//! positions        = of each stream of the column in turn: [chunk] byte [value in the run] [bit]
//! ```
//!
//! ORC specification v1, "Row Index". Only files with a codec have the number of the chunk; streams of plain
//! bytes have no position in a run, and only streams of bits have a position in a byte. A stream that the
//! stripe lacks has no numbers.

use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::{Error, Result};

use super::compression::Compression;
use super::proto;
use super::stripe::{StreamKind, StripeLayout};
use super::types::{Column, Kind};

/// Where a row group begins in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexPosition {
    /// Number of stored bytes before its chunk; without a codec, before the row group.
    pub(crate) chunk: u64,
    /// Number of bytes before the row group in the chunk.
    pub(crate) byte: u64,
    /// Number of values before the row group in the run.
    pub(crate) run: u64,
    /// Number of bits before the row group in the byte.
    pub(crate) bit: u64,
}

/// Where a row group begins in the streams of all columns that are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Vec<((usize, StreamKind), IndexPosition)>);

impl Positions {
    /// The positions of these streams; each stream occurs once.
    pub(crate) fn new(mut all: Vec<((usize, StreamKind), IndexPosition)>) -> Self {
        all.sort_unstable_by_key(|(stream, _)| *stream);
        Self(all)
    }

    /// Where the row group begins in a stream; the start of the stream if it is unknown.
    pub(crate) fn of(&self, column: usize, kind: StreamKind) -> IndexPosition {
        let index = self.0.binary_search_by_key(&(column, kind), |(stream, _)| *stream);
        index.ok().and_then(|at| self.0.get(at)).map(|(_, position)| *position).unwrap_or_default()
    }
}

/// The streams of a column that have positions, in the order of the numbers. The flags state whether the
/// index has a number for the run, and whether it has a number for the bit.
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
pub(crate) fn is_dictionary(encoding: &proto::ColumnEncoding) -> bool {
    matches!(encoding.kind(), 1 | 3)
}

/// Where a row group of a column begins in each of its streams.
pub(crate) fn positions(
    column: &Column,
    layout: &StripeLayout,
    compression: Compression,
    short_decimals: bool,
    numbers: &[u64],
) -> Result<Vec<(StreamKind, IndexPosition)>> {
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
    let mut positions = Vec::with_capacity(3);
    for (kind, run, bit) in streams {
        let mut position = IndexPosition { chunk: next()?, ..IndexPosition::default() };
        if !plain {
            position.byte = next()?;
        }
        if *run {
            position.run = next()?;
        }
        if *bit {
            position.bit = next()?;
        }
        positions.push((*kind, position));
    }
    Ok(positions)
}
