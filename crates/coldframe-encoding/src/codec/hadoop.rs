//! Hadoop's codecs: a class name in a file names the algorithm and whether its blocks are framed.
//!
//! Snappy, LZ4 and LZO have no stream form of their own in Hadoop, so `BlockCompressorStream` frames raw
//! blocks. A block has one raw length and one chunk, or several if the writer was given more than its buffer
//! holds:
//!
//! ```text
//! block  | raw length u32 BE | chunk ... until the raw length is reached
//! chunk  | length u32 BE | one raw snappy, LZ4 or LZO block
//! ```
//!
//! Blocks follow each other to the end of the bytes; a block of raw length 0 may occur anywhere and has no
//! chunk. The other codecs (zlib, gzip, bzip2, zstd) write one stream without framing.
//!
//! [`HadoopCodec::compress`] writes one chunk per block. Like Hadoop's own writers, it makes blocks no longer
//! than the default buffer of Hadoop's decoders (256 KiB; aircompressor's LZO 64 KiB), less the worst-case
//! growth of the algorithm.

use super::{Algorithm, Compressor, Decompressor, Filled, check_expansion};
use crate::{Cursor, Error, Result};

/// A codec as Hadoop's configuration and files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HadoopCodec {
    /// The compression algorithm.
    pub algorithm: Algorithm,
    /// Whether the codec uses the framing of `BlockCompressorStream`.
    pub framed: bool,
    /// The Java class name in files.
    pub class_name: &'static str,
}

const fn bare(algorithm: Algorithm, class_name: &'static str) -> HadoopCodec {
    HadoopCodec { algorithm, framed: false, class_name }
}

const fn framed(algorithm: Algorithm, class_name: &'static str) -> HadoopCodec {
    HadoopCodec { algorithm, framed: true, class_name }
}

/// All codecs. Of the codecs with the same algorithm, the first is used for writing.
const CODECS: &[HadoopCodec] = &[
    bare(Algorithm::Zlib, "org.apache.hadoop.io.compress.DefaultCodec"),
    bare(Algorithm::Zlib, "org.apache.hadoop.io.compress.DeflateCodec"),
    bare(Algorithm::Gzip, "org.apache.hadoop.io.compress.GzipCodec"),
    bare(Algorithm::Bzip2, "org.apache.hadoop.io.compress.BZip2Codec"),
    framed(Algorithm::Snappy, "org.apache.hadoop.io.compress.SnappyCodec"),
    framed(Algorithm::Lz4, "org.apache.hadoop.io.compress.Lz4Codec"),
    bare(Algorithm::Zstd, "org.apache.hadoop.io.compress.ZStandardCodec"),
    framed(Algorithm::Lzo, "com.hadoop.compression.lzo.LzoCodec"),
    framed(Algorithm::Lzo, "org.apache.hadoop.io.compress.LzoCodec"),
    bare(Algorithm::Gzip, "io.airlift.compress.gzip.JdkGzipCodec"),
    bare(Algorithm::Bzip2, "io.airlift.compress.bzip2.BZip2Codec"),
    framed(Algorithm::Snappy, "io.airlift.compress.snappy.SnappyCodec"),
    framed(Algorithm::Lz4, "io.airlift.compress.lz4.Lz4Codec"),
    framed(Algorithm::Lzo, "io.airlift.compress.lzo.LzoCodec"),
    bare(Algorithm::Zstd, "io.airlift.compress.zstd.ZstdCodec"),
    bare(Algorithm::Gzip, "io.airlift.compress.v2.gzip.JdkGzipCodec"),
    bare(Algorithm::Bzip2, "io.airlift.compress.v2.bzip2.BZip2Codec"),
    framed(Algorithm::Snappy, "io.airlift.compress.v2.snappy.SnappyCodec"),
    framed(Algorithm::Lz4, "io.airlift.compress.v2.lz4.Lz4Codec"),
    framed(Algorithm::Lzo, "io.airlift.compress.v2.lzo.LzoCodec"),
    bare(Algorithm::Zstd, "io.airlift.compress.v2.zstd.ZstdCodec"),
    bare(Algorithm::Gzip, "io.airlift.compress.v3.gzip.JdkGzipCodec"),
    bare(Algorithm::Bzip2, "io.airlift.compress.v3.bzip2.BZip2Codec"),
    framed(Algorithm::Snappy, "io.airlift.compress.v3.snappy.SnappyCodec"),
    framed(Algorithm::Lz4, "io.airlift.compress.v3.lz4.Lz4Codec"),
    framed(Algorithm::Lzo, "io.airlift.compress.v3.lzo.LzoCodec"),
    bare(Algorithm::Zstd, "io.airlift.compress.v3.zstd.ZstdCodec"),
];

impl HadoopCodec {
    /// The codec that a file names; if it is unknown, an unsupported error with the name.
    pub fn from_class_name(class_name: &str) -> Result<Self> {
        if let Some(codec) = CODECS.iter().find(|c| c.class_name == class_name) {
            return Ok(*codec);
        }
        Err(Error::unsupported(if class_name.ends_with(".LzopCodec") {
            format!("codec {class_name}: lzop containers are not supported, only LzoCodec's framed blocks")
        } else {
            format!("codec {class_name} is not known")
        }))
    }

    /// Hadoop's codec for writing an algorithm; `None` if Hadoop has no such codec.
    pub fn from_algorithm(algorithm: Algorithm) -> Result<Self> {
        let codec = CODECS.iter().find(|c| c.algorithm == algorithm);
        codec.copied().ok_or_else(|| Error::unsupported(format!("Hadoop has no codec for {algorithm}")))
    }

    /// Whether the stream has a checksum of its contents.
    pub const fn is_summed(&self) -> bool {
        matches!(self.algorithm, Algorithm::Zlib | Algorithm::Gzip | Algorithm::Bzip2)
    }

    /// A framed codec of the algorithm, for data whose writing class is unknown.
    pub const fn framed(algorithm: Algorithm) -> Self {
        framed(algorithm, "org.apache.hadoop.io.compress.BlockDecompressorStream")
    }

    /// Appends the contents of `src` to `out`; which must be exactly `expected` bytes. Empty input gives
    /// empty output.
    pub fn decompress_exact(
        &self,
        decompressor: &mut Decompressor,
        src: &[u8],
        expected: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.framed && !src.is_empty() {
            return decompressor.decompress_exact(self.algorithm, src, expected, out);
        }
        check_expansion(self.algorithm, src, expected)?;
        let start = out.len();
        // Without this, growing by a block at a time would take twice the memory.
        if expected <= self.algorithm.justified(src.len()) {
            out.reserve_exact(expected);
        }
        let len = self.decompress_blocks(decompressor, src, expected, out);
        if matches!(len, Ok(n) if n == expected) {
            return Ok(());
        }
        out.truncate(start);
        // Like Hadoop's reader, this relies on the content of the chunks and not on the raw lengths of the
        // blocks.
        if expected <= self.algorithm.justified(src.len()) {
            out.resize(start.saturating_add(expected), 0);
            let dst = out.get_mut(start..).unwrap_or_default();
            if self.fill_by_chunks(decompressor, src, dst).is_ok() {
                return Ok(());
            }
            out.truncate(start);
        }
        let len = len?;
        Err(self.algorithm.corrupt(format_args!("expected {expected} bytes, found {len}")))
    }

    /// Fills `dst` with the contents of `src`, which must have exactly that size. Errors are less detailed
    /// than the errors of [`Self::decompress_exact`], and leave arbitrary bytes in `dst`. Call
    /// [`Self::may_expand`] before allocating `dst`.
    pub fn decompress_into(&self, decompressor: &mut Decompressor, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if self.framed || src.is_empty() {
            return self.fill_by_chunks(decompressor, src, dst);
        }
        match decompressor.fill(self.algorithm, src, dst)? {
            Filled::To(n) if n == dst.len() => Ok(()),
            _ => Err(self
                .algorithm
                .corrupt(format_args!("expected {} bytes, found another number", dst.len()))),
        }
    }

    /// Whether memory may be allocated for the `size` bytes that `src` claims to hold.
    pub fn may_expand(&self, src: &[u8], size: usize) -> bool {
        size <= self.algorithm.justified(src.len())
    }

    /// Fills `dst` from blocks of one chunk, or of several chunks if the raw length is larger. A wrong raw
    /// length is ignored, as long as all chunks together fill `dst` exactly.
    fn fill_by_chunks(&self, decompressor: &mut Decompressor, src: &[u8], mut dst: &mut [u8]) -> Result<()> {
        let mut src = Cursor::new(src, 0);
        while !src.is_empty() {
            let raw = length(&mut src)?;
            let before = dst.len();
            while !src.is_empty() && before - dst.len() < raw {
                let chunk = length(&mut src)?;
                match decompressor.fill(self.algorithm, src.take(chunk)?, dst)? {
                    Filled::To(n) => dst = dst.get_mut(n..).unwrap_or_default(),
                    Filled::Overflow => return Err(Error::corrupt("more bytes than expected")),
                }
            }
        }
        if dst.is_empty() { Ok(()) } else { Err(Error::corrupt("fewer bytes than expected")) }
    }

    /// Appends the contents of `src` to `out`, at most `ceiling` bytes, and returns their number.
    pub fn decompress_bounded(
        &self,
        decompressor: &mut Decompressor,
        src: &[u8],
        ceiling: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        if !self.framed && !src.is_empty() {
            return decompressor.decompress_bounded(self.algorithm, src, ceiling, out);
        }
        self.decompress_blocks(decompressor, src, ceiling, out)
    }

    fn decompress_blocks(
        &self,
        decompressor: &mut Decompressor,
        src: &[u8],
        ceiling: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let start = out.len();
        let mut src = Cursor::new(src, 0);
        while !src.is_empty() {
            let left = ceiling.saturating_sub(out.len() - start);
            let block = self.decompress_block(decompressor, &mut src, left, out);
            if let Err(e) = block {
                out.truncate(start);
                // The offset of `e` is dropped, because offsets within the compressed bytes would be mistaken
                // for offsets in the file.
                return Err(Error::new(e.into_kind()).within(format!("{} framing", self.algorithm)));
            }
        }
        Ok(out.len() - start)
    }

    fn decompress_block(
        &self,
        decompressor: &mut Decompressor,
        src: &mut Cursor<'_>,
        ceiling: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let raw = length(src)?;
        if raw > ceiling {
            return Err(Error::corrupt(format!("expected a block of at most {ceiling} bytes, found {raw}")));
        }
        check_expansion(self.algorithm, src.rest(), raw)?;
        let start = out.len();
        if raw <= self.algorithm.justified(src.remaining()) {
            out.resize(start.saturating_add(raw), 0);
            return self.fill_chunks(decompressor, src, out.get_mut(start..).unwrap_or_default());
        }
        while out.len() - start < raw {
            let chunk = length(src)?;
            let left = raw - (out.len() - start);
            decompressor.decompress_bounded(self.algorithm, src.take(chunk)?, left, out)?;
        }
        Ok(())
    }

    /// Decodes chunks until `dst` is full.
    fn fill_chunks(
        &self,
        decompressor: &mut Decompressor,
        src: &mut Cursor<'_>,
        mut dst: &mut [u8],
    ) -> Result<()> {
        while !dst.is_empty() {
            let chunk = length(src)?;
            let left = dst.len();
            match decompressor.fill(self.algorithm, src.take(chunk)?, dst)? {
                Filled::To(n) => dst = dst.get_mut(n..).unwrap_or_default(),
                Filled::Overflow => {
                    return Err(Error::corrupt(format!(
                        "expected a chunk of at most {left} bytes, found more"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Appends the compressed form of `src` to `out`.
    pub fn compress(
        &self,
        compressor: &mut Compressor,
        level: Option<i32>,
        src: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.framed {
            return compressor.compress(self.algorithm, level, src, out);
        }
        if src.is_empty() {
            out.extend_from_slice(&[0; 4]);
        }
        for block in src.chunks(self.block_size()) {
            put_length(out, block.len());
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            compressor.compress(self.algorithm, level, block, out)?;
            let written = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX); // blocks are below 256 KiB
            if let Some(place) = out.get_mut(at..).and_then(|o| o.first_chunk_mut()) {
                *place = written.to_be_bytes();
            }
        }
        Ok(())
    }

    /// The maximum raw bytes of a block: Hadoop's buffer, less what its codec classes reserve for worst-case
    /// growth.
    fn block_size(&self) -> usize {
        const BUFFER: usize = 256 << 10;
        match self.algorithm {
            Algorithm::Snappy => BUFFER - (BUFFER / 6 + 32),
            Algorithm::Lz4 => BUFFER - (BUFFER / 255 + 16),
            // aircompressor's LzoCodec has 64 KiB by default.
            Algorithm::Lzo => (64 << 10) - ((64 << 10) / 16 + 67),
            _ => BUFFER / 2,
        }
    }
}

fn length(src: &mut Cursor<'_>) -> Result<usize> {
    let n = src.u32_be()?;
    usize::try_from(n).map_err(|_| Error::corrupt(format!("expected a length that fits memory, found {n}")))
}

fn put_length(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(codec: &HadoopCodec, src: &[u8]) -> Result<Vec<u8>> {
        let mut out = vec![];
        codec.decompress_bounded(&mut Decompressor::new(), src, 1 << 24, &mut out).map(|_| out)
    }

    #[test]
    fn classes_name_their_algorithm_and_framing() {
        for codec in CODECS {
            assert_eq!(HadoopCodec::from_class_name(codec.class_name).unwrap(), *codec);
        }
        let lzo = HadoopCodec::from_class_name("com.hadoop.compression.lzo.LzoCodec").unwrap();
        assert_eq!((lzo.algorithm, lzo.framed), (Algorithm::Lzo, true));
        assert_eq!(HadoopCodec::from_algorithm(Algorithm::Lzo).unwrap(), lzo);
        let e = HadoopCodec::from_class_name("com.example.MyCodec").unwrap_err();
        assert_eq!(e.to_string(), "codec com.example.MyCodec is not known");
        let e = HadoopCodec::from_class_name("com.hadoop.compression.lzo.LzopCodec").unwrap_err();
        assert!(e.to_string().starts_with("codec com.hadoop.compression.lzo.LzopCodec: lzop containers"));
        let e = HadoopCodec::from_algorithm(Algorithm::Brotli).unwrap_err();
        assert_eq!(e.to_string(), "Hadoop has no codec for brotli");
    }

    /// Tests a block of several chunks, and blocks of length 0 before, between and after other blocks.
    #[test]
    fn blocks_of_many_chunks_and_empty_blocks_are_read() {
        for algorithm in Algorithm::ALL {
            let mut src = vec![0; 4];
            for parts in [&[&b"first chunk, "[..], b"second chunk, "][..], &[b"another block"]] {
                put_length(&mut src, parts.iter().map(|p| p.len()).sum());
                for part in parts {
                    let mut chunk = vec![];
                    Compressor::new().compress(algorithm, None, part, &mut chunk).unwrap();
                    put_length(&mut src, chunk.len());
                    src.extend(chunk);
                }
                src.extend([0; 4]);
            }
            let out = bounded(&HadoopCodec::framed(algorithm), &src).unwrap();
            assert_eq!(out, b"first chunk, second chunk, another block", "{algorithm}");
        }
    }

    #[test]
    fn empty_input_is_empty_output() {
        for codec in CODECS {
            let mut out = vec![];
            codec.decompress_exact(&mut Decompressor::new(), &[], 0, &mut out).unwrap();
            assert!(codec.decompress_exact(&mut Decompressor::new(), &[], 1, &mut out).is_err());
            let mut empty = vec![];
            codec.compress(&mut Compressor::new(), None, &[], &mut empty).unwrap();
            assert_eq!(bounded(codec, &empty).unwrap(), b"", "{codec:?}");
        }
    }

    /// Blocks fit into the buffer of Hadoop's decoders, raw and compressed, whatever the bytes are.
    #[test]
    fn written_blocks_fit_hadoops_buffer() {
        let mut state = 7u64;
        let noise: Vec<u8> = (0..600_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        for codec in CODECS.iter().filter(|c| c.framed) {
            let mut src = vec![];
            codec.compress(&mut Compressor::new(), None, &noise, &mut src).unwrap();
            assert!(bounded(codec, &src).unwrap() == noise, "{codec:?}");
            let mut c = Cursor::new(&src, 0);
            let mut blocks = 0;
            while !c.is_empty() {
                let buffer = if codec.algorithm == Algorithm::Lzo { 64 << 10 } else { 256 << 10 };
                assert!(length(&mut c).unwrap() <= buffer);
                let chunk = length(&mut c).unwrap();
                assert!(chunk <= buffer);
                c.skip(chunk).unwrap();
                blocks += 1;
            }
            assert!((3..11).contains(&blocks), "{codec:?} {blocks}");
        }
    }

    /// As in Hadoop's reader, the raw length of a block is only used to decide whether more chunks follow.
    #[test]
    fn a_wrong_raw_length_does_no_harm_if_the_size_is_known() {
        let text = b"the same text, the same text, the same text";
        for algorithm in [Algorithm::Snappy, Algorithm::Lz4, Algorithm::Lzo] {
            let codec = HadoopCodec::framed(algorithm);
            let mut src = vec![];
            codec.compress(&mut Compressor::new(), None, text, &mut src).unwrap();
            for (byte, mask) in [(0, 0xff), (1, 1), (3, 0x40), (3, 0x08)] {
                let mut damaged = src.clone();
                damaged[byte] ^= mask;
                let mut place = vec![0; text.len()];
                assert!(codec.may_expand(&damaged, text.len()) && !codec.may_expand(&damaged, 1 << 20));
                codec.decompress_into(&mut Decompressor::new(), &damaged, &mut place).unwrap();
                assert_eq!(place, text);
                for size in [42, 44] {
                    let place = &mut vec![0; size];
                    assert!(codec.decompress_into(&mut Decompressor::new(), &damaged, place).is_err());
                }
                let mut out = b"before ".to_vec();
                codec.decompress_exact(&mut Decompressor::new(), &damaged, text.len(), &mut out).unwrap();
                assert_eq!(&out[7..], text, "{algorithm} {byte} {mask:x}");
                assert!(codec.decompress_exact(&mut Decompressor::new(), &damaged, 42, &mut out).is_err());
                assert_eq!(out.len(), 7 + text.len());
            }
        }
    }

    #[test]
    fn false_lengths_in_the_framing_are_errors() {
        let snappy = HadoopCodec::framed(Algorithm::Snappy);
        let e = bounded(&snappy, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "snappy framing: expected a block of at most 16777216 bytes, found 2147483647"
        );
        let e = bounded(&snappy, &[0, 0, 0xff, 0xff, 0, 0, 0, 1, 0]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "snappy framing: snappy: expected 65535 bytes, found 5 bytes that expand to at most 110"
        );
        let e = bounded(&snappy, &[0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0]).unwrap_err();
        assert_eq!(e.to_string(), "snappy framing: expected 4294967295 more bytes, found 1");
    }
}
