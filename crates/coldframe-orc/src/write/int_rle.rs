//! Encodes integer RLE, version 2.
//!
//! ```text
//! SHORT_REPEAT | 00 bytes-1:3 count-3:3 | value BE |                                    3..=10 equal values
//! DIRECT       | 01 width:5 length-1:9 | values |
//! PATCHED_BASE | 10 width:5 length-1:9 | base bytes-1:3 patch width:5 | gap width-1:3 patches:5 | base | values | patches |
//! DELTA        | 11 width:5 length-1:9 | base varint | first delta varint | deltas |    width 0: all deltas are the first
//! ```
//!
//! ORC specification v1, "Integer Run Length Encoding, version 2". The encoding and the end of a run are
//! chosen as in Java's `RunLengthIntegerWriterV2`, so a file is as large as Java's:
//!
//! 1. Three equal values end a run and begin a run of equal values: SHORT_REPEAT up to 10, DELTA with delta 0
//!    above.
//! 2. Other runs end at 512 values. Runs of up to 3 values are DIRECT.
//! 3. Equal deltas, and monotonic values whose first two differ, are DELTA.
//! 4. A run is PATCHED_BASE if nine tenths of the values need at least two bits less than the widest value,
//!    and nineteen twentieths of the differences from the minimum fit a smaller width than the widest
//!    difference.
//! 5. All other runs are DIRECT.

mod patched;

use coldframe_encoding::Result;
use coldframe_encoding::bits::{BitOrder, pack};
use coldframe_encoding::varint::{put_uleb128, put_zigzag};

/// Maximum number of values of a run.
pub(super) const MAX_RUN: usize = 512;
const MIN_REPEAT: usize = 3;
const MAX_SHORT_REPEAT: usize = 10;

const SHORT_REPEAT: u8 = 0;
const DIRECT: u8 = 1;
const PATCHED_BASE: u8 = 2;
const DELTA: u8 = 3;

/// Encodes integers. Pending values belong to the run that is written next.
#[derive(Debug)]
pub(super) struct IntRle {
    signed: bool,
    /// Whether widths are rounded up to the widths that unpack fastest.
    aligned: bool,
    literals: Box<[i64; MAX_RUN]>,
    pending: usize,
    /// The value of all pending values, if they are equal and at least three.
    repeat: Option<i64>,
}

impl IntRle {
    pub(super) fn new(signed: bool, aligned: bool) -> Self {
        Self { signed, aligned, literals: Box::new([0; MAX_RUN]), pending: 0, repeat: None }
    }

    /// Whether widths are rounded up.
    pub(super) fn is_aligned(&self) -> bool {
        self.aligned
    }

    /// Number of values in the current run.
    pub(super) fn pending(&self) -> u64 {
        self.pending as u64
    }

    pub(super) fn write(&mut self, mut values: &[i64], out: &mut Vec<u8>) -> Result<()> {
        while !values.is_empty() {
            values = match self.repeat {
                Some(value) => self.extend_repeat(value, values, out),
                None => self.extend(values, out)?,
            };
        }
        Ok(())
    }

    /// Takes equal values from the front, and ends the run at the first different value.
    fn extend_repeat<'v>(&mut self, value: i64, values: &'v [i64], out: &mut Vec<u8>) -> &'v [i64] {
        let room = MAX_RUN - self.pending;
        let equal = values.iter().take(room).take_while(|v| **v == value).count();
        self.pending += equal;
        let rest = values.get(equal..).unwrap_or_default();
        if self.pending == MAX_RUN || !rest.is_empty() {
            self.put_repeat(value, out);
        }
        rest
    }

    /// Takes values from the front, up to the third of three equal values or to the maximum length of a run.
    fn extend<'v>(&mut self, values: &'v [i64], out: &mut Vec<u8>) -> Result<&'v [i64]> {
        let literals = self.literals.get(..self.pending).unwrap_or_default();
        let (mut before, mut last) = match literals {
            [.., before, last] => (*before, *last),
            [last] => (!*last, *last),
            [] => values.first().map_or((0, 0), |v| (*v, !*v)),
        };
        let (mut taken, mut triple) = (0, false);
        for value in values.iter().take(MAX_RUN - self.pending) {
            taken += 1;
            if *value == last && last == before {
                triple = true;
                break;
            }
            (before, last) = (last, *value);
        }
        let (front, rest) = values.split_at(taken);
        let places = self.literals.iter_mut().skip(self.pending);
        places.zip(front).for_each(|(place, value)| *place = *value);
        self.pending += taken;
        if triple {
            self.pending -= MIN_REPEAT;
            if self.pending > 0 {
                self.put_run(out)?;
            }
            (self.pending, self.repeat) = (MIN_REPEAT, Some(last));
        } else if self.pending == MAX_RUN {
            self.put_run(out)?;
        }
        Ok(rest)
    }

    /// Ends the current run.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(value) = self.repeat {
            self.put_repeat(value, out);
        } else if self.pending > 0 {
            self.put_run(out)?;
        }
        Ok(())
    }

    fn put_repeat(&mut self, value: i64, out: &mut Vec<u8>) {
        if self.pending <= MAX_SHORT_REPEAT {
            let stored = if self.signed { zigzag(value) } else { value.cast_unsigned() };
            let bytes = bits_of(stored).div_ceil(8).max(1);
            let count = low_byte((self.pending - MIN_REPEAT) as u64);
            out.push(SHORT_REPEAT << 6 | low_byte(u64::from(bytes - 1)) << 3 | count);
            out.extend(stored.to_be_bytes().into_iter().skip(8 - bytes as usize));
        } else {
            put_header(DELTA, 0, self.pending, out);
            self.put_base(value, out);
            put_zigzag(out, 0);
        }
        (self.pending, self.repeat) = (0, None);
    }

    fn put_base(&self, value: i64, out: &mut Vec<u8>) {
        if self.signed { put_zigzag(out, value) } else { put_uleb128(out, value.cast_unsigned()) }
    }

    /// Writes the pending values in the best encoding.
    fn put_run(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let literals = self.literals.get(..self.pending).unwrap_or_default();
        self.put_values(literals, out)?;
        self.pending = 0;
        Ok(())
    }

    fn put_values(&self, values: &[i64], out: &mut Vec<u8>) -> Result<()> {
        if values.len() <= MIN_REPEAT {
            return self.put_direct(&self.stored(values), values.len(), out);
        }
        let shape = RunShape::of(values);
        // From here on, the difference of any two values fits 64 bits.
        let Some(range) = shape.max.checked_sub(shape.min) else {
            return self.put_direct(&self.stored(values), values.len(), out);
        };
        if shape.fixed_delta || (shape.delta != 0 && (shape.rising || shape.falling)) {
            return self.put_delta(values, &shape, out);
        }
        let stored = self.stored(values);
        let used = stored.get(..values.len()).unwrap_or_default();
        let widest = closest_width(bits_of(used.iter().fold(0, |all, v| all | v)));
        if let Some(bound) = bound_below(widest) {
            let wide = used.iter().filter(|v| **v > bound).count();
            // Java's (int) (length * (1.0 - 0.9)).
            let is_patchable = wide <= (values.len() - 1) / 10;
            if is_patchable && patched::put(values, shape.min, range, out)? {
                return Ok(());
            }
        }
        self.put_direct(&stored, values.len(), out)
    }

    /// The values as they are stored, without a sign.
    fn stored(&self, values: &[i64]) -> [u64; MAX_RUN] {
        let mut stored = [0; MAX_RUN];
        if self.signed {
            stored.iter_mut().zip(values).for_each(|(to, v)| *to = zigzag(*v));
        } else {
            stored.iter_mut().zip(values).for_each(|(to, v)| *to = v.cast_unsigned());
        }
        stored
    }

    fn put_direct(&self, stored: &[u64; MAX_RUN], length: usize, out: &mut Vec<u8>) -> Result<()> {
        let stored = stored.get(..length).unwrap_or_default();
        let width = self.width(closest_width(bits_of(stored.iter().fold(0, |all, v| all | v))));
        put_header(DIRECT, width_code(width), length, out);
        pack(BitOrder::Msb, width, stored, out)
    }

    fn put_delta(&self, values: &[i64], shape: &RunShape, out: &mut Vec<u8>) -> Result<()> {
        let Some((first, rest)) = values.split_first() else { return Ok(()) };
        if shape.fixed_delta {
            put_header(DELTA, 0, values.len(), out);
            self.put_base(*first, out);
            put_zigzag(out, shape.delta);
            return Ok(());
        }
        // Width 0 means that all deltas are equal; it has the code of width 1.
        let width = self.width(closest_width(bits_of(shape.max_delta.cast_unsigned()))).max(2);
        put_header(DELTA, width_code(width), values.len(), out);
        self.put_base(*first, out);
        put_zigzag(out, shape.delta);
        let mut deltas = [0; MAX_RUN];
        for (to, pair) in deltas.iter_mut().zip(rest.windows(2)) {
            if let [a, b] = pair {
                *to = b.abs_diff(*a);
            }
        }
        pack(BitOrder::Msb, width, deltas.get(..rest.len() - 1).unwrap_or_default(), out)
    }

    /// The width that `width` is rounded up to.
    fn width(&self, width: u32) -> u32 {
        match width {
            1 | 2 => width,
            3..=4 if self.aligned => 4,
            _ if self.aligned => width.next_multiple_of(8),
            _ => width,
        }
    }
}

/// The properties of a run that decide its encoding.
struct RunShape {
    min: i64,
    max: i64,
    rising: bool,
    falling: bool,
    fixed_delta: bool,
    /// Difference of the first two values.
    delta: i64,
    /// Largest absolute value of the other differences.
    max_delta: i64,
}

impl RunShape {
    fn of(values: &[i64]) -> Self {
        let (first, second) = match values {
            [a, b, ..] => (*a, *b),
            _ => (0, 0),
        };
        let delta = second.wrapping_sub(first);
        let mut shape = Self {
            min: first,
            max: first,
            rising: true,
            falling: true,
            fixed_delta: true,
            delta,
            max_delta: 0,
        };
        let mut last = first;
        for value in values {
            shape.min = shape.min.min(*value);
            shape.max = shape.max.max(*value);
            shape.rising &= last <= *value;
            shape.falling &= last >= *value;
            last = *value;
        }
        if !(shape.rising || shape.falling) {
            shape.fixed_delta = false;
            return shape;
        }
        last = second;
        for value in values.iter().skip(2) {
            let delta = value.wrapping_sub(last);
            shape.fixed_delta &= delta == shape.delta;
            shape.max_delta = shape.max_delta.max(delta.wrapping_abs());
            last = *value;
        }
        shape
    }
}

fn put_header(encoding: u8, width_code: u8, length: usize, out: &mut Vec<u8>) {
    let length = (length - 1).to_le_bytes();
    out.extend_from_slice(&[encoding << 6 | width_code << 1 | length[1], length[0]]);
}

pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// The storable widths, by code.
const WIDTHS: [u32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32,
    40, 48, 56, 64,
];

/// The smallest storable width of at least `bits` bits.
fn closest_width(bits: u32) -> u32 {
    match bits {
        0..=24 => bits.max(1),
        25..=32 => bits.next_multiple_of(2),
        _ => bits.next_multiple_of(8),
    }
}

fn width_code(width: u32) -> u8 {
    let code = WIDTHS.iter().position(|w| *w >= width).unwrap_or(WIDTHS.len() - 1);
    low_byte(code as u64)
}

/// The largest value of the widest width with at least two bits less than `width`.
fn bound_below(width: u32) -> Option<u64> {
    WIDTHS.iter().rev().find(|w| **w + 2 <= width).map(|w| (1u64 << w) - 1)
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests;
