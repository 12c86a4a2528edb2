//! Decodes messages, after a check of the memory that they will take.
//!
//! An empty message in a list takes two bytes in a file and hundreds in memory. [`Shaped`] declares for each
//! message of the parent module which fields are messages themselves (ORC specification v1, "File Tail",
//! `orc_proto.proto`).

use coldframe_encoding::limits::message::{Shape, Shaped, check};
use coldframe_encoding::{Error, Limits, Result};
use prost::Message;
use prost::bytes::Bytes;

use super::*;

/// Decodes a message of a file of `file_len` bytes; `what` names it in the error.
pub(crate) fn decode<M: Message + Default + Shaped>(
    what: &str,
    bytes: Vec<u8>,
    limits: &Limits,
    file_len: u64,
) -> Result<M> {
    check::<M>(&bytes, limits, file_len).map_err(|e| e.within(what))?;
    decode_small(what, Bytes::from(bytes))
}

/// Decodes a short message, which cannot take much memory.
pub(crate) fn decode_small<M: Message + Default>(what: &str, bytes: Bytes) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::corrupt(format!("expected a message: {e}")).within(what))
}

/// The statistics of a column from a footer; `None` if the bytes are not statistics.
pub(crate) fn statistics(stored: &Bytes) -> Option<ColumnStatistics> {
    ColumnStatistics::decode(stored.clone()).ok()
}

macro_rules! shaped {
    ($($message:ty = [$($tag:literal: $shape:expr),*];)*) => {$(
        impl Shaped for $message {
            const SHAPE: Shape = Shape::of::<Self>(&[$(($tag, $shape)),*]);
        }
    )*};
}

shaped! {
    StripeInformation = [];
    StringPair = [];
    UserMetadataItem = [];
    Stream = [];
    ColumnEncoding = [];
    DataMask = [3: Shape::packed::<u32>()];
    EncryptionKey = [];
    EncryptionVariant = [4: Stream::SHAPE];
    Encryption = [1: DataMask::SHAPE, 2: EncryptionKey::SHAPE, 3: EncryptionVariant::SHAPE];
    Type = [2: Shape::packed::<u32>(), 7: StringPair::SHAPE];
    Footer = [3: StripeInformation::SHAPE, 4: Type::SHAPE, 5: UserMetadataItem::SHAPE, 10: Encryption::SHAPE];
    StripeStatistics = [];
    Metadata = [1: StripeStatistics::SHAPE];
    ColumnarStripeStatistics = [];
    FileStatistics = [];
    StripeEncryptionVariant = [1: Stream::SHAPE, 2: ColumnEncoding::SHAPE];
    StripeFooter = [1: Stream::SHAPE, 2: ColumnEncoding::SHAPE, 4: StripeEncryptionVariant::SHAPE];
    BucketStatistics = [1: Shape::packed::<u64>()];
    GeospatialStatistics = [2: Shape::packed::<i32>()];
    ColumnStatistics = [5: BucketStatistics::SHAPE, 13: GeospatialStatistics::SHAPE];
    RowIndexEntry = [1: Shape::packed::<u64>(), 2: ColumnStatistics::SHAPE];
    RowIndex = [1: RowIndexEntry::SHAPE];
    PositionEntry = [1: Shape::packed::<u64>()];
    PositionIndex = [1: PositionEntry::SHAPE];
    BloomFilter = [];
    BloomFilterIndex = [1: BloomFilter::SHAPE];
}
