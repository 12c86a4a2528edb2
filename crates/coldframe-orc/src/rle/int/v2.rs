//! Version 2.
//!
//! ```text
//! SHORT_REPEAT  | 00 width-1:3 count-3:3 | value BE |
//! DIRECT        | 01 width:5 count-1:9 | values packed |
//! PATCHED_BASE  | 10 width:5 count-1:9 | base width-1:3 patch width:5 | gap width-1:3 patches:5 | base BE, sign bit | values | patches |
//! DELTA         | 11 width:5 count-1:9 | base varint | first delta zigzag | further deltas packed |
//! ```
//!
//! Widths are coded: 0 to 23 are 1 to 24 bits, then 26, 28, 30, 32, 40, 48, 56, 64; in DELTA, 0 is no further deltas: the first
//! one holds on. Packed values have their highest bit first. Deltas take the sign of the first one.

use coldframe_encoding::bits::{self, BitOrder};
use coldframe_encoding::varint::unzigzag;
use coldframe_encoding::{Error, Result};

use super::{MAX_RUN, Word, narrow, short, signed_varint, varint};

/// Most bytes of a run: a patched one.
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

/// The bits that a width's code stands for.
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

/// The least width with a code that holds `bits`.
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

/// Decodes the run at the front of `bytes` into `out`, which has its number of values; returns its length in bytes.
#[inline]
pub(super) fn run<W: Word>(
    bytes: &[u8],
    head: Head,
    signed: bool,
    scratch: &mut Vec<u64>,
    out: &mut [W],
) -> Result<usize> {
    match head {
        Head::ShortRepeat { bytes: n, .. } => {
            let value = big_endian(bytes.get(1..=n).ok_or_else(short)?);
            let value = if signed { unzigzag(value) } else { value.cast_signed() };
            out.fill(narrow(value)?);
            Ok(1 + n)
        }
        Head::Direct { width, .. } => direct(bytes, width, signed, scratch, out),
        Head::PatchedBase { width, .. } => patched(bytes, width, scratch, out),
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
    // A zigzag value of all bits fits; one without a sign would be taken for negative.
    if width < W::BITS || (width == W::BITS && (signed || W::BITS == 64)) {
        bits::unpack(BitOrder::Msb, width, packed, out)?;
        if signed {
            out.iter_mut().for_each(|v| *v = v.unzigzag());
        }
        return Ok(used);
    }
    scratch.resize(MAX_RUN, 0);
    let wide = scratch.get_mut(..out.len()).unwrap_or_default();
    bits::unpack(BitOrder::Msb, width, packed, wide)?;
    for (to, from) in out.iter_mut().zip(wide) {
        *to = narrow(if signed { unzigzag(*from) } else { from.cast_signed() })?;
    }
    Ok(used)
}

fn patched<W: Word>(bytes: &[u8], width: u32, scratch: &mut Vec<u64>, out: &mut [W]) -> Result<usize> {
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
    scratch.resize(MAX_RUN + 31, 0);
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
            // A gap that is too wide for its bits is cut by entries without a patch, the last of which may be at the end.
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
        *to = narrow(base.wrapping_add(from.cast_signed()))?;
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
    let mut at = 2;
    let (base, used) = signed_varint(bytes.get(at..).unwrap_or_default(), signed)?;
    at += used;
    let (first, used) = varint(bytes.get(at..).unwrap_or_default())?;
    at += used;
    let first = unzigzag(first);
    if width == 0 {
        let mut value = base;
        for to in out {
            *to = narrow(value)?;
            value = value.wrapping_add(first);
        }
        return Ok(at);
    }
    let further = out.len().saturating_sub(2);
    scratch.resize(MAX_RUN, 0);
    let deltas = scratch.get_mut(..further).unwrap_or_default();
    bits::unpack(BitOrder::Msb, width, bytes.get(at..).unwrap_or_default(), deltas)?;
    at += bits::packed_len(further, width);
    let mut out = out.iter_mut();
    let mut value = base;
    if let Some(to) = out.next() {
        *to = narrow(value)?;
    }
    value = value.wrapping_add(first);
    if let Some(to) = out.next() {
        *to = narrow(value)?;
    }
    for (to, step) in out.zip(deltas) {
        let step = step.cast_signed();
        value = if first < 0 { value.wrapping_sub(step) } else { value.wrapping_add(step) };
        *to = narrow(value)?;
    }
    Ok(at)
}
