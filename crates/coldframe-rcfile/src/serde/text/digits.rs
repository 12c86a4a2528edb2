//! Parses decimal digits, eight at a time.
//!
//! Up to eight characters are loaded as one little-endian word; XOR removes the `0`, and a shift makes the last
//! character the highest byte. The word is then eight digits, the first digits zero, and three
//! multiplications give their value (D. Lemire, "Number parsing at a gigabyte per second").

use super::cells::Cell;

const ZEROS: u64 = 0x3030_3030_3030_3030;

pub(super) const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut i = 1;
    #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// The value of the first `n` bytes of `rest`, 1..=8, if they are digits. Also `None` near the end of the buffer.
#[inline(always)]
pub(super) fn up_to_8(rest: &[u8], n: usize) -> Option<u64> {
    let word = u64::from_le_bytes(*rest.first_chunk::<8>()?) ^ ZEROS;
    eight(word << (64usize.wrapping_sub(8 * n) & 63))
}

/// The value of the first `n` bytes of `rest`, 1..=16, if they are digits: two words, whatever `n` is, so that no
/// branch depends on it. Also `None` near the end of the buffer.
#[inline(always)]
pub(super) fn in_two_words(rest: &[u8], n: usize) -> Option<u64> {
    let words =
        u128::from_le_bytes(*rest.first_chunk::<16>()?) ^ (u128::from(ZEROS) << 64 | u128::from(ZEROS));
    let bytes = (words << (128usize.wrapping_sub(8 * n) & 127)).to_le_bytes();
    let high = eight(u64::from_le_bytes(*bytes.first_chunk()?))?;
    let low = eight(u64::from_le_bytes(*bytes.last_chunk()?))?;
    Some(high * 100_000_000 + low)
}

/// The value of the digits in the first `n` bytes of `rest`, 2..=8, among which there is a `.` at `point`.
#[inline(always)]
pub(super) fn without_point(rest: &[u8], n: usize, point: usize) -> Option<u64> {
    let word = u64::from_le_bytes(*rest.first_chunk::<8>()?) ^ ZEROS;
    if n < 2 || rest.get(point) != Some(&b'.') {
        return None;
    }
    // The bytes after the point move down by one.
    let before = !(u64::MAX << ((8 * point) & 63));
    let joined = (word & before) | ((word >> 8) & !before);
    let shift = 64usize.wrapping_sub(8 * (n - 1)) & 63;
    eight(joined << shift)
}

/// The position of the first `.` in the first eight bytes of `rest`; 8 if there is none.
#[inline]
pub(super) fn point(rest: &[u8]) -> Option<usize> {
    let word = u64::from_le_bytes(*rest.first_chunk::<8>()?) ^ 0x2e2e_2e2e_2e2e_2e2e;
    let zero = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    usize::try_from(zero.trailing_zeros() / 8).ok()
}

/// The value of a word of eight digits, each 0 to 9.
#[inline(always)]
fn eight(digits: u64) -> Option<u64> {
    // A byte of 10 or more has its top bit set, or gets it from the addition.
    if (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(low.wrapping_add(high) >> 32)
}

/// The value of the first `n` bytes of `rest`, 1..=16, if they are digits. Also `None` near the end of the buffer.
#[inline(always)]
pub(super) fn up_to_16(rest: &[u8], n: usize) -> Option<u64> {
    match n {
        1..=8 => up_to_8(rest, n),
        9..=16 => in_two_words(rest, n),
        _ => None,
    }
}

/// Splits off a leading `-` without a branch: signs are often almost random.
#[inline(always)]
pub(super) fn sign(cell: Cell<'_>) -> (bool, &[u8], usize) {
    let negative = cell.len > 0 && cell.rest.first() == Some(&b'-');
    let rest = cell.rest.get(usize::from(negative)..).unwrap_or_default();
    (negative, rest, cell.len - usize::from(negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_length_have_their_value() {
        let text = b"98765432109876543210........";
        for n in 1..=16 {
            let expected: u64 = std::str::from_utf8(&text[..n]).unwrap().parse().unwrap();
            assert_eq!(up_to_16(text, n), Some(expected));
            assert_eq!(in_two_words(text, n), Some(expected));
        }
        assert_eq!(up_to_16(text, 0), None);
        assert_eq!(up_to_16(text, 17), None);
    }

    #[test]
    fn other_bytes_are_refused_at_every_position() {
        for place in 0..16 {
            for byte in (0..=255u8).filter(|b| !b.is_ascii_digit()) {
                let mut text = *b"1234567890123456";
                text[place] = byte;
                assert_eq!(up_to_16(&text, 16), None, "{byte} at {place}");
                if place < 8 {
                    assert_eq!(up_to_8(&text, 8), None);
                }
            }
        }
    }

    #[test]
    fn a_point_is_located_and_removed() {
        for at in 0..8 {
            let mut text = b"1234567".to_vec();
            text.insert(at, b'.');
            text.extend(b"~~~~~~~~");
            assert_eq!(point(&text), Some(at));
            assert_eq!(without_point(&text, 8, at), Some(1_234_567), "{at}");
            assert_eq!(without_point(&text, 8, (at + 1) % 8), None);
        }
        assert_eq!(point(b"12345678"), Some(8));
        assert_eq!(without_point(b"1.5     ", 3, 1), Some(15));
        assert_eq!(without_point(b".       ", 1, 0), None);
    }

    #[test]
    fn the_end_of_a_buffer_is_left_to_the_slow_path() {
        assert_eq!(up_to_8(b"1234567", 7), None);
        assert_eq!(up_to_8(b"12345678", 7), Some(1_234_567));
    }
}
