//! Decodes the examples of the ORC specification, "Integer Run Length Encoding", and runs that
//! writers never write.

use bytes::Bytes;
use coldframe_encoding::Limits;

use super::*;
use crate::layout::compression::Compression;
use crate::layout::proto::PostScript;

fn decode(version: Version, signed: bool, bytes: &[u8], n: usize) -> Result<Vec<i64>> {
    let plain = Compression::new(&PostScript::default(), &Limits::default())?;
    let stream = ByteStream::new(Bytes::copy_from_slice(bytes), 0, plain);
    let mut rle = IntRle::new(stream, version, signed);
    let mut out = vec![0u64; n];
    // The values are read in uneven parts, so that runs are divided.
    for part in out.chunks_mut(7) {
        rle.read(part)?;
    }
    Ok(out.into_iter().map(u64::cast_signed).collect())
}

#[test]
fn the_examples_of_the_specification_are_decoded() {
    let v1 = |bytes: &[u8], n| decode(Version::V1, false, bytes, n).unwrap();
    assert_eq!(v1(&[0x61, 0x00, 0x07], 100), [7; 100]);
    assert_eq!(v1(&[0x61, 0xff, 0x64], 100), (1..=100).rev().collect::<Vec<_>>());
    assert_eq!(v1(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], 5), [2, 3, 6, 7, 11]);
    let v2 = |bytes: &[u8], n| decode(Version::V2, false, bytes, n).unwrap();
    assert_eq!(v2(&[0x0a, 0x27, 0x10], 5), [10000; 5]);
    assert_eq!(
        v2(&[0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef], 4),
        [23713, 43806, 57005, 48879]
    );
    let patched = [
        0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64,
        0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
    ];
    let expected = [
        2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150,
        2160, 2170, 2180, 2190,
    ];
    assert_eq!(v2(&patched, 20), expected);
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];
    assert_eq!(v2(&[0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46], 10), primes);
}

#[test]
fn a_truncated_run_is_an_error() {
    for bytes in [&[0x5e, 0x03, 0x5c][..], &[0x8e, 0x13, 0x2b], &[0xc6], &[0x0a, 0x27], &[]] {
        assert!(decode(Version::V2, true, bytes, 3).is_err());
    }
    assert!(decode(Version::V1, true, &[0x80, 1, 2], 128).is_err());
}

#[test]
fn a_value_too_wide_for_its_column_is_an_error() {
    let plain = Compression::new(&PostScript::default(), &Limits::default()).unwrap();
    let stream = ByteStream::new(Bytes::from_static(&[0x0a, 0xff, 0xff]), 0, plain);
    let e = IntRle::new(stream, Version::V2, false).read(&mut [0u16; 5]).unwrap_err();
    assert_eq!(e.reason(), "expected an integer of 16 bits, found 65535");
}

/// A run of packed values, bit by bit.
fn packed(width: u32, values: &[u64]) -> Vec<u8> {
    let mut bytes =
        vec![0x40 | u8::try_from(width - 1).unwrap() << 1, u8::try_from(values.len() - 1).unwrap()];
    let mut packed = Vec::new();
    coldframe_encoding::bits::pack(coldframe_encoding::bits::BitOrder::Msb, width, values, &mut packed)
        .unwrap();
    bytes.extend(packed);
    bytes
}

#[test]
fn short_runs_of_narrow_values_are_decoded() {
    for width in 1..=9u32 {
        let lengths = [1usize, 2, 3, 7, 8, 9, 15, 16, 17, 4, 1];
        let mask = (1u64 << width) - 1;
        let values: Vec<u64> =
            (0..lengths.iter().sum::<usize>()).map(|n| (n as u64).wrapping_mul(0x9e37) & mask).collect();
        let (mut bytes, mut rest) = (Vec::new(), values.as_slice());
        for length in lengths {
            let (now, later) = rest.split_at(length);
            bytes.extend(packed(width, now));
            rest = later;
        }
        for signed in [false, true] {
            let decoded = |value: &u64| if signed { unzigzag(*value) } else { value.cast_signed() };
            let expected: Vec<i64> = values.iter().map(decoded).collect();
            // The values are read in uneven parts, and at once.
            assert_eq!(decode(Version::V2, signed, &bytes, values.len()).unwrap(), expected, "{width}");
            let plain = Compression::new(&PostScript::default(), &Limits::default()).unwrap();
            let stream = ByteStream::new(Bytes::from(bytes.clone()), 0, plain);
            let mut all = vec![0u64; values.len()];
            IntRle::new(stream, Version::V2, signed).read(&mut all).unwrap();
            assert_eq!(all.into_iter().map(u64::cast_signed).collect::<Vec<_>>(), expected, "{width}");
        }
    }
}

/// cuDF stores -3506 in a run of smallints as 62030, its bits as an unsigned number.
#[test]
fn negative_values_may_be_stored_as_unsigned() {
    let values: Vec<u8> = (0..20).map(|n| n * 10).collect();
    let bytes = [&[0x8e, 0x13, 0x4b, 0x20, 0x00, 0xf2, 0x30][..], &values].concat();
    let plain = Compression::new(&PostScript::default(), &Limits::default()).unwrap();
    let rle = |wraps| {
        let stream = ByteStream::new(Bytes::from(bytes.clone()), 0, plain);
        IntRle::new(stream, Version::V2, true).wrapping(wraps)
    };
    let expected: Vec<i16> = (0..20).map(|n| (62_000 + n * 10_i32 - 65_536).try_into().unwrap()).collect();
    for at_once in [20, 7] {
        let mut out = vec![0u16; 20];
        let mut rle = rle(true);
        out.chunks_mut(at_once).for_each(|part| rle.read(part).unwrap());
        assert_eq!(out.into_iter().map(u16::cast_signed).collect::<Vec<_>>(), expected);
    }
    assert!(rle(false).read(&mut [0u16; 20]).is_err());
    // 17 bits are too many for every writer.
    let wide = [&[0x8e, 0x13, 0x4b, 0x20, 0x01, 0xf2, 0x30][..], &values].concat();
    let stream = ByteStream::new(Bytes::from(wide), 0, plain);
    assert!(IntRle::new(stream, Version::V2, true).wrapping(true).read(&mut [0u16; 20]).is_err());
}

/// Runs of all kinds are passed over as far as they are decoded.
#[test]
fn skip_advances_as_read_does() {
    let repeat = vec![0x0a, 0x27, 0x10];
    let direct = vec![0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
    let delta = vec![0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
    let fixed = vec![0xc0, 0x13, 0x02, 0x02];
    let patched = [
        &[0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14][..],
        &[
            0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4,
            0xbe, 0xfc, 0xe8,
        ],
    ]
    .concat();
    let bytes: Vec<u8> = [repeat, direct, delta, fixed, patched].concat();
    let plain = Compression::new(&PostScript::default(), &Limits::default()).unwrap();
    let rle = || IntRle::new(ByteStream::new(Bytes::from(bytes.clone()), 0, plain), Version::V2, false);
    let count = 5 + 4 + 10 + 20 + 20;
    let mut all = vec![0u64; count];
    rle().read(&mut all).unwrap();
    for first in 0..count {
        for skipped in 0..=count - first {
            let mut skipping = rle();
            skipping.read(&mut vec![0u64; first]).unwrap();
            skipping.skip(skipped).unwrap();
            let mut rest = vec![0u64; count - first - skipped];
            skipping.read(&mut rest).unwrap();
            assert_eq!(rest, all[first + skipped..], "{first} {skipped}");
            assert!(skipping.skip(1).is_err());
        }
    }
}
