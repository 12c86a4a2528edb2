//! A decoder for the LZ4 blocks in BIT_SHUFFLE: these are small, of known size, and full of short repeats.
//!
//! ```text
//! sequence | token u8 | literal length.. | literals | distance u16 LE | match length.. |        the last has only literals
//! token    | literal length, 15 = more bytes follow | match length - 4, 15 = more |
//! ```
//!
//! (`lz4/lz4`, `lz4_Block_format.md`.) Bit planes of ascending numbers repeat at distances of 1, 2, 4 or 8 bytes. A general decoder copies
//! such repeats byte by byte. This decoder writes sixteen bytes at a time, and may write up to [`SLACK`] bytes beyond the
//! requested output, which are ignored. On processors with SSSE3, the decoder in `ssse3` is faster.

#[cfg(target_arch = "x86_64")]
mod ssse3;

/// This many bytes after the output may be overwritten.
pub(crate) const SLACK: usize = 32;

/// Decodes all of `src` into the first `size` bytes of `dst`, which must have [`SLACK`] more bytes; `false` if `src`
/// does not decode to exactly that size.
pub(crate) fn decode(src: &[u8], dst: &mut [u8], size: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("ssse3") {
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: the function only requires SSSE3, which was just detected.
        return unsafe { ssse3::decode(src, dst, size) };
    }
    decode_safe(src, dst, size)
}

fn decode_safe(src: &[u8], dst: &mut [u8], size: usize) -> bool {
    dst.len() >= size.saturating_add(SLACK) && sequences(src, dst, size).is_some()
}

#[inline]
fn sequences(src: &[u8], dst: &mut [u8], size: usize) -> Option<()> {
    let (mut from, mut to) = (0usize, 0usize);
    loop {
        let token = usize::from(*src.get(from)?);
        from += 1;
        let literals = length(src, &mut from, token >> 4)?;
        if literals > size - to {
            return None;
        }
        copy_literals(src, from, dst, to, literals)?;
        from += literals;
        to += literals;
        if from == src.len() {
            return (to == size).then_some(());
        }
        let distance = usize::from(u16::from_le_bytes(*src.get(from..)?.first_chunk()?));
        from += 2;
        let len = length(src, &mut from, token & 15)?.checked_add(4)?;
        if distance == 0 || distance > to || len > size - to {
            return None;
        }
        repeat(dst, to, distance, len)?;
        to += len;
    }
}

/// Reads the rest of a length that began in a token.
#[inline(always)]
fn length(src: &[u8], from: &mut usize, first: usize) -> Option<usize> {
    if first < 15 {
        return Some(first);
    }
    let mut length = first;
    loop {
        let more = *src.get(*from)?;
        *from += 1;
        length = length.checked_add(more.into())?;
        if more != 255 {
            return Some(length);
        }
    }
}

#[inline(always)]
fn copy_literals(src: &[u8], from: usize, dst: &mut [u8], to: usize, len: usize) -> Option<()> {
    if len <= 16
        && let Some(bytes) = src.get(from..).and_then(|s| s.first_chunk::<16>())
    {
        *dst.get_mut(to..)?.first_chunk_mut::<16>()? = *bytes;
        return Some(());
    }
    dst.get_mut(to..to + len)?.copy_from_slice(src.get(from..from.checked_add(len)?)?);
    Some(())
}

/// Appends at `to` a copy of the `len` bytes that begin `distance` bytes before `to`. The source may overlap
/// the output.
#[inline(always)]
fn repeat(dst: &mut [u8], to: usize, distance: usize, len: usize) -> Option<()> {
    let start = to - distance;
    if distance >= 16 {
        let mut done = 0;
        while done < len {
            let bytes = *dst.get(start + done..)?.first_chunk::<16>()?;
            *dst.get_mut(to + done..)?.first_chunk_mut::<16>()? = bytes;
            done += 16;
        }
        return Some(());
    }
    // Sixteen bytes of the repeating pattern, written in steps of a multiple of the distance.
    let mut pattern = [0u8; 16];
    let seen = *dst.get(start..)?.first_chunk::<16>()?;
    match distance {
        1 => pattern = [*seen.first()?; 16],
        2 => pattern = *[*seen.first_chunk::<2>()?; 8].as_flattened().first_chunk()?,
        4 => pattern = *[*seen.first_chunk::<4>()?; 4].as_flattened().first_chunk()?,
        8 => pattern = *[*seen.first_chunk::<8>()?; 2].as_flattened().first_chunk()?,
        _ => {
            for (i, place) in pattern.iter_mut().enumerate() {
                *place = *seen.get(i % distance)?;
            }
        }
    }
    let step = 16 / distance * distance;
    let mut done = 0;
    while done < len {
        *dst.get_mut(to + done..)?.first_chunk_mut::<16>()? = pattern;
        done += step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::codec::{Algorithm, Compressor, Decompressor};
    use coldframe_testing::guarded::Guarded;
    use proptest::prelude::*;

    /// Decodes with both decoders, which must agree. They must not touch anything outside their buffers,
    /// whose starts and ends are next to inaccessible pages.
    fn decoded(src: &[u8], size: usize) -> Option<Vec<u8>> {
        let made = [Guarded::at_end, Guarded::at_start].map(|guarded| {
            let src = guarded(src);
            let [fast, safe] = [decode, decode_safe].map(|decode| {
                let mut out = guarded(&vec![0xee; size + SLACK]);
                decode(&src, &mut out, size).then(|| out[..size].to_vec())
            });
            assert_eq!(fast, safe);
            safe
        });
        let [at_end, at_start] = made;
        assert_eq!(at_end, at_start);
        at_end
    }

    #[test]
    fn every_distance_and_length_is_decoded() {
        for distance in 1u16..=40 {
            for length in [4u8, 5, 15, 16, 17, 18, 19, 31, 33, 64, 200] {
                let head: Vec<u8> = (0..u8::try_from(distance).unwrap()).collect();
                let mut packed = vec![];
                let literals = u8::try_from(head.len()).unwrap();
                let short = |n: u8| n.min(15);
                packed.push(short(literals) << 4 | short(length - 4));
                if literals >= 15 {
                    packed.push(literals - 15);
                }
                packed.extend(&head);
                packed.extend(distance.to_le_bytes());
                if length - 4 >= 15 {
                    packed.push(length - 4 - 15);
                }
                packed.push(1 << 4);
                packed.push(0xab);
                let mut expected: Vec<u8> =
                    head.iter().copied().cycle().take(head.len() + usize::from(length)).collect();
                expected.push(0xab);
                assert_eq!(decoded(&packed, expected.len()), Some(expected.clone()), "{distance} {length}");
                assert_eq!(decoded(&packed, expected.len() - 1), None);
                for end in 0..packed.len() {
                    assert_eq!(decoded(&packed[..end], expected.len()), None);
                }
            }
        }
    }

    #[test]
    fn invalid_lz4_is_an_error() {
        // A distance of zero, a distance before the start, lengths without an end, and empty input.
        for wrong in [&[0x10, 1, 0, 0][..], &[0x10, 1, 2, 0], &[0xf0, 255, 255], &[0x1f, 1, 1, 0, 255], &[]] {
            assert_eq!(decoded(wrong, 5), None, "{wrong:?}");
        }
        let mut short = [0u8; 10];
        assert!(!decode(&[0x10, 1], &mut short, 1) && !decode_safe(&[0x10, 1], &mut short, 1));
        assert_eq!(decoded(&[0], 0), Some(vec![]));
    }

    proptest! {
        #[test]
        fn both_decoders_agree_on_invalid_input(
            src in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4, Just(0xf0), Just(0xff)], 0..90),
            size in 0usize..400,
        ) {
            decoded(&src, size);
        }

        #[test]
        fn decoders_agree_with_the_general_decoder(
            parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..40), 1usize..60), 0..30),
            hurt in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..3),
        ) {
            let raw: Vec<u8> = parts.iter().flat_map(|(bytes, n)| bytes.repeat(*n)).collect();
            let mut packed = Vec::new();
            Compressor::new().compress(Algorithm::Lz4, None, &raw, &mut packed).unwrap();
            let unhurt = decoded(&packed, raw.len());
            prop_assert_eq!(unhurt.as_deref(), Some(&raw[..]));
            prop_assert!(decoded(&packed, raw.len() + 1).is_none());
            for (at, mask) in hurt {
                let at = usize::from(at) % packed.len();
                packed[at] ^= mask;
            }
            let mut general = Vec::new();
            let known = Decompressor::new().decompress_exact(Algorithm::Lz4, &packed, raw.len(), &mut general);
            let fast = decoded(&packed, raw.len());
            // Whatever the general decoder accepts, this one decodes to the same bytes.
            if known.is_ok() {
                prop_assert_eq!(fast, Some(general));
            }
        }
    }
}
