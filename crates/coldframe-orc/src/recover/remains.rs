//! Reads the remains of a tail whose end is lost: the statistics of stripes, and the footer. Each of the two
//! proves which stripes the file had.
//!
//! ```text
//! .. last stripe | metadata: field 1 for each stripe | footer: fields 1, 2, .. | postscript |
//!                | 0a ..  0a ..                      | 08 ..                   |     where the file may end at any byte
//! ```
//!
//! The lengths of both are only in the lost postscript. The fields of both are in order, so the fields show
//! where each of the two ends.

use coldframe_core::{Limits, ReadAt, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::{Algorithm, Decompressor};

use crate::layout::compression::Compression;
use crate::layout::proto::{self, ColumnStatistics, Footer, Metadata, StripeInformation};

/// Maximum number of bytes that are read.
const LONGEST: u64 = 16 << 20;
/// Wire types of a message's fields: a number, or bytes with their length.
const NUMBER: u8 = 0;
/// See [`NUMBER`].
const BYTES: u8 = 2;
/// The wire types of the fields of `Metadata`.
const METADATA: &[u8] = &[BYTES];
/// The wire types of the fields of `Footer`.
const FOOTER: &[u8] =
    &[NUMBER, NUMBER, BYTES, BYTES, BYTES, NUMBER, BYTES, NUMBER, NUMBER, BYTES, NUMBER, BYTES];

/// The decoded remains of a tail.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// The numbers of rows of the stripes, from the statistics that remain.
    pub(super) rows: Vec<u64>,
    /// Whether `rows` has all stripes: the footer begins after the statistics, or they are whole chunks.
    /// Without a codec, a file truncated between the statistics of two stripes looks as if it had no more
    /// stripes.
    pub(super) ended: bool,
    /// The stripes and the row count in the footer, if these fields remain.
    pub(super) listed: Option<(Vec<StripeInformation>, u64)>,
}

/// Reads the remains of the tail, which begins at `at`, in a file with `columns` columns. `rows` returns the
/// row count in the root's statistics. Parts that do not decode are lost.
pub(super) fn remains(
    source: &dyn ReadAt,
    at: u64,
    compression: Compression,
    columns: usize,
    rows: impl Fn(&ColumnStatistics) -> Option<u64>,
    limits: &Limits,
) -> Result<Remains> {
    let end = source.len().min(at.saturating_add(LONGEST.min(limits.max_metadata_bytes)));
    let stored = source.read(at..end)?;
    let content = match compression.algorithm {
        Algorithm::None => stored.to_vec(),
        _ => chunks(&stored, at, compression, limits, source.len()),
    };
    let mut left = parse(&content, columns, rows, limits, source.len()).unwrap_or_default();
    left.ended |= compression.algorithm != Algorithm::None;
    Ok(left)
}

/// The contents of all complete chunks.
fn chunks(stored: &[u8], at: u64, compression: Compression, limits: &Limits, file_len: u64) -> Vec<u8> {
    let (mut rest, mut codec, mut content) = (Cursor::new(stored, at), Decompressor::new(), Vec::new());
    while !rest.is_empty() && limits.decoded("a tail", 2 * content.len() as u64, file_len).is_ok() {
        let before = content.len();
        let chunk = compression.stored(&mut rest);
        if chunk.and_then(|chunk| compression.decompress(&mut codec, &chunk, &mut content)).is_err() {
            content.truncate(before);
            break;
        }
    }
    content
}

/// Parses the content of a tail; `None` if a message does not decode.
fn parse(
    content: &[u8],
    columns: usize,
    rows: impl Fn(&ColumnStatistics) -> Option<u64>,
    limits: &Limits,
    file_len: u64,
) -> Option<Remains> {
    let (metadata, behind) = content.split_at_checked(whole_fields(content, METADATA))?;
    let metadata: Metadata = proto::decode("metadata", metadata.to_vec(), limits, file_len).ok()?;
    let of_stripe = |stripe: &proto::StripeStatistics| {
        let root = stripe.col_stats.first().filter(|_| stripe.col_stats.len() == columns)?;
        rows(&proto::statistics(root)?)
    };
    let rows: Vec<u64> = metadata.stripe_stats.iter().map(of_stripe).collect::<Option<_>>()?;
    let footer = behind.get(..whole_fields(behind, FOOTER)).unwrap_or_default();
    let footer: Footer = proto::decode("footer", footer.to_vec(), limits, file_len).ok()?;
    let ended = footer.header_length.is_some() && footer.content_length.is_some();
    // The number of rows follows the stripes and the types: if it exists, no stripe is missing.
    let listed = footer.number_of_rows.filter(|_| ended && footer.types.len() == columns);
    Some(Remains { rows, ended, listed: listed.map(|rows| (footer.stripes, rows)) })
}

/// The total length of the complete fields, in order, at the start of `bytes`; `wires[n]` is the wire type of
/// field n + 1.
fn whole_fields(bytes: &[u8], wires: &[u8]) -> usize {
    let (mut at, mut last, mut length) = (Cursor::new(bytes, 0), 0, 0);
    while let Some(tag) = at.rest().first().copied() {
        let (field, wire) = (usize::from(tag >> 3), tag & 7);
        let known = field.checked_sub(1).and_then(|n| wires.get(n)) == Some(&wire);
        let in_order = field > last || (field == last && wire == BYTES);
        let whole = known && in_order && at.skip(1).is_ok() && {
            let number = at.uleb128();
            number.is_ok_and(|n| wire == NUMBER || usize::try_from(n).is_ok_and(|n| at.skip(n).is_ok()))
        };
        if !whole {
            break;
        }
        last = field;
        length = bytes.len() - at.remaining();
    }
    length
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use prost::Message;

    #[test]
    fn incomplete_and_unordered_fields_are_excluded() {
        let footer = Footer {
            header_length: Some(3),
            content_length: Some(1000),
            stripes: vec![StripeInformation { offset: Some(3), ..StripeInformation::default() }; 2],
            number_of_rows: Some(300),
            ..Footer::default()
        };
        let bytes = footer.encode_to_vec();
        assert_eq!(whole_fields(&bytes, FOOTER), bytes.len());
        // A postscript after the footer begins with field 1 again.
        assert_eq!(whole_fields(&[bytes.as_slice(), &[0x08, 1]].concat(), FOOTER), bytes.len());
        for cut in 0..bytes.len() {
            let whole = whole_fields(bytes.get(..cut).unwrap(), FOOTER);
            assert!(whole <= cut && Footer::decode(bytes.get(..whole).unwrap()).is_ok(), "{cut}");
        }
    }
}
