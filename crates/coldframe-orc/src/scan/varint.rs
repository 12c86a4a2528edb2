//! Decodes base-128 varints, many at a time.
//!
//! ```text
//! value      7 bits a byte, low first, top bit = more bytes follow; signed ones as zigzag (ORC specification v1, "Base 128 Varint")
//! 64 bytes   -> 64 bits, one for each byte that ends a value: all ends are known before any value is decoded
//! 8 bytes    -> one word; its groups of seven bits are joined pair by pair
//! ```

/// Maximum number of bytes of a 128-bit varint.
pub(crate) const LONGEST: usize = 19;

/// The top bits of the bytes of a word.
const TOP: u64 = 0x8080_8080_8080_8080;

/// Joins the groups of seven bits of a word's bytes to one number.
#[inline(always)]
fn push_together(word: u64) -> u64 {
    let x = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
    (x & 0x0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4
}

/// A varint of at most eight bytes at the front of `bytes`, and its length; `None` if it is longer, or fewer than eight
/// bytes are available.
#[inline(always)]
pub(crate) fn short(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let ends = !word & TOP;
    if ends == 0 {
        return None;
    }
    let bits = ends.trailing_zeros() + 1;
    Some((push_together(word & (u64::MAX >> (64 - bits))), (bits / 8) as usize))
}

/// A varint of at most 128 bits at the front of `bytes`, and its length.
pub(crate) fn long(bytes: &[u8]) -> Option<(u128, usize)> {
    let mut value = 0u128;
    for (i, byte) in bytes.iter().take(LONGEST).enumerate() {
        value |= u128::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// The length of the first `count` varints of `bytes`, and their number: fewer if `bytes` ends, or before a
/// varint longer than [`LONGEST`].
pub(crate) fn skip(bytes: &[u8], count: usize) -> (usize, usize) {
    // `open` is the number of bytes that were examined after the last varint.
    let (mut at, mut passed, mut open) = (0, 0, 0);
    while let Some(window) = bytes.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>) {
        let ends = ends(window);
        let more = ends.count_ones() as usize;
        if passed + more >= count || has_long(!ends, open) {
            break;
        }
        (at, passed, open) = (at + BLOCK, passed + more, ends.leading_zeros() as usize);
    }
    for byte in bytes.iter().skip(at) {
        if passed == count || open == LONGEST {
            break;
        }
        at += 1;
        open += 1;
        if *byte < 0x80 {
            (passed, open) = (passed + 1, 0);
        }
    }
    (at - open, passed)
}

/// Whether a varint is longer than [`LONGEST`]. `followed` has a bit for each of 64 bytes that does not end a
/// varint; `open` such bytes come before them.
fn has_long(followed: u64, open: usize) -> bool {
    let twos = followed & followed >> 1;
    let fours = twos & twos >> 2;
    let eights = fours & fours >> 4;
    let all = eights & eights >> 8 & fours >> 15;
    all != 0 || open + followed.trailing_ones() as usize >= LONGEST
}

/// Number of bytes that are examined together.
const BLOCK: usize = 64;
/// A block, and the bytes into which the word of its last value extends.
const WINDOW: usize = BLOCK + 8;

/// Decodes varints of at most eight bytes from the front of `bytes` into the front of `values`, as long as
/// whole blocks remain. Returns the number of bytes and of values; zeros if a longer varint is first, or if
/// the bytes end soon.
pub(crate) fn many(bytes: &[u8], values: &mut [u64]) -> (usize, usize) {
    let (mut at, mut done) = (0, 0);
    // At most 64 values end in a block.
    while let (Some(window), Some(out)) = (
        bytes.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>),
        values.get_mut(done..).and_then(<[u64]>::first_chunk_mut::<BLOCK>),
    ) {
        let (used, count) = block(window, out);
        at += used;
        done += count;
        if used == 0 {
            break;
        }
    }
    (at, done)
}

/// The result of [`ends`] for a block of values of two bytes each.
const PAIRS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Decodes the values that end in a block, up to the first that is longer than a word.
#[inline(always)]
fn block(window: &[u8; WINDOW], out: &mut [u64; BLOCK]) -> (usize, usize) {
    let mut ends = ends(window);
    if ends == u64::MAX {
        for (to, byte) in out.iter_mut().zip(window) {
            *to = u64::from(*byte);
        }
        return (BLOCK, BLOCK);
    }
    if ends == PAIRS {
        let (pairs, _) = window.as_chunks::<2>();
        for (to, [low, high]) in out.iter_mut().zip(pairs).take(BLOCK / 2) {
            *to = u64::from(*low & 0x7f) | u64::from(*high) << 7;
        }
        return (BLOCK, BLOCK / 2);
    }
    let mut start = 0usize;
    let mut count = 0usize;
    while ends != 0 {
        let next = ends.trailing_zeros() as usize + 1;
        ends &= ends - 1;
        let Some(mask) = MASKS.get(next - start) else { break };
        let word = window.get(start..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if let Some(to) = out.get_mut(count) {
            *to = u64::from_le_bytes(word) & mask;
        }
        start = next;
        count += 1;
    }
    // This is a separate loop, so that the compiler vectorises it.
    out.iter_mut().take(count).for_each(|word| *word = push_together(*word));
    (start, count)
}

/// The bytes of a word that belong to a value of 0 to 8 bytes.
const MASKS: [u64; 9] = [
    0,
    0xff,
    0xffff,
    0xff_ffff,
    0xffff_ffff,
    0xff_ffff_ffff,
    0xffff_ffff_ffff,
    0xff_ffff_ffff_ffff,
    u64::MAX,
];

/// A bit for each byte of a block that ends a value.
#[inline(always)]
fn ends(window: &[u8; WINDOW]) -> u64 {
    /// Gathers the top bits of eight bytes in the top byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (chunks, _) = window.as_chunks::<8>();
    chunks.iter().take(BLOCK / 8).enumerate().fold(0, |ends, (i, chunk)| {
        let top = !u64::from_le_bytes(*chunk) & TOP;
        ends | ((top >> 7).wrapping_mul(GATHER) >> 56) << (8 * i)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(out: &mut Vec<u8>, mut value: u128) {
        while value >= 0x80 {
            out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        out.push(u8::try_from(value).unwrap());
    }

    proptest! {
        #[test]
        fn all_decoders_agree(values in proptest::collection::vec((any::<u128>(), 0u32..128, 0u32..60), 1..300)) {
            let values: Vec<u128> =
                values.into_iter().map(|(v, wide, narrow)| v >> if wide == 0 { 0 } else { 68 + narrow }).collect();
            let mut bytes = Vec::new();
            values.iter().for_each(|v| put(&mut bytes, *v));
            let mut decoded = Vec::new();
            let mut at = 0;
            while decoded.len() < values.len() {
                let rest = &bytes[at..];
                let mut room = vec![0; 100];
                let (used, count) = many(rest, &mut room);
                at += used;
                decoded.extend(room[..count].iter().map(|v| u128::from(*v)));
                if count == 0 {
                    let (value, used) = long(rest).unwrap();
                    if let Some((short, length)) = short(rest) {
                        prop_assert_eq!((u128::from(short), length), (value, used));
                    } else {
                        prop_assert!(used > 8 || rest.len() < 8);
                    }
                    decoded.push(value);
                    at += used;
                }
            }
            prop_assert_eq!(decoded, values);
            prop_assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn values_of_equal_length_are_decoded() {
        for bits in (7..70).step_by(7) {
            let values: Vec<u128> =
                (0..200).map(|n| (1u128 << bits) - 1 - n % (1 << (bits.min(8) - 1))).collect();
            let mut bytes = Vec::new();
            values.iter().for_each(|v| put(&mut bytes, *v));
            assert_eq!(bytes.len(), 200 * (bits / 7));
            let mut room = vec![0; 256];
            let (used, count) = many(&bytes, &mut room);
            assert_eq!(used, count * (bits / 7));
            // The last values remain because too few bytes follow them.
            assert!(if bits > 56 { count == 0 } else { count > 100 }, "{bits}: {count}");
            assert!(
                room.iter().zip(&values).take(count).all(|(decoded, value)| u128::from(*decoded) == *value)
            );
        }
    }

    #[test]
    fn skip_agrees_with_decoding() {
        for length in 1..=LONGEST + 2 {
            // Short values first, so that the long value begins anywhere in two blocks.
            for front in 0..2 * BLOCK {
                let long = [&vec![0x80; length - 1][..], &[1]].concat();
                let bytes = [&vec![1; front][..], &long, &[1; WINDOW]].concat();
                let (used, passed) = skip(&bytes, front + 9);
                if length > LONGEST {
                    assert_eq!((used, passed), (front, front), "{length} {front}");
                    assert_eq!(skip(&bytes[used..], 1), (0, 0));
                } else {
                    assert_eq!((used, passed), (front + length + 8, front + 9), "{length} {front}");
                }
                assert_eq!(skip(&bytes, front), (front, front));
                // An incomplete value is not counted.
                assert_eq!(skip(&bytes[..front + length - 1], front + 1), (front, front), "{length} {front}");
            }
        }
    }

    #[test]
    fn a_value_without_an_end_is_not_decoded() {
        assert_eq!(long(&[0x80; 30]), None);
        assert_eq!(short(&[0xff; 8]), None);
        assert_eq!(many(&[0xff; 200], &mut [0; 100]), (0, 0));
    }
}
