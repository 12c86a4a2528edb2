//! Encodes the values of a block, in each encoding.

use coldframe_core::Result;
use coldframe_encoding::codec::{Algorithm, Compressor};
use coldframe_encoding::varint::{put_group_varint, put_uleb128};

use crate::encoding::Word;
use crate::encoding::bit_shuffle::{HEADER_LEN, chunk_len};

/// The number of values between two restarts of PREFIX.
const RESTART_INTERVAL: usize = 16;
/// The smallest number of equal values that is written as a run; fewer are written as literals.
const MIN_RUN: usize = 8;
/// Maximum number of groups of literals in one run, as in Kudu.
const MAX_GROUPS: usize = 63;

fn head(out: &mut Vec<u8>, fields: &[u32]) {
    out.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
}

/// A length as 32 bits, as blocks store it.
fn len32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(super) fn plain<T: Word>(values: &[T], ordinal: u32, out: &mut Vec<u8>) {
    head(out, &[len32(values.len()), ordinal]);
    values.iter().for_each(|v| v.put(out));
}

pub(super) fn plain_bits(values: &[bool], ordinal: u32, out: &mut Vec<u8>) {
    head(out, &[len32(values.len()), ordinal]);
    out.extend(values.chunks(8).map(pack));
}

/// Packs up to eight bits, the first bit lowest.
fn pack(bits: &[bool]) -> u8 {
    bits.iter().rev().fold(0, |b, bit| b << 1 | u8::from(*bit))
}

pub(super) fn rle<T: Word + PartialEq>(values: &[T], ordinal: u32, out: &mut Vec<u8>) {
    head(out, &[len32(values.len()), ordinal]);
    runs(values, out, |group, out| group.iter().for_each(|v| v.put(out)), |v, out| v.put(out));
}

pub(super) fn rle_bits(values: &[bool], ordinal: u32, out: &mut Vec<u8>) {
    head(out, &[len32(values.len()), ordinal]);
    bitmap(values, out);
}

/// Encodes bits as runs without a header.
pub(super) fn bitmap(values: &[bool], out: &mut Vec<u8>) {
    runs(values, out, |group, out| out.push(pack(group)), |v, out| out.push(u8::from(v)));
}

/// Encodes runs of eight or more equal values, and groups of eight literals; the last group may be shorter.
fn runs<T: Copy + PartialEq>(
    values: &[T],
    out: &mut Vec<u8>,
    literals: impl Fn(&[T], &mut Vec<u8>),
    repeated: impl Fn(T, &mut Vec<u8>),
) {
    let flush = |pending: &[T], out: &mut Vec<u8>| {
        for part in pending.chunks(8 * MAX_GROUPS) {
            put_uleb128(out, (part.len().div_ceil(8) as u64) << 1 | 1);
            part.chunks(8).for_each(|group| literals(group, out));
        }
    };
    let (mut rest, mut pending) = (values, 0);
    // `rest` begins with `pending` literals, a multiple of eight.
    while let Some(first) = rest.get(pending).copied() {
        let ahead = rest.get(pending..).unwrap_or_default();
        let run = ahead.iter().take_while(|v| **v == first).count();
        if run < MIN_RUN {
            pending = (pending + 8).min(rest.len());
            continue;
        }
        let (now, later) = rest.split_at(pending + run);
        flush(now.get(..pending).unwrap_or_default(), out);
        put_uleb128(out, (run as u64) << 1);
        repeated(first, out);
        (rest, pending) = (later, 0);
    }
    flush(rest, out);
}

pub(super) fn bit_shuffle<T: Word>(
    values: &[T],
    ordinal: u32,
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let padded = values.len().next_multiple_of(8);
    head(out, &[ordinal, len32(values.len()), 0, len32(padded), len32(T::SIZE)]);
    let (mut planes, mut compressed) = (Vec::new(), Vec::new());
    let mut whole = values.to_vec();
    whole.resize(padded, T::default());
    for chunk in whole.chunks(chunk_len(T::SIZE)) {
        planes.clear();
        compressed.clear();
        T::transpose(chunk, &mut planes);
        compressor.compress(Algorithm::Lz4, None, &planes, &mut compressed)?;
        out.extend(len32(compressed.len()).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    let size = len32(out.len() - start).to_le_bytes();
    if let Some(place) = out.get_mut(start + 8..start + 12) {
        place.copy_from_slice(&size);
    }
    debug_assert!(out.len() >= start + HEADER_LEN);
    Ok(())
}

/// Encodes unsigned 32-bit values (code words) in as few bytes as the largest value needs.
pub(super) fn bit_shuffle_narrow(
    values: &[u32],
    ordinal: u32,
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<()> {
    let narrow = |v: &u32| u8::try_from(*v);
    if let Ok(bytes) = values.iter().map(narrow).collect::<std::result::Result<Vec<u8>, _>>() {
        return bit_shuffle(&bytes, ordinal, compressor, out);
    }
    match values.iter().map(|v| u16::try_from(*v)).collect::<std::result::Result<Vec<u16>, _>>() {
        Ok(shorts) => bit_shuffle(&shorts, ordinal, compressor, out),
        Err(_) => bit_shuffle(values, ordinal, compressor, out),
    }
}

/// Encodes values in groups of four; the last group is padded with zeros.
fn groups(values: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
    let mut values = values.peekable();
    while values.peek().is_some() {
        let group = std::array::from_fn(|_| values.next().unwrap_or(0));
        put_group_varint(out, group);
    }
}

pub(super) fn group_varint(values: &[u32], ordinal: u32, out: &mut Vec<u8>) {
    let least = values.iter().copied().min().unwrap_or(0);
    put_group_varint(out, [len32(values.len()), least, ordinal, 0]);
    groups(values.iter().map(|v| v - least), out);
}

pub(super) fn plain_bytes(values: &[&[u8]], ordinal: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let bytes: usize = values.iter().map(|v| v.len()).sum();
    head(out, &[ordinal, len32(values.len()), len32(crate::encoding::binary::HEADER_LEN + bytes)]);
    let mut places = Vec::with_capacity(values.len());
    for value in values {
        places.push(len32(out.len() - start));
        out.extend_from_slice(value);
    }
    groups(places.into_iter(), out);
}

pub(super) fn prefix(values: &[&[u8]], ordinal: u32, out: &mut Vec<u8>) {
    let start = out.len();
    put_group_varint(out, [len32(values.len()), ordinal, len32(RESTART_INTERVAL), 0]);
    let mut restarts = Vec::new();
    let mut last: &[u8] = &[];
    for (i, value) in values.iter().enumerate() {
        if i > 0 && i % RESTART_INTERVAL == 0 {
            restarts.push(len32(out.len() - start));
            last = &[];
        }
        let shared = last.iter().zip(value.iter()).take_while(|(a, b)| a == b).count();
        put_uleb128(out, shared as u64);
        put_uleb128(out, (value.len() - shared) as u64);
        out.extend_from_slice(value.get(shared..).unwrap_or_default());
        last = value;
    }
    head(out, &restarts);
    head(out, &[len32(restarts.len())]);
}
