//! The bit transposition in BIT_SHUFFLE (the bitshuffle library's `bshuf_trans_bit_elem`).
//!
//! ```text
//! values  | value 0: byte 0 .. byte W-1 | value 1 | ...                            n values, a multiple of 8
//! planes  | plane 0 | plane 1 | ... | plane 8W-1 |                                 n / 8 bytes each
//!         plane 8k + j: bit j of byte k of every value; value i has bit i % 8 of byte i / 8
//! ```
//!
//! The code processes sixty-four values at a time: the eight planes of a byte are eight 64-bit words. Three
//! rounds of exchanges between words transpose the words. Then byte `g` of word `e` is the byte of value
//! `8g + e` to which the planes belong, and the bytes are stored at their positions. The arrays have constant
//! size, so the compiler can use the vector instructions of the target. For the most common values, of four
//! and eight bytes, `sse2` is faster; on processors with AVX-512 and GFNI, `avx512` is fastest for all sizes.
//! The tests compare each variant with the layout above, bit by bit.

use arrow_buffer::ArrowNativeType;

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod sse2;

/// Reverses the transposition for values of one byte. `false` if there are too few planes or the length of
/// `out` is not a multiple of 8.
pub(crate) fn untranspose_u8(planes: &[u8], out: &mut [u8]) -> bool {
    untranspose::<1, u8>(planes, out, |planes, stride, out| portable(planes, stride, out, u8::from_le_bytes))
}

/// Reverses the transposition for values of two bytes.
pub(crate) fn untranspose_u16(planes: &[u8], out: &mut [u16]) -> bool {
    untranspose::<2, u16>(planes, out, |planes, stride, out| {
        portable(planes, stride, out, u16::from_le_bytes)
    })
}

/// Reverses the transposition for values of four bytes.
pub(crate) fn untranspose_u32(planes: &[u8], out: &mut [u32]) -> bool {
    untranspose::<4, u32>(planes, out, narrow_u32)
}

/// Reverses the transposition for values of eight bytes.
pub(crate) fn untranspose_u64(planes: &[u8], out: &mut [u64]) -> bool {
    untranspose::<8, u64>(planes, out, narrow_u64)
}

/// Reverses the transposition for values of sixteen bytes.
pub(crate) fn untranspose_i128(planes: &[u8], out: &mut [i128]) -> bool {
    untranspose::<16, i128>(planes, out, |planes, stride, out| {
        portable(planes, stride, out, i128::from_le_bytes)
    })
}

/// Uses AVX-512 for whole tiles of 512 values if the processor has it, and calls `narrow` for the rest.
#[inline(always)]
fn untranspose<const W: usize, T: ArrowNativeType>(
    planes: &[u8],
    out: &mut [T],
    narrow: impl Fn(&[u8], usize, &mut [T]),
) -> bool {
    let stride = out.len() / 8;
    if !out.len().is_multiple_of(8) || planes.len() < stride * 8 * W {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if avx512::available() {
        let (tiles, rest) = out.as_chunks_mut::<{ avx512::TILE }>();
        #[expect(unsafe_code, reason = "22 GB/s against 4.5 GB/s")]
        // SAFETY: the function only requires instructions that were just detected.
        unsafe {
            avx512::tiles::<W, T>(planes, stride, tiles);
        }
        narrow(planes.get(tiles.len() * avx512::TILE / 8..).unwrap_or_default(), stride, rest);
        return true;
    }
    narrow(planes, stride, out);
    true
}

fn narrow_u32(planes: &[u8], stride: usize, out: &mut [u32]) {
    tiled(planes, stride, out, u32::from_le_bytes, |planes, stride, tiles| {
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "5.7 GB/s against 4.3 GB/s")]
        // SAFETY: the function only requires SSE2, which is part of x86-64.
        unsafe {
            sse2::tiles_u32(planes, stride, tiles);
        }
        #[cfg(not(target_arch = "x86_64"))]
        portable_tiles(planes, stride, tiles, &u32::from_le_bytes);
    });
}

fn narrow_u64(planes: &[u8], stride: usize, out: &mut [u64]) {
    tiled(planes, stride, out, u64::from_le_bytes, |planes, stride, tiles| {
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "5.5 GB/s against 3.3 GB/s")]
        // SAFETY: the function only requires SSE2, which is part of x86-64.
        unsafe {
            sse2::tiles_u64(planes, stride, tiles);
        }
        #[cfg(not(target_arch = "x86_64"))]
        portable_tiles(planes, stride, tiles, &u64::from_le_bytes);
    });
}

/// Reverses the transposition in portable code.
fn portable<const W: usize, T: Copy>(
    planes: &[u8],
    stride: usize,
    out: &mut [T],
    value: impl Fn([u8; W]) -> T,
) {
    tiled(planes, stride, out, &value, |planes, stride, tiles| portable_tiles(planes, stride, tiles, &value));
}

/// Exchanges, between words `i` and `i + STEP`, the bits that `MASK` selects.
#[inline(always)]
fn exchange<const STEP: usize>(lanes: &mut [u64; 8], mask: u64) {
    let mut i = 0;
    while i < 8 {
        if i & STEP == 0
            && let [Some(low), Some(high)] = [lanes.get(i).copied(), lanes.get(i + STEP).copied()]
        {
            let moved = ((low >> STEP) ^ high) & mask;
            if let Some(place) = lanes.get_mut(i) {
                *place = low ^ moved << STEP;
            }
            if let Some(place) = lanes.get_mut(i + STEP) {
                *place = high ^ moved;
            }
        }
        i += 1;
    }
}

/// Transposes the 8 x 8 bits at each byte position of eight words: bit `e` of byte `g` of word `j` becomes bit `j` of
/// byte `g` of word `e`.
#[inline(always)]
fn turn(lanes: &mut [u64; 8]) {
    exchange::<1>(lanes, 0x5555_5555_5555_5555);
    exchange::<2>(lanes, 0x3333_3333_3333_3333);
    exchange::<4>(lanes, 0x0f0f_0f0f_0f0f_0f0f);
}

/// Divides values into tiles of 64 and calls `whole` for all full tiles; handles the rest itself. There must
/// be enough planes.
#[inline(always)]
fn tiled<const W: usize, T: Copy>(
    planes: &[u8],
    stride: usize,
    out: &mut [T],
    value: impl Fn([u8; W]) -> T,
    whole: impl Fn(&[u8], usize, &mut [[T; 64]]),
) {
    let (tiles, rest) = out.as_chunks_mut::<64>();
    let tiled = tiles.len();
    whole(planes, stride, tiles);
    for (g, group) in rest.chunks_exact_mut(8).enumerate() {
        let mut turned = [[[0u8; 8]; 8]; W];
        for (k, bytes) in turned.iter_mut().enumerate() {
            let mut lanes = load::<1>(planes, stride, k, tiled * 8 + g);
            turn(&mut lanes);
            *bytes = lanes.map(u64::to_le_bytes);
        }
        for (e, place) in group.iter_mut().enumerate() {
            *place = value(gather(&turned, e, 0));
        }
    }
}

/// Reverses the transposition for tiles of 64 values, in portable code.
fn portable_tiles<const W: usize, T: Copy>(
    planes: &[u8],
    stride: usize,
    tiles: &mut [[T; 64]],
    value: &impl Fn([u8; W]) -> T,
) {
    for (t, tile) in tiles.iter_mut().enumerate() {
        let mut turned = [[[0u8; 8]; 8]; W];
        for (k, bytes) in turned.iter_mut().enumerate() {
            let mut lanes = load::<8>(planes, stride, k, t * 8);
            turn(&mut lanes);
            *bytes = lanes.map(u64::to_le_bytes);
        }
        store(&turned, tile, value);
    }
}

/// From each of the eight planes of byte `k`, the `N` bytes that begin at `at`.
#[inline(always)]
fn load<const N: usize>(planes: &[u8], stride: usize, k: usize, at: usize) -> [u64; 8] {
    std::array::from_fn(|j| {
        let from = (k * 8 + j) * stride + at;
        let bytes = planes.get(from..).and_then(|p| p.first_chunk::<N>());
        let mut lane = [0u8; 8];
        if let (Some(bytes), Some(place)) = (bytes, lane.first_chunk_mut::<N>()) {
            *place = *bytes;
        }
        u64::from_le_bytes(lane)
    })
}

#[inline(always)]
fn gather<const W: usize>(turned: &[[[u8; 8]; 8]; W], e: usize, g: usize) -> [u8; W] {
    std::array::from_fn(|k| {
        turned.get(k).and_then(|lanes| lanes.get(e)).and_then(|lane| lane.get(g)).copied().unwrap_or(0)
    })
}

#[inline(always)]
fn store<const W: usize, T: Copy>(
    turned: &[[[u8; 8]; 8]; W],
    tile: &mut [T; 64],
    value: &impl Fn([u8; W]) -> T,
) {
    let (groups, _) = tile.as_chunks_mut::<8>();
    for (g, group) in groups.iter_mut().enumerate() {
        for (e, place) in group.iter_mut().enumerate() {
            *place = value(gather(turned, e, g));
        }
    }
}

/// Transposes values (a multiple of 8) to planes and appends them to `out`.
pub(crate) fn transpose<const W: usize, T: Copy>(
    values: &[T],
    out: &mut Vec<u8>,
    bytes: impl Fn(T) -> [u8; W],
) {
    let stride = values.len() / 8;
    let start = out.len();
    out.resize(start + stride * 8 * W, 0);
    let planes = out.get_mut(start..).unwrap_or_default();
    for (g, group) in values.chunks_exact(8).enumerate() {
        let group: Vec<[u8; W]> = group.iter().map(|v| bytes(*v)).collect();
        for k in 0..W {
            let mut lanes: [u64; 8] =
                std::array::from_fn(|e| group.get(e).and_then(|b| b.get(k)).copied().map_or(0, u64::from));
            turn(&mut lanes);
            for (j, lane) in lanes.iter().enumerate() {
                if let Some(place) = planes.get_mut((k * 8 + j) * stride + g) {
                    let [low, ..] = lane.to_le_bytes();
                    *place = low;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Word;
    use coldframe_testing::guarded::Guarded;
    use proptest::prelude::*;

    /// Transposes bit by bit, as the layout describes.
    fn naive<T: Word>(values: &[T]) -> Vec<u8> {
        let n = values.len();
        let mut planes = vec![0u8; n * T::SIZE];
        for (i, value) in values.iter().enumerate() {
            let mut bytes = Vec::new();
            value.put(&mut bytes);
            for bit in 0..8 * T::SIZE {
                let set = bytes[bit / 8] >> (bit % 8) & 1;
                planes[bit * (n / 8) + i / 8] |= set << (i % 8);
            }
        }
        planes
    }

    /// Checks that the processor's fastest variant, the variant for any x86-64 (`narrow`) and the portable
    /// variant agree.
    fn agrees<const W: usize, T: Word + PartialEq>(
        values: &[T],
        value: impl Fn([u8; W]) -> T,
        narrow: impl Fn(&[u8], usize, &mut [T]),
    ) {
        let values = &values[..values.len() & !7];
        let planes = naive(values);
        let mut fast = vec![];
        T::transpose(values, &mut fast);
        assert_eq!(fast, planes);
        // Puts each end of input and output next to an inaccessible page once.
        for (planes, mut back) in [
            (Guarded::at_end(&planes), Guarded::at_end(values)),
            (Guarded::at_start(&planes), Guarded::at_start(values)),
        ] {
            back.fill(T::default());
            assert!(T::untranspose(&planes, &mut back));
            assert!(*back == *values);
            back.fill(T::default());
            narrow(&planes, values.len() / 8, &mut back);
            assert!(*back == *values);
            back.fill(T::default());
            portable(&planes, values.len() / 8, &mut back, &value);
            assert!(*back == *values);
            assert!(values.is_empty() || !T::untranspose(&planes[1..], &mut back));
        }
    }

    proptest! {
        #[test]
        fn planes_agree_with_the_layout(
            bytes in proptest::collection::vec(any::<u8>(), 0..1700),
            numbers in proptest::collection::vec(any::<u32>(), 0..1700),
            longs in proptest::collection::vec(any::<u64>(), 0..1300),
            wide in proptest::collection::vec(any::<i128>(), 0..1200),
        ) {
            agrees(&bytes, u8::from_le_bytes, |p, s, out| portable(p, s, out, u8::from_le_bytes));
            let halves: Vec<u16> = numbers.iter().map(|w| u16::try_from(w >> 16).unwrap()).collect();
            agrees(&halves, u16::from_le_bytes, |p, s, out| portable(p, s, out, u16::from_le_bytes));
            agrees(&numbers, u32::from_le_bytes, narrow_u32);
            agrees(&longs, u64::from_le_bytes, narrow_u64);
            agrees(&wide, i128::from_le_bytes, |p, s, out| portable(p, s, out, i128::from_le_bytes));
        }
    }
}
