//! Encodes PATCHED_BASE: most differences from the minimum are narrow; the high bits of the others are stored
//! separately.
//!
//! ```text
//! header (2 bytes) | base bytes - 1 : 3, patch width : 5 | gap width - 1 : 3, patches : 5 |
//! base, BE, highest bit = sign | low bits of value - base | for each patch: gap to the last patched value, high bits |
//! ```
//!
//! A gap above 255 is stored as several: entries with gap 255 and no bits come first.

use coldframe_encoding::Result;
use coldframe_encoding::bits::{BitOrder, pack};

use super::{MAX_RUN, PATCHED_BASE, bits_of, closest_width, low_byte, put_header, width_code};

/// The format cannot store a larger base.
const MAX_BASE: u64 = 1 << 56;

/// Maximum number of bits of a gap.
const MAX_GAP_BITS: u32 = 8;

/// Writes `values` with the minimum `min` and the maximum `min + range`. Writes nothing and returns false if
/// that saves no bytes.
pub(super) fn put(values: &[i64], min: i64, range: i64, out: &mut Vec<u8>) -> Result<bool> {
    let mut above = [0u64; MAX_RUN];
    above.iter_mut().zip(values).for_each(|(to, v)| *to = v.abs_diff(min));
    let Some(above) = above.get_mut(..values.len()) else { return Ok(false) };
    let widest = closest_width(bits_of(range.cast_unsigned()));
    let mut width = width_of_most(above);
    if widest == width || min.unsigned_abs() >= MAX_BASE {
        return Ok(false);
    }
    let mut patch_width = closest_width(widest - width);
    if patch_width == 64 {
        // A patch and its gap must fit 64 bits.
        (patch_width, width) = (56, 8);
    }
    let patches = split(above, width, patch_width);
    put_header(PATCHED_BASE, width_code(width), values.len(), out);
    let base_bytes = (closest_width(bits_of(min.unsigned_abs())) + 1).div_ceil(8);
    let count = low_byte(patches.entries.len() as u64);
    out.push(low_byte(u64::from(base_bytes - 1)) << 5 | width_code(patch_width));
    out.push(low_byte(u64::from(patches.gap_width - 1)) << 5 | count);
    let sign = if min < 0 { 1 << (base_bytes * 8 - 1) } else { 0 };
    let base = min.unsigned_abs() | sign;
    out.extend(base.to_be_bytes().into_iter().skip(8 - base_bytes as usize));
    pack(BitOrder::Msb, width, above, out)?;
    pack(BitOrder::Msb, closest_width(patches.gap_width + patch_width), &patches.entries, out)?;
    Ok(true)
}

/// The width that is enough for nineteen of twenty values.
fn width_of_most(values: &[u64]) -> u32 {
    let mut counts = [0usize; 65];
    for value in values {
        if let Some(count) = counts.get_mut(bits_of(*value) as usize) {
            *count += 1;
        }
    }
    // Java's (int) (length * (1.0 - 0.95)).
    let mut left = values.len() / 20;
    for (bits, count) in counts.into_iter().enumerate().rev() {
        if count > left {
            return closest_width(u32::try_from(bits).unwrap_or(64));
        }
        left -= count;
    }
    1
}

struct Patches {
    gap_width: u32,
    entries: Vec<u64>,
}

/// Limits `values` to `width` bits and returns the high bits as patches.
fn split(values: &mut [u64], width: u32, patch_width: u32) -> Patches {
    let mask = (1u64 << width) - 1;
    let (mut patches, mut last) = (Vec::with_capacity(32), 0);
    for (i, value) in values.iter_mut().enumerate() {
        if *value > mask {
            patches.push(((i - last) as u64, *value >> width));
            *value &= mask;
            last = i;
        }
    }
    let max_gap = patches.iter().map(|(gap, _)| *gap).max().unwrap_or(0);
    let gap_width = closest_width(bits_of(max_gap)).min(MAX_GAP_BITS);
    let mut entries = Vec::with_capacity(patches.len() + 2);
    for (mut gap, bits) in patches {
        while gap > 255 {
            entries.push(255 << patch_width);
            gap -= 255;
        }
        entries.push(gap << patch_width | bits);
    }
    Patches { gap_width, entries }
}
