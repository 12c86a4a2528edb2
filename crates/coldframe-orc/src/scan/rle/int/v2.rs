//! Decodes version 2 of integer RLE.
//!
//! ```text
//! SHORT_REPEAT  | 00 width-1:3 count-3:3 | value BE |
//! DIRECT        | 01 width:5 count-1:9 | values packed |
//! PATCHED_BASE  | 10 width:5 count-1:9 | base width-1:3 patch width:5 | gap width-1:3 patches:5 | base BE, sign bit | values | patches |
//! DELTA         | 11 width:5 count-1:9 | base varint | first delta zigzag | further deltas packed |
//! ```
//!
//! Widths are coded: 0 to 23 are 1 to 24 bits, then 26, 28, 30, 32, 40, 48, 56, 64; in DELTA, code 0 means
//! that all deltas equal the first. Packed values have their highest bit first. Deltas take the sign of the
//! first one.

use coldframe_encoding::bits::{self, BitOrder};
use coldframe_encoding::varint::unzigzag;
use coldframe_encoding::{Error, Result};

use super::{MAX_RUN, Progress, Word, narrow, short, signed_varint, varint, wrap};

/// Whether values are signed, and whether negative ones may be stored as unsigned values of the same width.
pub(super) type Signs = (bool, bool);

/// Maximum number of bytes of a run, with patches.
pub(super) const MAX_BYTES: usize = 4 + 8 + MAX_RUN * 8 + 31 * 8;

#[derive(Clone, Copy)]
pub(super) enum Head {
    ShortRepeat { count: usize, bytes: usize },
    Direct { count: usize, width: u32 },
    PatchedBase { count: usize, width: u32 },
    Delta { count: usize, width: u32 },
}

impl Head {
    pub(super) fn count(self) -> usize {
        match self {
            Self::ShortRepeat { count, .. }
            | Self::Direct { count, .. }
            | Self::PatchedBase { count, .. }
            | Self::Delta { count, .. } => count,
        }
    }
}

/// The width that a code means.
fn width(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The smallest width with a code that holds `bits`.
fn closest_width(bits: u32) -> u32 {
    match bits {
        0 => 1,
        1..=24 => bits,
        25..=32 => bits.next_multiple_of(2),
        _ => bits.next_multiple_of(8),
    }
}

#[inline]
pub(super) fn head(bytes: &[u8]) -> Result<Head> {
    let first = *bytes.first().ok_or_else(short)?;
    if first >> 6 == 0 {
        let (count, bytes) = (usize::from(first & 7) + 3, usize::from(first >> 3 & 7) + 1);
        return Ok(Head::ShortRepeat { count, bytes });
    }
    let second = *bytes.get(1).ok_or_else(short)?;
    let count = (usize::from(first & 1) << 8 | usize::from(second)) + 1;
    let code = first >> 1 & 0x1f;
    Ok(match first >> 6 {
        1 => Head::Direct { count, width: width(code) },
        2 => Head::PatchedBase { count, width: width(code) },
        _ => Head::Delta { count, width: if code == 0 { 0 } else { width(code) } },
    })
}

/// Maximum number of values of a short repeat.
const MAX_REPEAT: usize = 10;

/// Decodes runs from the front of `bytes` while `out` has room and `bytes` has the longest possible run, or
/// the rest of the stream.
pub(super) fn runs<W: Word>(bytes: &[u8], signs: Signs, scratch: &mut Vec<u64>, out: &mut [W]) -> Progress {
    let last = bytes.len() < MAX_BYTES;
    let (mut rest, mut open) = (bytes, &mut *out);
    let mut result = Ok(());
    while !open.is_empty() && (rest.len() >= MAX_BYTES || last || rest.len() == bytes.len()) {
        match next(rest, signs, scratch, open) {
            Ok((0, _)) => break,
            Ok((count, used)) => {
                rest = rest.get(used..).unwrap_or_default();
                open = open.get_mut(count..).unwrap_or_default();
            }
            Err(e) => {
                result = Err(e);
                break;
            }
        }
    }
    let (used, left) = (bytes.len() - rest.len(), open.len());
    Progress { used, filled: out.len() - left, result }
}

/// Passes over whole runs at the front of `bytes` that have at most `most` values together. Returns the number of
/// their values and bytes.
pub(super) fn passed(bytes: &[u8], most: usize) -> (usize, usize) {
    let (mut values, mut used) = (0, 0);
    while values < most {
        let rest = bytes.get(used..).unwrap_or_default();
        let Ok(head) = head(rest) else { break };
        let Some(length) = length(rest, head).filter(|length| *length <= rest.len()) else { break };
        if head.count() > most - values {
            break;
        }
        values += head.count();
        used += length;
    }
    (values, used)
}

/// The number of bytes of a run; `None` if its head is cut off.
fn length(bytes: &[u8], head: Head) -> Option<usize> {
    match head {
        Head::ShortRepeat { bytes, .. } => Some(1 + bytes),
        Head::Direct { count, width } => Some(2 + bits::packed_len(count, width)),
        Head::PatchedBase { count, width } => {
            let [third, fourth] = *bytes.get(2..4).and_then(<[u8]>::first_chunk)?;
            let patch_bits = closest_width(u32::from(fourth >> 5) + 1 + self::width(third & 0x1f));
            let patches = bits::packed_len(usize::from(fourth & 0x1f), patch_bits);
            Some(5 + usize::from(third >> 5) + bits::packed_len(count, width) + patches)
        }
        Head::Delta { count, width } => {
            let (_, _, at) = delta_start(bytes, false).ok()?;
            Some(at + bits::packed_len(count.saturating_sub(2), width))
        }
    }
}

/// Decodes the next run into the front of `open`; returns the number of its values and bytes. 0 values if
/// there is no room.
#[inline(always)]
fn next<W: Word>(
    rest: &[u8],
    signs: Signs,
    scratch: &mut Vec<u64>,
    open: &mut [W],
) -> Result<(usize, usize)> {
    let (signed, _) = signs;
    // The most frequent runs in columns that change often: a loop of fixed length.
    if let (Some(window), Some(out)) = (rest.first_chunk::<9>(), open.first_chunk_mut::<MAX_REPEAT>())
        && let [first, value @ ..] = *window
        && first >> 6 == 0
    {
        let (count, bytes) = (usize::from(first & 7) + 3, u32::from(first >> 3 & 7) + 1);
        let value = u64::from_be_bytes(value) >> (64 - 8 * bytes);
        *out = [narrow(if signed { unzigzag(value) } else { value.cast_signed() })?; MAX_REPEAT];
        return Ok((count, 1 + bytes as usize));
    }
    let head = head(rest)?;
    let count = head.count();
    if let Head::Direct { width, .. } = head
        && let Some(used) = short_direct::<W>(rest, width, count, signed, open)
    {
        return Ok((count, used));
    }
    let Some(out) = open.get_mut(..count) else { return Ok((0, 0)) };
    run(rest, head, signs, scratch, out).map(|used| (count, used))
}

/// Decodes a short run of narrow values, which are frequent where values often repeat, in a loop of fixed
/// length: it writes 16 values, and the next run overwrites those after its end. Returns the run's length in
/// bytes; `None` for other runs, or if there is no room.
#[inline(always)]
fn short_direct<W: Word>(
    rest: &[u8],
    width: u32,
    count: usize,
    signed: bool,
    open: &mut [W],
) -> Option<usize> {
    if width > 8 || count > 16 {
        return None;
    }
    let window = rest.get(2..)?.first_chunk::<16>()?;
    let out = open.first_chunk_mut::<16>()?;
    let (_, behind) = window.split_at_checked(width as usize)?;
    let (halves, _) = out.as_chunks_mut::<8>();
    for (half, packed) in halves.iter_mut().zip([window.as_slice(), behind]) {
        // The first of eight values is in the highest bits.
        let mut word = u64::from_be_bytes(*packed.first_chunk()?);
        for to in half {
            let value = W::from_low_bits(word >> (64 - width));
            *to = if signed { value.unzigzag() } else { value };
            word <<= width;
        }
    }
    Some(2 + bits::packed_len(count, width))
}

/// The value of a run of one repeated value, and the run's length in bytes; `None` for other runs.
pub(super) fn repeated(bytes: &[u8], head: Head, signed: bool) -> Result<Option<(i64, usize)>> {
    match head {
        Head::ShortRepeat { bytes: n, .. } => {
            let value = big_endian(bytes.get(1..=n).ok_or_else(short)?);
            Ok(Some((if signed { unzigzag(value) } else { value.cast_signed() }, 1 + n)))
        }
        Head::Delta { width: 0, .. } => {
            let (base, first, used) = delta_start(bytes, signed)?;
            Ok((first == 0).then_some((base, used)))
        }
        _ => Ok(None),
    }
}

/// A delta run's first value, its first delta, and the number of bytes before the packed deltas.
#[inline(always)]
fn delta_start(bytes: &[u8], signed: bool) -> Result<(i64, i64, usize)> {
    let (base, base_len) = signed_varint(bytes.get(2..).unwrap_or_default(), signed)?;
    let (first, first_len) = varint(bytes.get(2 + base_len..).unwrap_or_default())?;
    Ok((base, unzigzag(first), 2 + base_len + first_len))
}

/// Decodes the run at the front of `bytes` into `out`, which has the run's number of values; returns its
/// length in bytes.
#[inline]
pub(super) fn run<W: Word>(
    bytes: &[u8],
    head: Head,
    (signed, wraps): Signs,
    scratch: &mut Vec<u64>,
    out: &mut [W],
) -> Result<usize> {
    match head {
        Head::ShortRepeat { bytes: n, .. } => {
            let value = big_endian(bytes.get(1..=n).ok_or_else(short)?);
            out.fill(narrow(if signed { unzigzag(value) } else { value.cast_signed() })?);
            Ok(1 + n)
        }
        Head::Direct { width, .. } => direct(bytes, width, signed, scratch, out),
        Head::PatchedBase { width, .. } => patched(bytes, width, wraps, scratch, out),
        Head::Delta { width, .. } => delta(bytes, width, signed, scratch, out),
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn direct<W: Word>(
    bytes: &[u8],
    width: u32,
    signed: bool,
    scratch: &mut Vec<u64>,
    out: &mut [W],
) -> Result<usize> {
    let packed = bytes.get(2..).unwrap_or_default();
    let used = 2 + bits::packed_len(out.len(), width);
    // A zigzag value that uses all bits fits; an unsigned value would become negative.
    if width < W::BITS || (width == W::BITS && (signed || W::BITS == 64)) {
        bits::unpack(BitOrder::Msb, width, packed, out)?;
        if signed {
            out.iter_mut().for_each(|v| *v = v.unzigzag());
        }
        return Ok(used);
    }
    if scratch.len() < MAX_RUN {
        scratch.resize(MAX_RUN, 0);
    }
    let wide = scratch.get_mut(..out.len()).unwrap_or_default();
    bits::unpack(BitOrder::Msb, width, packed, wide)?;
    for (to, from) in out.iter_mut().zip(wide) {
        *to = narrow(if signed { unzigzag(*from) } else { from.cast_signed() })?;
    }
    Ok(used)
}

fn patched<W: Word>(
    bytes: &[u8],
    width: u32,
    wraps: bool,
    scratch: &mut Vec<u64>,
    out: &mut [W],
) -> Result<usize> {
    let [third, fourth] = *bytes.get(2..4).and_then(<[u8]>::first_chunk).ok_or_else(short)?;
    let base_len = usize::from(third >> 5) + 1;
    let patch_width = self::width(third & 0x1f);
    let gap_width = u32::from(fourth >> 5) + 1;
    let patches = usize::from(fourth & 0x1f);
    let stored = big_endian(bytes.get(4..4 + base_len).ok_or_else(short)?);
    let sign = 1u64 << (base_len * 8 - 1);
    let base =
        if stored & sign == 0 { stored.cast_signed() } else { (stored & !sign).cast_signed().wrapping_neg() };
    let mut at = 4 + base_len;
    let count = out.len();
    if scratch.len() < MAX_RUN + 31 {
        scratch.resize(MAX_RUN + 31, 0);
    }
    let (values, list) = scratch.split_at_mut_checked(MAX_RUN).unwrap_or_default();
    let values = values.get_mut(..count).unwrap_or_default();
    let list = list.get_mut(..patches).unwrap_or_default();
    bits::unpack(BitOrder::Msb, width, bytes.get(at..).unwrap_or_default(), values)?;
    at += bits::packed_len(count, width);
    if gap_width + patch_width > 64 {
        return Err(Error::corrupt(format!(
            "expected patches of at most 64 bits, found {gap_width} and {patch_width}"
        )));
    }
    let patch_bits = closest_width(gap_width + patch_width);
    bits::unpack(BitOrder::Msb, patch_bits, bytes.get(at..).unwrap_or_default(), list)?;
    at += bits::packed_len(patches, patch_bits);
    let mut place = 0usize;
    for entry in list {
        let gap = entry.checked_shr(patch_width).unwrap_or(0);
        let patch = *entry & (u64::MAX >> (64 - patch_width));
        place = place.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
        let Some(value) = values.get_mut(place) else {
            // A long gap is divided by entries without a patch; the last of them may be at the end.
            if patch == 0 && place == count {
                continue;
            }
            return Err(Error::corrupt(format!(
                "expected patches of {count} values, found one of value {place}"
            )));
        };
        *value |= patch.checked_shl(width).unwrap_or(0);
    }
    for (to, from) in out.iter_mut().zip(values) {
        *to = wrap(base.wrapping_add(from.cast_signed()), wraps)?;
    }
    Ok(at)
}

fn delta<W: Word>(
    bytes: &[u8],
    width: u32,
    signed: bool,
    scratch: &mut Vec<u64>,
    out: &mut [W],
) -> Result<usize> {
    let (base, first, at) = delta_start(bytes, signed)?;
    if width == 0 {
        let mut value = base;
        for to in out {
            *to = narrow(value)?;
            value = value.wrapping_add(first);
        }
        return Ok(at);
    }
    let further = out.len().saturating_sub(2);
    if scratch.len() < MAX_RUN {
        scratch.resize(MAX_RUN, 0);
    }
    let deltas = scratch.get_mut(..further).unwrap_or_default();
    bits::unpack(BitOrder::Msb, width, bytes.get(at..).unwrap_or_default(), deltas)?;
    let second = base.wrapping_add(first);
    let mut starts = [base, second].into_iter();
    let (start, rest) = out.split_at_mut(out.len().min(2));
    for (to, value) in start.iter_mut().zip(&mut starts) {
        *to = narrow(value)?;
    }
    if first < 0 {
        sum(second, rest, deltas, i64::wrapping_sub)?;
    } else {
        sum(second, rest, deltas, i64::wrapping_add)?;
    }
    Ok(at + bits::packed_len(further, width))
}

/// Fills `out` with the values that follow `value` by `deltas`.
#[inline(always)]
fn sum<W: Word>(mut value: i64, out: &mut [W], deltas: &[u64], step: impl Fn(i64, i64) -> i64) -> Result<()> {
    for (to, delta) in out.iter_mut().zip(deltas) {
        value = step(value, delta.cast_signed());
        *to = narrow(value)?;
    }
    Ok(())
}
