//! The transposition of values of four and eight bytes with the byte interleaving of SSE2, which every x86-64 has.
//!
//! ```text
//! 8 planes x 8 bytes ──unpack──▶ 8 groups of 8 bytes, byte j from plane j ──3 exchanges──▶ byte k of 64 values in order
//! bytes 0..W of 64 values ──unpack──▶ values
//! ```
//!
//! Measured with chunks of 8 KiB on one core of a shared x86-64 machine: 5.5 GB/s for values of eight bytes,
//! while the portable form reaches 3.3 GB/s; 5.7 and 4.3 GB/s for values of four bytes. The functions are
//! safe to call if the processor has SSE2.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi64x, _mm_slli_epi64,
    _mm_srli_epi64, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
    _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_xor_si128,
};

/// Eight bytes of plane `k * 8 + j`; every caller has checked that they exist.
#[inline(always)]
fn plane(planes: &[u8], stride: usize, k: usize, j: usize, at: usize) -> i64 {
    let bytes = planes.get((k * 8 + j) * stride + at..).and_then(|p| p.first_chunk());
    bytes.map_or(0, |b| i64::from_le_bytes(*b))
}

/// Transposes the 8 x 8 bits in each half of the vector.
#[inline]
#[target_feature(enable = "sse2")]
fn turn(mut x: __m128i) -> __m128i {
    let t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64::<7>(x)), _mm_set1_epi64x(0x00aa_00aa_00aa_00aa));
    x = _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64::<7>(t));
    let t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64::<14>(x)), _mm_set1_epi64x(0x0000_cccc_0000_cccc));
    x = _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64::<14>(t));
    let t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64::<28>(x)), _mm_set1_epi64x(0xf0f0_f0f0));
    _mm_xor_si128(_mm_xor_si128(x, t), _mm_slli_epi64::<28>(t))
}

/// Byte `k` of 64 values: sixteen in each vector.
#[inline]
#[target_feature(enable = "sse2")]
fn bytes(planes: &[u8], stride: usize, k: usize, at: usize) -> [__m128i; 4] {
    let row = |j: usize| plane(planes, stride, k, j, at);
    let pair = |i: i64, j: i64| _mm_unpacklo_epi8(_mm_cvtsi64_si128(i), _mm_cvtsi64_si128(j));
    let (a0, a1) = (pair(row(0), row(4)), pair(row(1), row(5)));
    let (a2, a3) = (pair(row(2), row(6)), pair(row(3), row(7)));
    let (b0, b1) = (_mm_unpacklo_epi8(a0, a2), _mm_unpackhi_epi8(a0, a2));
    let (b2, b3) = (_mm_unpacklo_epi8(a1, a3), _mm_unpackhi_epi8(a1, a3));
    [
        turn(_mm_unpacklo_epi8(b0, b2)),
        turn(_mm_unpackhi_epi8(b0, b2)),
        turn(_mm_unpacklo_epi8(b1, b3)),
        turn(_mm_unpackhi_epi8(b1, b3)),
    ]
}

/// The two halves of a vector.
#[inline]
#[target_feature(enable = "sse2")]
fn halves(v: __m128i) -> [u64; 2] {
    let high = _mm_unpackhi_epi64(v, v);
    [_mm_cvtsi128_si64(v).cast_unsigned(), _mm_cvtsi128_si64(high).cast_unsigned()]
}

/// Combines bytes 0 to 3 of sixteen values into values, four per vector.
#[inline]
#[target_feature(enable = "sse2")]
fn quads(b0: __m128i, b1: __m128i, b2: __m128i, b3: __m128i) -> [__m128i; 4] {
    let (low, high) = (_mm_unpacklo_epi8(b0, b1), _mm_unpackhi_epi8(b0, b1));
    let (low2, high2) = (_mm_unpacklo_epi8(b2, b3), _mm_unpackhi_epi8(b2, b3));
    [
        _mm_unpacklo_epi16(low, low2),
        _mm_unpackhi_epi16(low, low2),
        _mm_unpacklo_epi16(high, high2),
        _mm_unpackhi_epi16(high, high2),
    ]
}

/// Reverses the transposition for values of four bytes. Tile `t` gets the 64 values from `64 t` on; `planes`
/// holds the bit planes of `stride * 8` values, `stride` bytes each.
#[target_feature(enable = "sse2")]
pub(super) fn tiles_u32(planes: &[u8], stride: usize, tiles: &mut [[u32; 64]]) {
    for (t, tile) in tiles.iter_mut().enumerate() {
        let at = t * 8;
        let (b0, b1) = (bytes(planes, stride, 0, at), bytes(planes, stride, 1, at));
        let (b2, b3) = (bytes(planes, stride, 2, at), bytes(planes, stride, 3, at));
        let (sixteens, _) = tile.as_chunks_mut::<16>();
        for ((((out, b0), b1), b2), b3) in sixteens.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3) {
            let (fours, _) = out.as_chunks_mut::<4>();
            for (four, v) in fours.iter_mut().zip(quads(b0, b1, b2, b3)) {
                let [low, high] = halves(v);
                let split = |n: u64| [low_half(n), low_half(n >> 32)];
                let ([a, b], [c, d]) = (split(low), split(high));
                *four = [a, b, c, d];
            }
        }
    }
}

/// Reverses the transposition for values of eight bytes. Tile `t` gets the 64 values from `64 t` on; `planes`
/// holds the bit planes of `stride * 8` values, `stride` bytes each.
#[target_feature(enable = "sse2")]
pub(super) fn tiles_u64(planes: &[u8], stride: usize, tiles: &mut [[u64; 64]]) {
    for (t, tile) in tiles.iter_mut().enumerate() {
        let at = t * 8;
        let (b0, b1) = (bytes(planes, stride, 0, at), bytes(planes, stride, 1, at));
        let (b2, b3) = (bytes(planes, stride, 2, at), bytes(planes, stride, 3, at));
        let (b4, b5) = (bytes(planes, stride, 4, at), bytes(planes, stride, 5, at));
        let (b6, b7) = (bytes(planes, stride, 6, at), bytes(planes, stride, 7, at));
        let low = b0.into_iter().zip(b1).zip(b2.into_iter().zip(b3));
        let high = b4.into_iter().zip(b5).zip(b6.into_iter().zip(b7));
        let (sixteens, _) = tile.as_chunks_mut::<16>();
        for ((out, ((b0, b1), (b2, b3))), ((b4, b5), (b6, b7))) in sixteens.iter_mut().zip(low).zip(high) {
            let (fours, _) = out.as_chunks_mut::<4>();
            let both = quads(b0, b1, b2, b3).into_iter().zip(quads(b4, b5, b6, b7));
            for (four, (low, high)) in fours.iter_mut().zip(both) {
                let [a, b] = halves(_mm_unpacklo_epi32(low, high));
                let [c, d] = halves(_mm_unpackhi_epi32(low, high));
                *four = [a, b, c, d];
            }
        }
    }
}

/// The low 32 bits.
#[inline(always)]
fn low_half(n: u64) -> u32 {
    let [a, b, c, d, ..] = n.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
