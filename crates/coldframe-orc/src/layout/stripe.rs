//! Parses a stripe's footer, and computes the positions of its streams.
//!
//! ```text
//! | ROW_INDEX, BLOOM_FILTER.. of each column | encrypted ones | PRESENT, DATA.. of each column | encrypted ones | footer |
//! ```
//!
//! ORC specification v1, "Stripes". The footer lists the streams in order, with their lengths. For encrypted columns
//! the list has placeholders, `ENCRYPTED_INDEX` and `ENCRYPTED_DATA`, and each variant lists the streams inside them.

use std::collections::HashMap;
use std::ops::Range;

use coldframe_encoding::{Error, Result};

use super::encryption::Encryption;
use super::proto::{self, ColumnEncoding, StripeFooter, StripeInformation};

/// `Stream.Kind`: the streams that a reader uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum StreamKind {
    Present,
    Data,
    Length,
    DictionaryData,
    DictionaryCount,
    Secondary,
    RowIndex,
    BloomFilter,
    BloomFilterUtf8,
    EncryptedIndex,
    EncryptedData,
}

const KINDS: [(StreamKind, &str); 11] = [
    (StreamKind::Present, "PRESENT"),
    (StreamKind::Data, "DATA"),
    (StreamKind::Length, "LENGTH"),
    (StreamKind::DictionaryData, "DICTIONARY_DATA"),
    (StreamKind::DictionaryCount, "DICTIONARY_COUNT"),
    (StreamKind::Secondary, "SECONDARY"),
    (StreamKind::RowIndex, "ROW_INDEX"),
    (StreamKind::BloomFilter, "BLOOM_FILTER"),
    (StreamKind::BloomFilterUtf8, "BLOOM_FILTER_UTF8"),
    (StreamKind::EncryptedIndex, "ENCRYPTED_INDEX"),
    (StreamKind::EncryptedData, "ENCRYPTED_DATA"),
];

impl StreamKind {
    /// Its number.
    pub(crate) fn number(self) -> u32 {
        KINDS.iter().position(|(k, _)| *k == self).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX)
    }

    /// The kind with this number; unknown numbers exist.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|n| KINDS.get(n)).map(|(kind, _)| *kind)
    }

    /// The specification's name.
    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(k, _)| *k == self).map_or("", |(_, name)| name)
    }

    /// Whether the stream is stored before the data.
    pub(crate) fn is_index(self) -> bool {
        matches!(self, Self::RowIndex | Self::BloomFilter | Self::BloomFilterUtf8 | Self::EncryptedIndex)
    }
}

/// The position of a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stripe {
    /// The index of the stripe in the file, from 0.
    pub(crate) number: usize,
    /// The bytes of the whole stripe.
    pub(crate) bytes: Range<u64>,
    /// The bytes of the stripe's footer.
    pub(crate) footer: Range<u64>,
    /// Number of bytes of the index streams.
    pub(crate) index_length: u64,
    /// Number of rows.
    pub(crate) rows: u64,
    /// The stripe's number in encryption.
    pub(crate) encryption_number: u64,
    /// The number of rows in the stripes before this stripe.
    pub(crate) first_row: u64,
    /// Number of bytes of the stripes before it; more than the file has, if stripes share bytes.
    pub(crate) bytes_before: u64,
}

impl Stripe {
    /// The stripe that the file's footer describes, after `previous`; it must be inside the file.
    pub(crate) fn new(previous: Option<&Self>, info: &StripeInformation, file_len: u64) -> Result<Self> {
        let number = previous.map_or(0, |p| p.number + 1);
        let start = info.offset();
        let footer_start =
            start.checked_add(info.index_length()).and_then(|at| at.checked_add(info.data_length()));
        let end = footer_start.and_then(|at| at.checked_add(info.footer_length()));
        let (Some(footer_start), Some(end)) = (footer_start, end.filter(|end| *end <= file_len)) else {
            return Err(Error::corrupt(format!(
                "expected a stripe inside the file of {file_len} bytes, found one of {} + {} + {} bytes at {start}",
                info.index_length(),
                info.data_length(),
                info.footer_length()
            ))
            .within(format!("stripe {number}")));
        };
        Ok(Self {
            number,
            bytes: start..end,
            footer: footer_start..end,
            index_length: info.index_length(),
            rows: info.number_of_rows(),
            encryption_number: info.encrypt_stripe_id.unwrap_or(number as u64 + 1),
            first_row: previous.map_or(0, |p| p.first_row.saturating_add(p.rows)),
            bytes_before: previous
                .map_or(0, |p| p.bytes_before.saturating_add(p.bytes.end.saturating_sub(p.bytes.start))),
        })
    }

    /// An error if stripes share so many bytes that reading all of them would read the file over and over. A
    /// few may overlap, because their contents show which is wrong.
    pub(crate) fn check_budget(&self, file_len: u64) -> Result<()> {
        let max = file_len.saturating_mul(2);
        if self.bytes_before <= max {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "expected stripes of at most {max} bytes before it, found {} bytes",
            self.bytes_before
        )))
    }

    /// The name of the stripe in errors.
    pub(crate) fn name(&self) -> String {
        format!("stripe {}", self.number)
    }
}

/// One stream of a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPlace {
    /// The column of the stream.
    pub(crate) column: usize,
    /// The number of the stream's kind.
    pub(crate) kind: u32,
    /// The bytes of the stream in the file.
    pub(crate) bytes: Range<u64>,
    /// The encryption variant to which the stream belongs.
    pub(crate) variant: Option<usize>,
}

/// The contents of a stripe's footer.
#[derive(Clone, Debug)]
pub(crate) struct StripeLayout {
    /// All streams in file order; placeholders are replaced by the streams in them.
    pub(crate) streams: Vec<StreamPlace>,
    /// The encoding of each column, from the variant that is read.
    pub(crate) encodings: Vec<ColumnEncoding>,
    /// Java's name of the writer's zone.
    pub(crate) writer_timezone: Option<String>,
    /// The streams that are read, by column and kind.
    index: HashMap<(usize, u32), usize>,
}

impl StripeLayout {
    /// Computes the positions of the streams; `columns` is the number of columns in the file.
    pub(crate) fn new(
        footer: StripeFooter,
        stripe: &Stripe,
        columns: usize,
        encryption: &Encryption,
    ) -> Result<Self> {
        if footer.columns.len() != columns {
            let message =
                format!("expected the encodings of {columns} columns, found {}", footer.columns.len());
            return Err(Error::corrupt(message));
        }
        let mut layout = Self {
            streams: Vec::with_capacity(footer.streams.len()),
            encodings: footer.columns,
            writer_timezone: footer.writer_timezone,
            index: HashMap::with_capacity(footer.streams.len()),
        };
        let mut at = stripe.bytes.start;
        let mut has_placeholder = [false; 2];
        for stream in &footer.streams {
            let kind = StreamKind::from_number(stream.kind());
            let start = at;
            at = advance(at, stream, stripe)?;
            let index = match kind {
                Some(StreamKind::EncryptedIndex) => true,
                Some(StreamKind::EncryptedData) => false,
                _ => {
                    layout.add(stream, start..at, None, columns)?;
                    continue;
                }
            };
            // Each area has one placeholder; a second placeholder would add all streams of all variants
            // again.
            if let Some(has_placeholder) = has_placeholder.get_mut(usize::from(index))
                && std::mem::replace(has_placeholder, true)
            {
                return Err(Error::corrupt("expected one placeholder of encrypted streams, found another"));
            }
            let mut inside = start;
            for (variant, streams) in footer.encryption.iter().enumerate() {
                for stream in &streams.streams {
                    let is_index = StreamKind::from_number(stream.kind()).is_some_and(StreamKind::is_index);
                    if is_index == index {
                        let begin = inside;
                        inside = advance(inside, stream, stripe)?;
                        layout.add(stream, begin..inside, Some(variant), columns)?;
                    }
                }
            }
            if inside != at {
                let message = format!("expected encrypted streams to byte {at}, found them to byte {inside}");
                return Err(Error::corrupt(message));
            }
        }
        layout.select(&footer.encryption, encryption);
        Ok(layout)
    }

    fn add(
        &mut self,
        stream: &proto::Stream,
        bytes: Range<u64>,
        variant: Option<usize>,
        columns: usize,
    ) -> Result<()> {
        let column = usize::try_from(stream.column()).unwrap_or(usize::MAX);
        if column >= columns {
            let message =
                format!("expected a stream of one of {columns} columns, found one of column {column}");
            return Err(Error::corrupt(message));
        }
        self.streams.push(StreamPlace { column, kind: stream.kind(), bytes, variant });
        Ok(())
    }

    /// Chooses for each column its plain streams, or the streams that its key decrypts.
    fn select(&mut self, variants: &[proto::StripeEncryptionVariant], encryption: &Encryption) {
        for (column, encoding) in self.encodings.iter_mut().enumerate() {
            let Some(number) = encryption.variant_of(column) else { continue };
            let root = encryption.root_of(number);
            let selected = variants.get(number).and_then(|v| v.encoding.get(column.checked_sub(root)?));
            if let Some(selected) = selected {
                *encoding = *selected;
            }
        }
        for (place, stream) in self.streams.iter().enumerate() {
            if stream.variant == encryption.variant_of(stream.column) {
                self.index.entry((stream.column, stream.kind)).or_insert(place);
            }
        }
    }

    /// The stream that is read for a column.
    pub(crate) fn stream(&self, column: usize, kind: StreamKind) -> Option<&StreamPlace> {
        self.index.get(&(column, kind.number())).and_then(|place| self.streams.get(*place))
    }

    /// How a column is encoded.
    pub(crate) fn encoding(&self, column: usize) -> ColumnEncoding {
        self.encodings.get(column).copied().unwrap_or_default()
    }
}

/// Where a stream that begins at `at` ends.
fn advance(at: u64, stream: &proto::Stream, stripe: &Stripe) -> Result<u64> {
    let end = at.checked_add(stream.length()).filter(|end| *end <= stripe.footer.start);
    end.ok_or_else(|| {
        Error::corrupt(format!(
            "expected streams in front of byte {}, found one of {} bytes at {at}",
            stripe.footer.start,
            stream.length()
        ))
    })
}
