//! A column chunk being written: a leaf's entries become pages.
//!
//! ```text
//! page       | PageHeader | stored bytes, compressed as one |
//! redelm-f   | repetition levels | definition length u32 BE | definition levels | values |
//! spec       | definition levels | repetition levels | values |
//! ```
//!
//! Levels whose maximum is 0 are absent, together with their length. Repetition levels are packed in as few
//! bits as their
//! maximum needs, most significant bit of a byte first.
//!
//! A page ends after the entry with which the size that the reference writer counts exceeds `page_bytes`. It
//! counts the whole groups of packed repetition levels (eight levels, or as few as fill whole bytes), the
//! closed runs of definition levels plus 64 bytes (see [`super::definition`]), and the values. So a page may
//! end within a row. Sources: the README, the Thrift definitions, the sources of the reference's last commit
//! and the bytes of its files.

use std::ops::Range;

use coldframe_encoding::bits::{self, BitOrder};
use coldframe_encoding::checksum::crc32;
use coldframe_encoding::codec::Compressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::{Error, Result};

use super::definition::{DefinitionLevels, run_length};
use super::dense::Dense;
use super::group_varint;
use super::shred::Leaf;
use super::{Dialect, Encoding, WriteOptions};
use crate::layout::metadata::{Codec, ColumnMetaData, GROUP_VAR_INT, PLAIN, Type};
use crate::layout::thrift;
use crate::schema;

/// Settings and buffers for making pages.
#[derive(Debug)]
pub(super) struct Pages {
    dialect: Dialect,
    pub(super) codec: Codec,
    hadoop: Option<HadoopCodec>,
    level: Option<i32>,
    crc: bool,
    page_bytes: usize,
    compressor: Compressor,
    /// The levels, or the whole page, before compression; below, the page after it.
    plain: Vec<u8>,
    stored: Vec<u8>,
}

impl Pages {
    pub(super) fn new(options: &WriteOptions) -> Result<Self> {
        let hadoop = match options.codec.algorithm() {
            coldframe_encoding::codec::Algorithm::None => None,
            algorithm => Some(HadoopCodec::from_algorithm(algorithm)?),
        };
        Ok(Self {
            dialect: options.dialect,
            codec: options.codec.stored(),
            hadoop,
            level: options.compression_level,
            crc: options.crc,
            page_bytes: options.page_bytes,
            compressor: Compressor::new(),
            plain: Vec::new(),
            stored: Vec::new(),
        })
    }
}

/// Maximum entries of a page, whatever its size, since a run of nulls takes no bytes.
const MAX_ENTRIES: usize = 1 << 30;

/// An upper bound for what a page takes in addition to its levels and values: its header, lengths, last bytes
/// of levels.
pub(super) const PAGE_OVERHEAD: usize = 48;

/// The chunk of one leaf.
#[derive(Debug)]
pub(super) struct Column {
    path: Vec<String>,
    physical_type: Type,
    encoding: Encoding,
    max_definition: u8,
    repetition_width: u32,
    /// The number of entries of the current page.
    entries: usize,
    repetition: Vec<u8>,
    definition: DefinitionLevels,
    values: Vec<u8>,
    /// The finished pages of the current chunk.
    pages: Vec<u8>,
    num_values: i64,
    uncompressed: i64,
    compressed: i64,
}

impl Column {
    pub(super) fn new(leaf: &schema::Leaf, encoding: Encoding) -> Self {
        let encoding = match leaf.physical_type {
            Type::Int32 | Type::Int64 => encoding,
            _ => Encoding::Plain,
        };
        Self {
            path: leaf.path.clone(),
            physical_type: leaf.physical_type,
            encoding,
            max_definition: leaf.max_definition,
            repetition_width: u8::BITS - leaf.max_repetition.leading_zeros(),
            entries: 0,
            repetition: Vec::new(),
            definition: DefinitionLevels::new(leaf.max_definition),
            values: Vec::new(),
            pages: Vec::new(),
            num_values: 0,
            uncompressed: 0,
            compressed: 0,
        }
    }

    /// Appends `entries` of `leaf`, whose first value is the leaf's value `value`. Returns the index after the last
    /// value.
    pub(super) fn append(
        &mut self,
        leaf: &Leaf<'_>,
        entries: Range<usize>,
        value: usize,
        pages: &mut Pages,
    ) -> Result<usize> {
        let (mut at, mut value) = (entries.start, value);
        // The index of the first entry, and of the first value, that is not in a page yet.
        let (mut page_at, mut page_value) = (at, value);
        while at < entries.end {
            let levels = leaf.definition.as_ref().map(|d| d.get(at..entries.end).unwrap_or_default());
            let (level, run) = match levels {
                None => (0, entries.end - at),
                Some(levels) => (levels.first().copied().unwrap_or_default(), run_length(levels)),
            };
            let run = run.min(MAX_ENTRIES - self.entries);
            let values_per_entry = usize::from(level == self.max_definition);
            self.definition.extend(level, 0); // this closes the previous run
            let levels_counted = self.definition.counted_bytes();
            let pending = self.values.len();
            let counted = |n: usize| {
                let values =
                    pending + leaf.values.end(value + n * values_per_entry) - leaf.values.end(page_value);
                levels_counted
                    + counted_repetition(self.repetition_width, self.entries + n)
                    + counted_values(self.physical_type, values)
            };
            let full = counted(run) > pages.page_bytes;
            let taken = if full { first(run, |n| counted(n) > pages.page_bytes) } else { run };
            self.definition.extend(level, taken);
            self.entries += taken;
            at += taken;
            value += taken * values_per_entry;
            if full || self.entries >= MAX_ENTRIES {
                self.write_page(leaf, page_at..at, page_value..value, pages)?;
                (page_at, page_value) = (at, value);
            }
        }
        if let Some(levels) = &leaf.repetition {
            self.repetition.extend_from_slice(levels.get(page_at..at).unwrap_or_default());
        }
        self.values.extend_from_slice(part(&leaf.values, page_value..value));
        Ok(value)
    }

    /// Writes the current page, with these last entries and values of `leaf`.
    fn write_page(
        &mut self,
        leaf: &Leaf<'_>,
        entries: Range<usize>,
        values: Range<usize>,
        pages: &mut Pages,
    ) -> Result<()> {
        if let Some(levels) = &leaf.repetition {
            self.repetition.extend_from_slice(levels.get(entries).unwrap_or_default());
        }
        self.put_page(part(&leaf.values, values), pages)
    }

    /// Writes the current page, whose last values are `values`.
    fn put_page(&mut self, values: &[u8], pages: &mut Pages) -> Result<()> {
        pages.plain.clear();
        self.put_levels(pages)?;
        let mut last = values;
        if self.encoding == Encoding::GroupVarInt || self.physical_type == Type::Boolean {
            self.values.extend_from_slice(values);
            self.encode_values(&mut pages.plain)?;
            self.values.clear();
            last = &[];
        }
        let uncompressed = pages.plain.len() + self.values.len() + last.len();
        if pages.hadoop.is_none() && !pages.crc {
            self.put_header(uncompressed, uncompressed, None)?;
            for part in [&pages.plain, &self.values, last] {
                self.pages.extend_from_slice(part);
            }
        } else {
            // If the values are the whole page and already contiguous, they need no copy.
            let plain: &[u8] = if pages.plain.is_empty() && self.values.is_empty() {
                last
            } else {
                pages.plain.extend_from_slice(&self.values);
                pages.plain.extend_from_slice(last);
                &pages.plain
            };
            let stored: &[u8] = match &pages.hadoop {
                None => plain,
                Some(codec) => {
                    pages.stored.clear();
                    codec.compress(&mut pages.compressor, pages.level, plain, &mut pages.stored)?;
                    &pages.stored
                }
            };
            let crc = pages.crc.then(|| crc32(stored));
            self.put_header(uncompressed, stored.len(), crc)?;
            self.pages.extend_from_slice(stored);
        }
        self.entries = 0;
        self.repetition.clear();
        self.values.clear();
        Ok(())
    }

    fn put_levels(&mut self, pages: &mut Pages) -> Result<()> {
        let (width, repetition) = (self.repetition_width, &self.repetition);
        let plain = &mut pages.plain;
        match pages.dialect {
            Dialect::RedelmF => {
                bits::pack(BitOrder::Msb, width, repetition, plain)?;
                if self.max_definition > 0 {
                    self.definition.finish(|stream| {
                        let length = u32::try_from(stream.len()).unwrap_or(u32::MAX); // an entry takes at most 9 bits
                        plain.extend_from_slice(&length.to_be_bytes());
                        plain.extend_from_slice(stream);
                    });
                }
            }
            Dialect::Spec => {
                self.definition.finish(|stream| plain.extend_from_slice(stream));
                bits::pack(BitOrder::Msb, width, repetition, plain)?;
            }
        }
        Ok(())
    }

    fn encode_values(&self, out: &mut Vec<u8>) -> Result<()> {
        match self.physical_type {
            Type::Boolean => bits::pack(BitOrder::Msb, 1, &self.values, out)?,
            Type::Int32 => group_varint::encode_int32(&self.values, out),
            _ => group_varint::encode_int64(&self.values, out),
        }
        Ok(())
    }

    fn put_header(&mut self, uncompressed: usize, compressed: usize, crc: Option<u32>) -> Result<()> {
        let size = |n: usize| {
            i32::try_from(n).map_err(|_| Error::invalid(format!("a page of {n} bytes: the maximum is 2 GiB")))
        };
        let (uncompressed, compressed, entries) =
            (size(uncompressed)?, size(compressed)?, size(self.entries)?);
        let mut header = thrift::Writer::new();
        header.structure(|h| {
            h.i32(1, 0); // DATA_PAGE
            h.i32(2, uncompressed);
            h.i32(3, compressed);
            if let Some(crc) = crc {
                h.i32(4, crc.cast_signed());
            }
            h.struct_field(5, |h| {
                h.i32(1, entries);
                h.i32(2, self.encoding.code());
            });
        });
        self.pages.extend_from_slice(&header.finish());
        self.num_values += i64::from(entries);
        self.uncompressed += i64::from(uncompressed);
        self.compressed += i64::from(compressed);
        Ok(())
    }

    /// Whether pages hold only values, in the same form as in Arrow.
    pub(super) fn is_copied(&self) -> bool {
        let same = !matches!(self.physical_type, Type::ByteArray | Type::Boolean | Type::Int96);
        same && self.max_definition == 0 && self.encoding == Encoding::Plain
    }

    /// The bytes that the reference writer counts: the finished pages and the current page.
    pub(super) fn counted_bytes(&self) -> usize {
        self.pages.len()
            + self.definition.counted_bytes()
            + counted_repetition(self.repetition_width, self.entries)
            + counted_values(self.physical_type, self.values.len())
    }

    /// Ends the chunk, which is at `offset` in the file. Until [`Self::clear`], its bytes are the bytes of
    /// [`Self::chunk`]. Returns the chunk's metadata.
    pub(super) fn finish(&mut self, offset: u64, pages: &mut Pages) -> Result<ColumnMetaData> {
        if self.entries > 0 {
            self.put_page(&[], pages)?;
        }
        let metadata = ColumnMetaData {
            physical_type: self.physical_type,
            encodings: vec![self.encoding.code()],
            path_in_schema: self.path.clone(),
            codec: pages.codec,
            num_values: self.num_values,
            total_uncompressed_size: self.uncompressed,
            total_compressed_size: self.compressed,
            data_page_offset: offset.cast_signed(),
            index_page_offset: None,
            key_value_metadata: Vec::new(),
        };
        (self.num_values, self.uncompressed, self.compressed) = (0, 0, 0);
        Ok(metadata)
    }

    /// The pages of the chunk.
    pub(super) fn chunk(&self) -> &[u8] {
        &self.pages
    }

    /// Begins the next chunk, reusing the memory of the current chunk.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
    }
}

impl Encoding {
    fn code(self) -> i32 {
        match self {
            Self::Plain => PLAIN,
            Self::GroupVarInt => GROUP_VAR_INT,
        }
    }
}

/// The first of `1..=last` for which `holds` is true; it must be true for all after it.
fn first(last: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, last);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

fn part<'a>(values: &'a Dense<'_>, range: Range<usize>) -> &'a [u8] {
    values.bytes().get(values.end(range.start)..values.end(range.end)).unwrap_or_default()
}

/// Bytes of the whole groups of packed levels.
fn counted_repetition(width: u32, entries: usize) -> usize {
    let group = match width {
        0 => return 0,
        1 | 3 | 5 | 7 => 8,
        2 | 6 => 4,
        4 => 2,
        _ => 1,
    };
    bits::packed_len(entries / group * group, width)
}

fn counted_values(physical_type: Type, bytes: usize) -> usize {
    if physical_type == Type::Boolean { bytes / 8 } else { bytes }
}

#[cfg(test)]
mod tests;
