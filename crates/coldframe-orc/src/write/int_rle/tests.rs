//! Encodes the specification's examples and random runs. A simple decoder checks them and counts the
//! encodings.

#![expect(clippy::cast_possible_wrap, clippy::cast_possible_truncation, reason = "bits by hand")]

use super::*;
use proptest::prelude::*;

fn encode_as(values: &[i64], signed: bool, aligned: bool) -> Vec<u8> {
    let (mut rle, mut out) = (IntRle::new(signed, aligned), vec![]);
    rle.write(values, &mut out).unwrap();
    rle.flush(&mut out).unwrap();
    out
}

/// The examples of the specification.
#[test]
fn the_examples_of_the_specification_are_encoded() {
    assert_eq!(encode_as(&[10000; 5], false, true), [0x0a, 0x27, 0x10]);
    let direct = [23713, 43806, 57005, 48879];
    assert_eq!(encode_as(&direct, false, true), [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef]);
    let patched = [
        2030, 2000, 2020, 1000000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150,
        2160, 2170, 2180, 2190,
    ];
    assert_eq!(
        encode_as(&patched, false, true),
        [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a,
            0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8
        ]
    );
    let delta = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];
    assert_eq!(encode_as(&delta, false, true), [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46]);
}

/// Decodes bit by bit, as in the specification.
struct Naive<'a> {
    src: &'a [u8],
    signed: bool,
    out: Vec<i64>,
    kinds: [usize; 4],
}

impl Naive<'_> {
    fn byte(&mut self) -> u64 {
        let (first, rest) = self.src.split_first().unwrap();
        self.src = rest;
        u64::from(*first)
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn unzigzag(value: u64) -> i64 {
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn sign(&self, value: u64) -> i64 {
        if self.signed { Self::unzigzag(value) } else { value as i64 }
    }

    fn big_endian(&mut self, bytes: u64) -> u64 {
        (0..bytes).fold(0, |value, _| value << 8 | self.byte())
    }

    fn unpack(&mut self, count: usize, width: u32) -> Vec<u64> {
        let bytes = (count * width as usize).div_ceil(8);
        let bit = |i: usize| u64::from(self.src[i / 8] >> (7 - i % 8) & 1);
        let width = width as usize;
        let values = (0..count).map(|i| (0..width).fold(0, |v, b| v << 1 | bit(i * width + b))).collect();
        self.src = &self.src[bytes..];
        values
    }

    fn run(&mut self) {
        let head = self.byte();
        self.kinds[(head >> 6) as usize] += 1;
        if head >> 6 == 0 {
            let value = self.big_endian((head >> 3 & 7) + 1);
            let value = self.sign(value);
            self.out.extend(std::iter::repeat_n(value, (head & 7) as usize + 3));
            return;
        }
        let width = WIDTHS[(head >> 1 & 31) as usize];
        let length = ((head & 1) << 8 | self.byte()) as usize + 1;
        match head >> 6 {
            1 => {
                let values = self.unpack(length, width);
                let values: Vec<i64> = values.into_iter().map(|v| self.sign(v)).collect();
                self.out.extend(values);
            }
            2 => self.patched(width, length),
            _ => self.delta(if head >> 1 & 31 == 0 { 0 } else { width }, length),
        }
    }

    fn patched(&mut self, width: u32, length: usize) {
        let (third, fourth) = (self.byte(), self.byte());
        let bytes = (third >> 5) + 1;
        let stored = self.big_endian(bytes);
        let sign = 1u64 << (bytes * 8 - 1);
        let base = if stored & sign != 0 { -((stored & !sign) as i64) } else { stored as i64 };
        let (patch_width, gap_width) = (WIDTHS[(third & 31) as usize], (fourth >> 5) as u32 + 1);
        let mut values = self.unpack(length, width);
        let patches = self.unpack((fourth & 31) as usize, closest_width(patch_width + gap_width));
        let mut at = 0;
        for patch in patches {
            at += (patch >> patch_width) as usize;
            values[at] |= (patch & (1u64 << patch_width).wrapping_sub(1)) << width;
        }
        self.out.extend(values.into_iter().map(|v| base.wrapping_add(v as i64)));
    }

    fn delta(&mut self, width: u32, length: usize) {
        let first = self.varint();
        let mut value = self.sign(first);
        let delta = Self::unzigzag(self.varint());
        self.out.push(value);
        if width == 0 {
            for _ in 1..length {
                value += delta;
                self.out.push(value);
            }
            return;
        }
        value += delta;
        self.out.push(value);
        for step in self.unpack(length - 2, width) {
            value = if delta < 0 { value - step as i64 } else { value + step as i64 };
            self.out.push(value);
        }
    }
}

fn decode(src: &[u8], signed: bool) -> (Vec<i64>, [usize; 4]) {
    let mut naive = Naive { src, signed, out: vec![], kinds: [0; 4] };
    while !naive.src.is_empty() {
        naive.run();
    }
    (naive.out, naive.kinds)
}

#[test]
fn each_encoding_is_chosen_where_it_suits() {
    let mut values = vec![7; 5];
    values.extend((0..600).map(|i| i * 3));
    values.extend((0..600).map(|i| i * i));
    values.extend((0..600).map(|i| i * 7919 % 1000));
    values.extend((0..600).map(|i| if i % 40 == 0 { 1 << 40 } else { i * 7919 % 1000 }));
    for aligned in [true, false] {
        let (out, kinds) = decode(&encode_as(&values, true, aligned), true);
        assert_eq!(out, values);
        assert!(kinds.iter().all(|n| *n > 0), "{kinds:?}");
    }
}

#[test]
fn gaps_of_more_than_255_values_are_encoded() {
    for places in [&[300][..], &[511], &[0], &[0, 256, 511], &[1, 257]] {
        let mut values: Vec<i64> = (0..512).map(|i| i * 7919 % 17).collect();
        places.iter().for_each(|i| values[*i] = 1 << 30);
        let (out, kinds) = decode(&encode_as(&values, false, true), false);
        assert_eq!((out, kinds), (values, [0, 0, 1, 0]));
    }
}

fn values() -> impl Strategy<Value = Vec<i64>> {
    let part = prop_oneof![
        (any::<i64>(), 1usize..700).prop_map(|(v, n)| vec![v; n]),
        (-1000i64..1000, -50i64..50, 1usize..700)
            .prop_map(|(v, d, n)| (0..n as i64).map(|i| v + i * d).collect()),
        (0u32..64, proptest::collection::vec(any::<i64>(), 0..600))
            .prop_map(|(shift, v)| v.into_iter().map(|v| v >> shift).collect()),
        (0u32..64, 30u32..64, proptest::collection::vec((any::<i64>(), 0u8..30), 0..600)).prop_map(
            |(wide, narrow, v)| v
                .into_iter()
                .map(|(v, n)| if n == 0 { v >> wide } else { v >> narrow })
                .collect()
        ),
        proptest::collection::vec(0i64..3, 0..100),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn encoded_values_are_decoded(values in values(), signed: bool, aligned: bool) {
        prop_assert_eq!(decode(&encode_as(&values, signed, aligned), signed).0, values);
    }

    #[test]
    fn the_division_into_writes_does_not_change_the_bytes(values in values(), step in 1usize..50) {
        let (mut rle, mut out) = (IntRle::new(true, true), vec![]);
        for part in values.chunks(step) {
            rle.write(part, &mut out).unwrap();
            prop_assert!(rle.pending() < 512);
        }
        rle.flush(&mut out).unwrap();
        prop_assert_eq!(out, encode_as(&values, true, true));
    }
}
