//! Cells of a log with `hbase.regionserver.wal.enablecompression`, rewritten as those of a plain log.
//!
//! ```text
//! text   | ff | length varint | bytes |     new: takes a number of its dictionary
//!        | number u16, below 7fff |         known
//! key    region (R), table (T) and the families of scopes (F) are texts
//! cell   | key length varint | value length varint | tags length varint | row (W) | family (F) | qualifier (Q) |
//!        | timestamp i64 | type u8 | value | tags |
//! value  | bytes |                          with value compression: | stored length varint | stream of the codec |
//! tags   | length u16, bytes | ..           with tag compression: a text (G) for each tag
//! ```
//!
//! In brackets: the dictionary, in which W, G, R and T have up to 32,767 texts, F and Q 127, and R and T of
//! `recovered.edits` one. HBase: `WALCellCodec`, `CompressionContext`, `TagCompressionContext`.

use std::fmt;

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::codec::Decompressor;
use coldframe_hfile::BlockCodec;

use super::dictionary::Dictionary;
use super::proto::{LogHeader, LogKey};

const LARGE: usize = i16::MAX as usize;
const SMALL: usize = i8::MAX as usize;
/// In place of the first byte of a number, before a new text.
const NEW: u8 = 0xff;
/// The lengths of the parts of a key besides row, family and qualifier, and of timestamp and type.
const KEY_OVERHEAD: u64 = 2 + 1 + TIME_AND_TYPE;
const TIME_AND_TYPE: u64 = 8 + 1;

/// What a reader of a compressed log knows from the edits before.
pub(super) struct Compression {
    regions: Dictionary,
    tables: Dictionary,
    rows: Dictionary,
    families: Dictionary,
    qualifiers: Dictionary,
    tags: Option<Dictionary>,
    /// The codec of values, if they are compressed.
    values: Option<BlockCodec>,
    decompressor: Decompressor,
}

impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts =
            [&self.regions, &self.tables, &self.rows, &self.families, &self.qualifiers].map(Dictionary::len);
        f.debug_struct("Compression").field("texts", &counts).finish_non_exhaustive()
    }
}

/// Bytes to decode; `None` at their end.
pub(super) trait Input {
    fn take(&mut self, len: u64) -> Result<Option<Bytes>>;
    fn varint(&mut self) -> Result<Option<u64>>;
}

/// A field of a key.
struct Field(Bytes);

impl Input for Field {
    fn take(&mut self, len: u64) -> Result<Option<Bytes>> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.0.len());
        Ok(len.map(|len| self.0.split_to(len)))
    }

    fn varint(&mut self) -> Result<Option<u64>> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let Some(byte) = self.take(1)?.and_then(|byte| byte.first().copied()) else { return Ok(None) };
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(value));
            }
        }
        Err(Error::corrupt("expected a length of at most 5 bytes, found a longer one"))
    }
}

/// The next text.
fn text(dictionary: &mut Dictionary, input: &mut impl Input) -> Result<Option<Bytes>> {
    let Some(first) = input.take(1)?.and_then(|byte| byte.first().copied()) else { return Ok(None) };
    if first != NEW {
        let Some(second) = input.take(1)?.and_then(|byte| byte.first().copied()) else { return Ok(None) };
        return dictionary.text(u16::from_be_bytes([first, second])).map(Some);
    }
    let Some(len) = input.varint()? else { return Ok(None) };
    let Some(text) = input.take(len)? else { return Ok(None) };
    dictionary.add(&text)?;
    Ok(Some(text))
}

/// A text that is a whole field of a key.
fn field(dictionary: &mut Dictionary, bytes: &[u8], what: &'static str) -> Result<Vec<u8>> {
    let mut input = Field(Bytes::copy_from_slice(bytes));
    match text(dictionary, &mut input).within(|| what)? {
        Some(text) if input.0.is_empty() => Ok(text.to_vec()),
        Some(_) => Err(Error::corrupt("expected one text, found more bytes").within(what)),
        None => Err(Error::corrupt("expected a text, found its beginning").within(what)),
    }
}

impl Compression {
    /// The compression that a header states; `None` if there is none. `recovered`: whether the log is one of
    /// `recovered.edits`, which have one region.
    pub(super) fn of(header: &LogHeader, recovered: bool) -> Result<Option<Self>> {
        if header.has_compression != Some(true) {
            return Ok(None);
        }
        let values = match (header.has_value_compression, header.value_compression) {
            (Some(true), Some(ordinal)) => Some(BlockCodec::from_ordinal(ordinal)?),
            (Some(true), None) => {
                return Err(Error::unsupported(
                    "write-ahead logs with compressed values that name no codec; `wal=False` reads what was flushed",
                ));
            }
            _ => None,
        };
        let names = if recovered { 1 } else { LARGE };
        Ok(Some(Self {
            regions: Dictionary::new(names),
            tables: Dictionary::new(names),
            rows: Dictionary::new(LARGE),
            families: Dictionary::new(SMALL),
            qualifiers: Dictionary::new(SMALL),
            tags: (header.has_tag_compression == Some(true)).then(|| Dictionary::new(LARGE)),
            values,
            decompressor: Decompressor::new(),
        }))
    }

    /// Replaces the texts in a key.
    pub(super) fn key(&mut self, key: &mut LogKey) -> Result<()> {
        key.region = field(&mut self.regions, &key.region, "region of the key")?;
        key.table = field(&mut self.tables, &key.table, "table of the key")?;
        for scope in &key.scopes {
            field(&mut self.families, &scope.family, "scope of the key")?;
        }
        Ok(())
    }

    /// Whether a key, whose texts were not replaced, names a region that is known or new.
    pub(super) fn is_key(&self, key: &LogKey) -> bool {
        match key.region.as_slice() {
            [NEW, ..] => key.region.len() > 2,
            [first, second] => usize::from(u16::from_be_bytes([*first, *second])) < self.regions.len(),
            _ => false,
        }
    }

    /// Appends the next cell in its plain form to `out`; `None` if it extends beyond the end of the edits.
    pub(super) fn cell(
        &mut self,
        log: &mut impl Input,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let (Some(key_len), Some(value_len), Some(tags_len)) = (log.varint()?, log.varint()?, log.varint()?)
        else {
            return Ok(None);
        };
        let Some(row) = text(&mut self.rows, log).within(|| "row")? else { return Ok(None) };
        let Some(family) = text(&mut self.families, log).within(|| "family")? else { return Ok(None) };
        let Some(qualifier) = text(&mut self.qualifiers, log).within(|| "qualifier")? else {
            return Ok(None);
        };
        let actual =
            [&row, &family, &qualifier].iter().fold(KEY_OVERHEAD, |sum, part| sum + part.len() as u64);
        if actual != key_len {
            return Err(Error::corrupt(format!("expected a key of {key_len} bytes, found one of {actual}")));
        }
        let lengths = (i16::try_from(row.len()), i8::try_from(family.len()), u16::try_from(tags_len));
        let (Ok(row_len), Ok(family_len), Ok(tags)) = lengths else {
            let parts = format!("{}, {} and {tags_len}", row.len(), family.len());
            return Err(Error::corrupt(format!(
                "expected a row, a family and tags of at most {LARGE}, {SMALL} and 65535 bytes, found {parts}"
            )));
        };
        let after = if tags > 0 { 2 + u64::from(tags) } else { 0 };
        let len = [8, key_len, value_len, after].iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        let sizes =
            (len.and_then(|len| i32::try_from(len).ok()), i32::try_from(key_len), i32::try_from(value_len));
        let (Some(len), Ok(key_len), Ok(value_bytes)) = sizes else {
            return Err(Error::corrupt(format!(
                "expected a value of less than 2^31 bytes, found {value_len}"
            )));
        };
        limits.block("an edit of a compressed log", out.len() as u64)?;
        let Some(time_and_type) = log.take(TIME_AND_TYPE)? else { return Ok(None) };
        for number in [len, key_len, value_bytes] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&row_len.to_be_bytes());
        out.extend_from_slice(&row);
        out.extend_from_slice(&family_len.to_be_bytes());
        out.extend_from_slice(&family);
        out.extend_from_slice(&qualifier);
        out.extend_from_slice(&time_and_type);
        if self.value(log, limits, value_len, out).within(|| "value")?.is_none() {
            return Ok(None);
        }
        if tags == 0 {
            return Ok(Some(()));
        }
        out.extend_from_slice(&tags.to_be_bytes());
        self.tags(log, tags.into(), out).within(|| "tags")
    }

    fn value(
        &mut self,
        log: &mut impl Input,
        limits: &Limits,
        len: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let Some(codec) = self.values else {
            return Ok(log.take(len)?.map(|value| out.extend_from_slice(&value)));
        };
        let Some(stored) = log.varint()? else { return Ok(None) };
        let Some(stream) = log.take(stored)? else { return Ok(None) };
        // The stream of an empty value has a header, which HBase skips.
        if len > 0 {
            let raw = limits.unpacked("a value", len, codec.max_expansion(stream.len()))?;
            let end = out.len().saturating_add(raw);
            codec.decompress(&mut self.decompressor, &stream, raw, out)?;
            if out.len() != end {
                let actual = out.len().saturating_add(raw).saturating_sub(end);
                return Err(Error::corrupt(format!("expected {raw} bytes, found {actual}")));
            }
        }
        Ok(Some(()))
    }

    fn tags(&mut self, log: &mut impl Input, len: u64, out: &mut Vec<u8>) -> Result<Option<()>> {
        let Some(dictionary) = &mut self.tags else {
            return Ok(log.take(len)?.map(|tags| out.extend_from_slice(&tags)));
        };
        let mut left = len;
        while left > 0 {
            let Some(tag) = text(dictionary, log)? else { return Ok(None) };
            let size = tag.len() as u64 + 2;
            let (Ok(stated), Some(rest)) = (u16::try_from(tag.len()), left.checked_sub(size)) else {
                return Err(Error::corrupt(format!("expected {left} bytes of tags, found {size}")));
            };
            out.extend_from_slice(&stated.to_be_bytes());
            out.extend_from_slice(&tag);
            left = rest;
        }
        Ok(Some(()))
    }
}
