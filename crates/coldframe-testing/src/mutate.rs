//! Random damage, the same on each run.

use bytes::Bytes;

/// A deterministic random number generator (`splitmix64`).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of random numbers for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % (n.max(1) as u64)).unwrap()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.roll().to_be_bytes()[0]
    }
}

/// About `most` of the numbers below `n`, evenly spread, including the first and the last.
pub fn spread(n: usize, most: usize) -> impl Iterator<Item = usize> {
    let step = n.div_ceil(most.max(1)).max(1);
    (0..n).step_by(step).chain(n.checked_sub(1))
}

/// `bytes` with the byte at `at` XORed with `mask`.
pub fn flipped(bytes: &[u8], at: usize, mask: u8) -> Bytes {
    let mut mutant = bytes.to_vec();
    mutant[at] ^= mask;
    mutant.into()
}

/// `bytes` with a few random changes: bits, bytes, large lengths, truncation, removed bytes, repeated bytes.
pub fn shaken(bytes: &[u8], dice: &mut Dice) -> Bytes {
    let mut mutant = bytes.to_vec();
    for _ in 0..=dice.below(4) {
        if mutant.is_empty() {
            break;
        }
        let at = dice.below(mutant.len());
        match dice.below(8) {
            0 | 1 => mutant[at] ^= 1 << dice.below(8),
            2 => mutant[at] = dice.byte(),
            3 => mutant[at] = [0, 0x7f, 0x80, 0x8c, 0x88, 0xff][dice.below(6)],
            4 => {
                let extreme =
                    [[0xff; 4], [0x7f, 0xff, 0xff, 0xff], [0x80, 0, 0, 0], [0, 0, 0, 0]][dice.below(4)];
                let end = (at + 4).min(mutant.len());
                mutant[at..end].copy_from_slice(&extreme[..end - at]);
            }
            5 => {
                let end = (at + 1 + dice.below(40)).min(mutant.len());
                mutant.drain(at..end);
            }
            6 => {
                let end = (at + 1 + dice.below(40)).min(mutant.len());
                let part = mutant[at..end].to_vec();
                mutant.splice(at..at, part);
            }
            _ => mutant.truncate(at),
        }
    }
    mutant.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_reproducible_and_spread_covers_the_range() {
        assert_eq!(Dice::new(7).roll(), Dice::new(7).roll());
        assert_eq!(spread(5, 10).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 4]);
        assert_eq!(spread(10, 3).collect::<Vec<_>>(), [0, 4, 8, 9]);
        assert_eq!(spread(0, 3).count(), 0);
        assert_eq!(flipped(b"ab", 1, 3).as_ref(), b"aa");
        let mut dice = Dice::new(1);
        assert!((0..50).any(|_| shaken(b"some bytes", &mut dice) != "some bytes"));
    }
}
