//! Reads `string`, `varchar(n)`, `char(n)` and `binary`.
//!
//! A string without escapes equals its cell, so the array shares the column's buffer. Malformed UTF-8 becomes
//! U+FFFD, one for each sequence that Java's decoder treats as one ([`replacing_malformed`]). `varchar` keeps
//! the first n code points, `char` pads them with blanks. `binary` is base64; anything else is taken as raw
//! bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use coldframe_core::{Change, Changes};
use coldframe_encoding::{Error, Result};

use super::cells::{CellSource, Validity};
use super::options::TextOptions;
use crate::serde::HiveVersion;

/// The limit on a string's code points.
#[derive(Clone, Copy)]
pub(super) enum CharLimit {
    AsIs,
    AtMost(u32),
    Padded(u32),
}

pub(super) fn string<S: CellSource>(
    source: &S,
    options: &TextOptions,
    shape: CharLimit,
    changes: &Changes,
) -> Result<ArrayRef> {
    if let (Some((data, offsets)), None) = (source.shared(), options.escape)
        && fits(source, shape)
    {
        let nulls = nulls(source, &options.null_format);
        if let Ok(array) = StringArray::try_new(offsets.clone(), data.clone(), nulls) {
            return Ok(Arc::new(array));
        }
    }
    rebuilt(source, options, shape, changes)
}

/// Whether `shape` leaves all values unchanged, judged by length: n bytes are at most n code points.
fn fits<S: CellSource>(source: &S, shape: CharLimit) -> bool {
    match shape {
        CharLimit::AsIs => true,
        CharLimit::AtMost(n) => source.ranges().all(|(start, end)| end - start <= n as usize),
        CharLimit::Padded(_) => false,
    }
}

fn nulls<S: CellSource>(source: &S, null_format: &[u8]) -> Option<NullBuffer> {
    let mut validity = Validity::with_capacity(source.len());
    for cell in source.cells() {
        validity.push(cell.is_some_and(|c| c.len != null_format.len() || c.bytes() != null_format));
    }
    validity.finish()
}

/// The bytes and offsets of values that are copied.
struct Copied {
    data: Vec<u8>,
    offsets: Vec<i32>,
    validity: Validity,
}

impl Copied {
    fn new<S: CellSource>(source: &S) -> Self {
        let mut offsets = Vec::with_capacity(source.len() + 1);
        offsets.push(0);
        // Allocates as many bytes as the source has for these values.
        let bytes = source.ranges().map(|(start, end)| end.saturating_sub(start)).sum();
        Self { data: Vec::with_capacity(bytes), offsets, validity: Validity::with_capacity(source.len()) }
    }

    fn end_value(&mut self, valid: bool) -> Result<()> {
        let len = self.data.len();
        let end =
            i32::try_from(len).map_err(|_| Error::batch_too_long("values of a text column", len as u64))?;
        self.offsets.push(end);
        self.validity.push(valid);
        Ok(())
    }

    fn finish(self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        (OffsetBuffer::new(self.offsets.into()), Buffer::from_vec(self.data), self.validity.finish())
    }
}

fn rebuilt<S: CellSource>(
    source: &S,
    options: &TextOptions,
    shape: CharLimit,
    changes: &Changes,
) -> Result<ArrayRef> {
    let mut malformed = 0;
    let mut copied = Copied::new(source);
    let mut unescaped = Vec::new();
    for cell in source.cells() {
        let Some(mut bytes) = cell.map(|c| c.bytes()).filter(|b| *b != options.null_format) else {
            copied.end_value(false)?;
            continue;
        };
        if let Some(escape) = options.escape.filter(|e| bytes.contains(e)) {
            unescape(bytes, escape, &mut unescaped);
            bytes = &unescaped;
        }
        let start = copied.data.len();
        match std::str::from_utf8(bytes) {
            Ok(text) => shaped(text, shape, &mut copied.data),
            Err(_) => {
                malformed += 1;
                shaped(&replacing_malformed(bytes), shape, &mut copied.data);
            }
        }
        debug_assert!(copied.data.len() >= start);
        copied.end_value(true)?;
    }
    changes.add(Change::Text, malformed);
    let (offsets, data, nulls) = copied.finish();
    let array = StringArray::try_new(offsets, data, nulls).map_err(|e| Error::corrupt(e.to_string()))?;
    Ok(Arc::new(array))
}

/// Appends `text`, truncated or padded to `shape`.
pub(super) fn shaped(text: &str, shape: CharLimit, out: &mut Vec<u8>) {
    let (limit, padded) = match shape {
        CharLimit::AsIs => (usize::MAX, false),
        CharLimit::AtMost(n) => (n as usize, false),
        CharLimit::Padded(n) => (n as usize, true),
    };
    let end = if text.len() <= limit {
        text.len()
    } else {
        text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at)
    };
    let kept = text.get(..end).unwrap_or(text);
    out.extend_from_slice(kept.as_bytes());
    if padded {
        let missing = limit.saturating_sub(kept.chars().count());
        out.resize(out.len() + missing, b' ');
    }
}

/// `escape` escapes the next byte; escaped `r` and `n` are CR and LF.
pub(super) fn unescape(bytes: &[u8], escape: u8, out: &mut Vec<u8>) {
    out.clear();
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        // The last byte of a cell cannot escape anything.
        let escaped = if byte == escape { rest.next() } else { None };
        out.push(match escaped {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(other) => other,
            None => byte,
        });
    }
}

/// Text with U+FFFD for malformed UTF-8, as in `java.nio.charset`: unlike most decoders, Java treats the three bytes
/// of a surrogate as one malformed sequence.
pub(super) fn replacing_malformed(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        let (valid, malformed) = match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(e) => bytes.split_at_checked(e.valid_up_to()).unwrap_or((bytes, &[])),
        };
        text.push_str(std::str::from_utf8(valid).unwrap_or_default());
        text.push(char::REPLACEMENT_CHARACTER);
        bytes = malformed.get(malformed_len(malformed)..).unwrap_or_default();
    }
}

fn malformed_len(bytes: &[u8]) -> usize {
    let is_continuation = |i: usize| bytes.get(i).is_some_and(|b| b & 0xc0 == 0x80);
    match bytes {
        [0xed, 0xa0..=0xbf, ..] => {
            if is_continuation(2) {
                3
            } else {
                2
            }
        }
        _ => match std::str::from_utf8(bytes) {
            Err(e) => e.error_len().unwrap_or(bytes.len()).max(1),
            Ok(_) => 1,
        },
    }
}

/// The bytes of strings, unescaped and otherwise as they are.
pub(super) fn bytes<S: CellSource>(source: &S, options: &TextOptions) -> Result<ArrayRef> {
    if let (Some((data, offsets)), None) = (source.shared(), options.escape) {
        let nulls = nulls(source, &options.null_format);
        if let Ok(array) = BinaryArray::try_new(offsets.clone(), data.clone(), nulls) {
            return Ok(Arc::new(array));
        }
    }
    let mut copied = Copied::new(source);
    let mut unescaped = Vec::new();
    for cell in source.cells() {
        let bytes = cell.map(|c| c.bytes()).filter(|b| *b != options.null_format);
        match (bytes, options.escape) {
            (Some(bytes), Some(escape)) if bytes.contains(&escape) => {
                unescape(bytes, escape, &mut unescaped);
                copied.data.extend_from_slice(&unescaped);
            }
            (bytes, _) => copied.data.extend_from_slice(bytes.unwrap_or_default()),
        }
        copied.end_value(bytes.is_some())?;
    }
    let (offsets, data, nulls) = copied.finish();
    let array = BinaryArray::try_new(offsets, data, nulls).map_err(|e| Error::corrupt(e.to_string()))?;
    Ok(Arc::new(array))
}

pub(super) fn binary<S: CellSource>(
    source: &S,
    null_format: &[u8],
    version: HiveVersion,
) -> Result<ArrayRef> {
    let mut copied = Copied::new(source);
    for cell in source.cells() {
        let bytes = cell.map(|c| c.bytes()).filter(|b| *b != null_format);
        if let Some(bytes) = bytes {
            decode_base64(bytes, version, &mut copied.data);
        }
        copied.end_value(bytes.is_some())?;
    }
    let (offsets, data, nulls) = copied.finish();
    let array = BinaryArray::try_new(offsets, data, nulls).map_err(|e| Error::corrupt(e.to_string()))?;
    Ok(Arc::new(array))
}

/// Java's decoder: padding is optional, and leftover bits are ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn decode_base64(bytes: &[u8], version: HiveVersion, out: &mut Vec<u8>) {
    let start = out.len();
    // Java refuses padding that does not fill the last group.
    let padding = bytes.iter().rev().take_while(|&&b| b == b'=').count();
    let padded_well = padding == 0 || bytes.len().is_multiple_of(4);
    if padded_well && BASE64.decode_vec(bytes, out).is_ok() {
        return;
    }
    out.truncate(start);
    if version < HiveVersion::V4_1 {
        decode_base64_leniently(bytes, out);
    }
    if out.len() == start {
        out.extend_from_slice(bytes);
    }
}

/// As Commons Codec decodes: both alphabets, white space ignored, anything after a `=` ignored; nothing at all if there
/// is another byte.
fn decode_base64_leniently(bytes: &[u8], out: &mut Vec<u8>) {
    let sextet = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let known = |b: &u8| sextet(*b).is_some() || matches!(b, b'=' | b' ' | b'\n' | b'\r' | b'\t');
    if !bytes.iter().all(known) {
        return;
    }
    let sextets: Vec<u8> = bytes.iter().take_while(|&&b| b != b'=').filter_map(|&b| sextet(b)).collect();
    for group in sextets.chunks(4) {
        let bits = group.iter().fold(0u32, |bits, s| bits << 6 | u32::from(*s)) << (6 * (4 - group.len()));
        let [_, decoded @ ..] = bits.to_be_bytes();
        // Two sextets are one byte, three are two; one alone is dropped.
        out.extend(decoded.iter().take(group.len().saturating_sub(1)));
    }
}
