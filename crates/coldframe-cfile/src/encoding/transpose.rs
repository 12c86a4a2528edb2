//! The transposition of bits behind BIT_SHUFFLE (the bitshuffle library's `bshuf_trans_bit_elem`).
//!
//! ```text
//! values  | value 0: byte 0 .. byte W-1 | value 1 | ...                            n values, a multiple of 8
//! planes  | plane 0 | plane 1 | ... | plane 8W-1 |                                 n / 8 bytes each
//!         plane 8k + j: bit j of byte k of every value; that of value i is bit i % 8 of byte i / 8
//! ```
//!
//! Sixty-four values at a time: the eight planes of a byte are eight 64-bit words. Three rounds of exchanges between words
//! turn them so that byte `g` of word `e` is the byte of value `8g + e`; the bytes are then stored where they belong. All of
//! it works on arrays of known size, from which the compiler makes vector instructions of whatever the target has.

/// Exchanges, between words `i` and `i + STEP`, the bits that `MASK` selects.
#[inline(always)]
fn exchange<const STEP: usize>(words: &mut [u64; 8], mask: u64) {
    let mut i = 0;
    while i < 8 {
        if i & STEP == 0 {
            if let [Some(low), Some(high)] = [words.get(i).copied(), words.get(i + STEP).copied()] {
                let moved = ((low >> STEP) ^ high) & mask;
                if let Some(place) = words.get_mut(i) {
                    *place = low ^ moved << STEP;
                }
                if let Some(place) = words.get_mut(i + STEP) {
                    *place = high ^ moved;
                }
            }
        }
        i += 1;
    }
}

/// Transposes the 8 x 8 bits that each byte position of eight words holds: bit `e` of byte `g` of word `j` becomes bit `j` of
/// byte `g` of word `e`.
#[inline(always)]
fn turn(words: &mut [u64; 8]) {
    exchange::<1>(words, 0x5555_5555_5555_5555);
    exchange::<2>(words, 0x3333_3333_3333_3333);
    exchange::<4>(words, 0x0f0f_0f0f_0f0f_0f0f);
}

/// Planes to values; `false` if there are too few planes or `out` is not a multiple of 8.
pub fn untranspose<const W: usize, T: Copy>(
    planes: &[u8],
    out: &mut [T],
    value: impl Fn([u8; W]) -> T,
) -> bool {
    let stride = out.len() / 8;
    if !out.len().is_multiple_of(8) || planes.len() < stride * 8 * W {
        return false;
    }
    let (tiles, rest) = out.as_chunks_mut::<64>();
    let whole = tiles.len();
    for (t, tile) in tiles.iter_mut().enumerate() {
        let mut turned = [[[0u8; 8]; 8]; W];
        for (k, bytes) in turned.iter_mut().enumerate() {
            let mut words = load::<8>(planes, stride, k, t * 8);
            turn(&mut words);
            *bytes = words.map(u64::to_le_bytes);
        }
        store(&turned, tile, &value);
    }
    for (g, group) in rest.chunks_exact_mut(8).enumerate() {
        let mut turned = [[[0u8; 8]; 8]; W];
        for (k, bytes) in turned.iter_mut().enumerate() {
            let mut words = load::<1>(planes, stride, k, whole * 8 + g);
            turn(&mut words);
            *bytes = words.map(u64::to_le_bytes);
        }
        for (e, place) in group.iter_mut().enumerate() {
            *place = value(gather(&turned, e, 0));
        }
    }
    true
}

/// `N` bytes from `at` on of each of the planes of byte `k`.
#[inline(always)]
fn load<const N: usize>(planes: &[u8], stride: usize, k: usize, at: usize) -> [u64; 8] {
    std::array::from_fn(|j| {
        let from = (k * 8 + j) * stride + at;
        let bytes = planes.get(from..).and_then(|p| p.first_chunk::<N>());
        let mut word = [0u8; 8];
        if let (Some(bytes), Some(place)) = (bytes, word.first_chunk_mut::<N>()) {
            *place = *bytes;
        }
        u64::from_le_bytes(word)
    })
}

#[inline(always)]
fn gather<const W: usize>(turned: &[[[u8; 8]; 8]; W], e: usize, g: usize) -> [u8; W] {
    std::array::from_fn(|k| {
        turned.get(k).and_then(|words| words.get(e)).and_then(|word| word.get(g)).copied().unwrap_or(0)
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

/// Values, a multiple of 8, to planes, appended to `out`.
pub fn transpose<const W: usize, T: Copy>(values: &[T], out: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; W]) {
    let stride = values.len() / 8;
    let start = out.len();
    out.resize(start + stride * 8 * W, 0);
    let planes = out.get_mut(start..).unwrap_or_default();
    for (g, group) in values.chunks_exact(8).enumerate() {
        let group: Vec<[u8; W]> = group.iter().map(|v| bytes(*v)).collect();
        for k in 0..W {
            let mut words: [u64; 8] =
                std::array::from_fn(|e| group.get(e).and_then(|b| b.get(k)).copied().map_or(0, u64::from));
            turn(&mut words);
            for (j, word) in words.iter().enumerate() {
                if let Some(place) = planes.get_mut((k * 8 + j) * stride + g) {
                    let [low, ..] = word.to_le_bytes();
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
    use proptest::prelude::*;

    /// Bit by bit, as the layout is described.
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

    fn agrees<T: Word + PartialEq>(values: &[T]) {
        let values = &values[..values.len() & !7];
        let planes = naive(values);
        let mut fast = vec![];
        T::transpose(values, &mut fast);
        assert_eq!(fast, planes);
        let mut back = vec![T::default(); values.len()];
        assert!(T::untranspose(&planes, &mut back));
        assert!(back == values);
        assert!(values.is_empty() || !T::untranspose(&planes[1..], &mut back));
    }

    proptest! {
        #[test]
        fn planes_agree_with_the_description(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            words in proptest::collection::vec(any::<u32>(), 0..400),
            longs in proptest::collection::vec(any::<u64>(), 0..300),
            wide in proptest::collection::vec(any::<i128>(), 0..200),
        ) {
            agrees(&bytes);
            agrees(&words.iter().map(|w| u16::try_from(w >> 16).unwrap()).collect::<Vec<_>>());
            agrees(&words);
            agrees(&longs);
            agrees(&wide);
        }
    }
}
