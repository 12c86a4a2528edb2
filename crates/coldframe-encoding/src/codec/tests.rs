//! Compresses and decompresses with every algorithm, framed and not; damaged input and excessive sizes are
//! errors.

use super::hadoop::HadoopCodec;
use super::*;
use proptest::prelude::*;

fn compressed(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    Compressor::new().compress(algorithm, None, data, &mut out).unwrap();
    out.split_off(6)
}

fn framed(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    HadoopCodec::framed(algorithm).compress(&mut Compressor::new(), None, data, &mut out).unwrap();
    out.split_off(6)
}

/// Runs a decompression and checks what always holds: earlier bytes are untouched, and an error appends
/// nothing.
fn appended(decompress: impl FnOnce(&mut Vec<u8>) -> Result<usize>) -> Result<Vec<u8>> {
    let mut out = b"before".to_vec();
    let result = decompress(&mut out);
    assert!(out.starts_with(b"before"));
    let n = result.inspect_err(|_| assert_eq!(out, b"before", "an error leaves the output as it was"))?;
    assert_eq!(out.len(), 6 + n);
    Ok(out.split_off(6))
}

fn exact(algorithm: Algorithm, src: &[u8], expected: usize) -> Result<Vec<u8>> {
    let mut d = Decompressor::new();
    appended(|out| d.decompress_exact(algorithm, src, expected, out).map(|()| expected))
}

fn bounded(algorithm: Algorithm, src: &[u8], ceiling: usize) -> Result<Vec<u8>> {
    let out = appended(|out| Decompressor::new().decompress_bounded(algorithm, src, ceiling, out))?;
    assert!(out.len() <= ceiling);
    Ok(out)
}

fn framed_exact(algorithm: Algorithm, src: &[u8], expected: usize) -> Result<Vec<u8>> {
    let (codec, mut d) = (HadoopCodec::framed(algorithm), Decompressor::new());
    appended(|out| codec.decompress_exact(&mut d, src, expected, out).map(|()| expected))
}

fn framed_bounded(algorithm: Algorithm, src: &[u8], ceiling: usize) -> Result<Vec<u8>> {
    let (codec, mut d) = (HadoopCodec::framed(algorithm), Decompressor::new());
    let out = appended(|out| codec.decompress_bounded(&mut d, src, ceiling, out))?;
    assert!(out.len() <= ceiling);
    Ok(out)
}

fn message<T: fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

/// Bytes like the bytes of columns: runs, short repeats, and noise.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (any::<u8>(), 1usize..2000).prop_map(|(b, n)| vec![b; n]),
        proptest::collection::vec(any::<u8>(), 0..600),
        (proptest::collection::vec(any::<u8>(), 1..40), 1usize..60).prop_map(|(v, n)| v.repeat(n)),
        proptest::collection::vec(0u8..4, 0..3000),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// A sample from which every encoder makes matches, literals and long runs.
fn sample() -> Vec<u8> {
    let mut data = b"a line of a column, a line of a column, and a line of another\n".repeat(3);
    data.extend((0u8..=255).map(|i| i.wrapping_mul(i).wrapping_add(i >> 3)));
    data.extend([7; 400]);
    data
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_algorithm_compresses_and_decompresses(data in data()) {
        for algorithm in Algorithm::ALL {
            let src = compressed(algorithm, &data);
            prop_assert_eq!(&exact(algorithm, &src, data.len()).unwrap(), &data, "{}", algorithm);
            prop_assert_eq!(&bounded(algorithm, &src, data.len()).unwrap(), &data, "{}", algorithm);
            prop_assert_eq!(&bounded(algorithm, &src, 1 << 20).unwrap(), &data, "{}", algorithm);
            // Decompresses into reused memory, which may be too short.
            let mut used = vec![7; 3 + data.len() / 2];
            let len = Decompressor::new().decompress_over(algorithm, &src, 1 << 20, &mut used, 3).unwrap();
            prop_assert_eq!(&used[..3], &[7; 3], "{}", algorithm);
            prop_assert_eq!(&used[3..3 + len], &data[..], "{}", algorithm);
            prop_assert!(exact(algorithm, &src, data.len() + 1).is_err(), "{}", algorithm);
            let src = framed(algorithm, &data);
            prop_assert_eq!(&framed_exact(algorithm, &src, data.len()).unwrap(), &data, "{}", algorithm);
            prop_assert_eq!(&framed_bounded(algorithm, &src, 1 << 20).unwrap(), &data, "{}", algorithm);
            prop_assert!(framed_exact(algorithm, &src, data.len() + 1).is_err(), "{}", algorithm);
        }
    }

    #[test]
    fn a_size_that_is_too_small_is_an_error(data in data()) {
        let Some(less) = data.len().checked_sub(1) else { return Ok(()) };
        for algorithm in Algorithm::ALL {
            let src = compressed(algorithm, &data);
            prop_assert!(exact(algorithm, &src, less).is_err(), "{}", algorithm);
            prop_assert!(bounded(algorithm, &src, less).is_err(), "{}", algorithm);
            let src = framed(algorithm, &data);
            prop_assert!(framed_exact(algorithm, &src, less).is_err(), "{}", algorithm);
            prop_assert!(framed_bounded(algorithm, &src, less).is_err(), "{}", algorithm);
        }
    }

    #[test]
    fn noise_is_an_error_or_the_exact_size(src in proptest::collection::vec(any::<u8>(), 0..200), n in 0usize..5000) {
        for algorithm in Algorithm::ALL {
            let _ = exact(algorithm, &src, n).map(|out| assert_eq!(out.len(), n));
            let _ = bounded(algorithm, &src, n);
            let _ = framed_exact(algorithm, &src, n).map(|out| assert_eq!(out.len(), n));
            let _ = framed_bounded(algorithm, &src, n);
        }
    }

    #[test]
    fn every_level_compresses_and_decompresses(data in data(), pick: usize) {
        for algorithm in Algorithm::ALL {
            let Some((range, _)) = algorithm.levels() else { continue };
            let levels: Vec<i32> = range.filter(|l| *l > -8).collect();
            let level = levels[pick % levels.len()];
            let mut src = vec![];
            Compressor::new().compress(algorithm, Some(level), &data, &mut src).unwrap();
            prop_assert_eq!(&exact(algorithm, &src, data.len()).unwrap(), &data, "{} {}", algorithm, level);
        }
    }
}

/// Truncates the input at every byte. If the size is unknown, a shorter result is allowed only for
/// uncompressed bytes, and for LZ4, which may end between any two sequences.
#[test]
fn truncated_anywhere_is_an_error() {
    let data = sample();
    for algorithm in Algorithm::ALL {
        let src = compressed(algorithm, &data);
        let framed_src = framed(algorithm, &data);
        for cut in 0..src.len() {
            assert!(exact(algorithm, &src[..cut], data.len()).is_err(), "{algorithm} {cut}");
            if algorithm != Algorithm::None && algorithm != Algorithm::Lz4 {
                assert!(bounded(algorithm, &src[..cut], 1 << 16).is_err(), "{algorithm} {cut}");
            }
        }
        for cut in 1..framed_src.len() {
            assert!(framed_exact(algorithm, &framed_src[..cut], data.len()).is_err(), "{algorithm} {cut}");
            assert!(framed_bounded(algorithm, &framed_src[..cut], 1 << 16).is_err(), "{algorithm} {cut}");
        }
    }
}

/// Flips every bit: there is never a panic, an undetected flip gives a result of the requested size, and
/// checksums detect all flips.
#[test]
fn a_flipped_bit_never_panics() {
    let data = sample();
    for algorithm in Algorithm::ALL {
        let (src, framed_src) = (compressed(algorithm, &data), framed(algorithm, &data));
        for bit in 0..src.len() * 8 {
            let mut src = src.clone();
            src[bit / 8] ^= 1 << (bit % 8);
            let out = exact(algorithm, &src, data.len());
            let _ = bounded(algorithm, &src, 1 << 16);
            if let Ok(out) = out {
                assert_eq!(out.len(), data.len());
                let checked = [Algorithm::Zlib, Algorithm::Gzip, Algorithm::Bzip2].contains(&algorithm);
                assert!(!checked || out == data, "{algorithm} {bit}");
            }
        }
        for bit in 0..framed_src.len() * 8 {
            let mut src = framed_src.clone();
            src[bit / 8] ^= 1 << (bit % 8);
            let _ = framed_exact(algorithm, &src, data.len()).map(|out| assert_eq!(out.len(), data.len()));
            let _ = framed_bounded(algorithm, &src, 1 << 16);
        }
    }
}

/// Bytes after the end are an error, except for raw deflate, where they are not detected.
#[test]
fn trailing_bytes_are_an_error() {
    let data = sample();
    for algorithm in Algorithm::ALL {
        if [Algorithm::Deflate, Algorithm::None].contains(&algorithm) {
            continue;
        }
        for garbage in [&b"\0"[..], b"\0\0\0\0\0\0\0\0\0\0\0\0", b"garbage"] {
            let src = [&compressed(algorithm, &data), garbage].concat();
            assert!(exact(algorithm, &src, data.len()).is_err(), "{algorithm} {garbage:?}");
            assert!(bounded(algorithm, &src, 1 << 16).is_err(), "{algorithm} {garbage:?}");
        }
    }
    let twice = compressed(Algorithm::Zlib, &data).repeat(2);
    assert!(
        message(exact(Algorithm::Zlib, &twice, data.len())).starts_with("zlib: expected the end, found ")
    );
}

#[test]
fn gzip_zstd_and_bzip2_streams_may_follow_each_other() {
    let data = sample();
    for algorithm in [Algorithm::Gzip, Algorithm::Zstd, Algorithm::Bzip2] {
        for (first, second) in [(&data[..], &data[..]), (&data[..9], &data[..]), (&data[..], b""), (b"", b"")]
        {
            let src = [compressed(algorithm, first), compressed(algorithm, second)].concat();
            let both = [first, second].concat();
            assert_eq!(exact(algorithm, &src, both.len()).unwrap(), both, "{algorithm}");
            assert_eq!(bounded(algorithm, &src, 1 << 16).unwrap(), both, "{algorithm}");
        }
    }
}

#[test]
fn gzip_without_a_header_is_read_with_any_crc() {
    let data = sample();
    let whole = compressed(Algorithm::Gzip, &data);
    let bare = &whole[10..];
    let (crc, size) = (bare.len() - 8, bare.len() - 4);
    for at in 0..size {
        let mut src = bare.to_vec();
        src[at] ^= 1;
        // The CRC may belong to another block; damage before it is detected where deflate or the size detects
        // it.
        let out = exact(Algorithm::Gzip, &src, data.len());
        assert!(at < crc || out.unwrap() == data, "{at}");
    }
    assert_eq!(exact(Algorithm::Gzip, bare, data.len()).unwrap(), data);
    assert_eq!(bounded(Algorithm::Gzip, bare, 1 << 16).unwrap(), data);
    for at in size..bare.len() {
        let mut src = bare.to_vec();
        src[at] ^= 1;
        assert!(exact(Algorithm::Gzip, &src, data.len()).is_err());
    }
    // There are bytes between the stream and the trailer.
    let mut src = bare.to_vec();
    src.splice(crc..crc, [0, 0]);
    src[crc + 2] ^= 1;
    assert_eq!(
        message(exact(Algorithm::Gzip, &src, data.len())),
        "gzip: expected the end, found 2 more bytes"
    );
}

#[test]
fn impossible_sizes_are_refused_before_memory_is_allocated() {
    for algorithm in Algorithm::ALL {
        let src = compressed(algorithm, b"a few bytes");
        let message_of_error = message(exact(algorithm, &src, usize::MAX / 2));
        assert!(
            message_of_error.starts_with(&format!("{algorithm}: expected {} bytes", usize::MAX / 2)),
            "{message_of_error}"
        );
        assert!(framed_exact(algorithm, &src, usize::MAX / 2).is_err());
        // A large maximum is not a size that the input states, so it is allowed.
        assert_eq!(bounded(algorithm, &src, usize::MAX).unwrap(), b"a few bytes");
    }
    let e = message(exact(Algorithm::Snappy, &compressed(Algorithm::Snappy, &[1; 50]), 49));
    assert_eq!(e, "snappy: expected 49 bytes, found more");
    let e = message(exact(Algorithm::Zlib, &compressed(Algorithm::Zlib, &[1; 50]), 51));
    assert_eq!(e, "zlib: expected 51 bytes, found 50");
}

/// The output is much longer than the first buffer, which grows until everything fits.
#[test]
fn extreme_ratios_are_decoded() {
    let zeros = vec![0; 12 << 20];
    for algorithm in [Algorithm::Zlib, Algorithm::Zstd, Algorithm::Bzip2, Algorithm::Brotli, Algorithm::Lzo] {
        let src = compressed(algorithm, &zeros);
        assert!(exact(algorithm, &src, zeros.len()).unwrap() == zeros, "{algorithm}");
        assert!(bounded(algorithm, &src, 16 << 20).unwrap() == zeros, "{algorithm}");
        assert!(bounded(algorithm, &src, zeros.len() - 1).is_err(), "{algorithm}");
    }
}

/// Tests every form of instruction, written by hand according to the grammar.
#[test]
fn every_lzo_instruction_is_decoded() {
    let lzo = |src: &[u8]| bounded(Algorithm::Lzo, src, 100_000);
    assert_eq!(lzo(&[0x11, 0, 0]).unwrap(), b"");
    // 17 + 4 literals; length 3 from distance 4, one literal; length 2 from distance 3, no literal; end.
    assert_eq!(lzo(b"\x15abcd\x4d\x00x\x08\x00\x11\0\0").unwrap(), b"abcdabcxbc");
    // Long literals (3 + 15 + 255 + 2), then length 5 + 3 from distance 1 (overlapping), end.
    let mut src = vec![0, 0, 2];
    src.extend([b'q'; 275]);
    src.extend([0xe0, 0, 0x11, 0, 0]);
    assert_eq!(lzo(&src).unwrap(), [b'q'; 283]);
    // Length 2 + 31 + 255 + 10 from distance 2.
    assert_eq!(
        lzo(b"\x15abcd\x20\0\x0a\x04\0\x11\0\0").unwrap(),
        [b"ab".as_slice(), &b"cd".repeat(150)].concat()
    );
    // More than 2048 bytes of output, then, after four literals, length 3 from distance 2049.
    let mut src = b"\x15abcd\x20".to_vec();
    src.extend([0; 8]);
    src.extend(b"\x01\0\0\x01wxyz\x00\x00\x11\0\0");
    let out = lzo(&src).unwrap();
    assert_eq!(out.len(), 4 + 2 + 31 + 8 * 255 + 1 + 4 + 3);
    assert_eq!(out[out.len() - 8..], *b"dwxyzddd");
    assert!(
        message(lzo(b"\x15abcd\x60\x08\x11\0\0"))
            .ends_with("expected a match within 4 bytes, found distance 65")
    );
    assert_eq!(message(lzo(b"\x15abc")), "lzo: expected more input, found the end");
}

/// Tests distances and lengths for which each form is needed, in blocks as long as Hadoop's buffer.
#[test]
fn far_lzo_matches_are_compressed_and_decompressed() {
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let noise: Vec<u8> = (0..60_000).map(|_| noise()).collect();
    for distance in [1, 2, 7, 15, 16, 2048, 2049, 16_384, 16_385, 32_768, 49_151, 49_152] {
        for length in [3, 4, 8, 9, 10, 33, 34, 64, 264, 288, 289, 600] {
            let mut data = noise[..distance].to_vec();
            for i in 0..length {
                data.push(data[i]);
            }
            data.extend(b"tail");
            let src = compressed(Algorithm::Lzo, &data);
            assert!(exact(Algorithm::Lzo, &src, data.len()).unwrap() == data, "{distance} {length}");
        }
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    let compress = |a, level| Compressor::new().compress(a, Some(level), b"x", &mut vec![]);
    assert_eq!(message(compress(Algorithm::Bzip2, 10)), "bzip2: expected a level of 1 to 9, found 10");
    assert_eq!(message(compress(Algorithm::Snappy, 1)), "snappy: expected no level, as it has none, found 1");
}

#[test]
fn names_of_algorithms_are_parsed() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().to_uppercase().parse::<Algorithm>().unwrap(), algorithm);
    }
    assert!(message("lzma".parse::<Algorithm>()).starts_with("expected a compression of none, zlib, "));
}
