//! Compression with each algorithm.

use std::fmt;
use std::io::Write;
use std::ops::RangeInclusive;

use zstd::zstd_safe;

use super::{Algorithm, lzo};
use crate::{Error, Result};

/// Compresses, and keeps the encoders' working memory between calls.
#[derive(Default)]
pub struct Compressor {
    deflate: Option<(i32, libdeflater::Compressor)>,
    snappy: Option<snap::raw::Encoder>,
    lz4: Option<Box<lz4_flex::block::CompressTable>>,
    lzo: lzo::Encoder,
    zstd: Option<zstd_safe::CCtx<'static>>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Algorithm {
    /// The levels that [`Compressor::compress`] accepts, and its default; `None` if the algorithm has no
    /// levels.
    pub fn levels(self) -> Option<(RangeInclusive<i32>, i32)> {
        match self {
            Self::None | Self::Snappy | Self::Lz4 | Self::Lzo => None,
            Self::Zlib | Self::Gzip | Self::Deflate => Some((0..=12, 6)),
            Self::Zstd => Some((zstd_safe::min_c_level()..=zstd_safe::max_c_level(), 3)),
            Self::Bzip2 => Some((1..=9, 9)),
            Self::Brotli => Some((0..=11, 5)),
        }
    }

    /// The level to use: `level`, or the default for `None`. An error if the algorithm does not support the
    /// level.
    fn level(self, level: Option<i32>) -> Result<i32> {
        match (self.levels(), level) {
            (None, None) => Ok(0),
            (None, Some(n)) => {
                Err(Error::invalid(format!("{self}: expected no level, as it has none, found {n}")))
            }
            (Some((_, own)), None) => Ok(own),
            (Some((range, _)), Some(n)) if range.contains(&n) => Ok(n),
            (Some((range, _)), Some(n)) => Err(Error::invalid(format!(
                "{self}: expected a level of {} to {}, found {n}",
                range.start(),
                range.end()
            ))),
        }
    }

    #[cold]
    fn encoder_failed(self, reason: impl fmt::Display) -> Error {
        Error::invalid(format!("{self}: cannot compress: {reason}"))
    }
}

impl Compressor {
    /// Creates a compressor, without allocating memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the compressed form of `src` to `out`. If the level is `None`, the algorithm's usual level is
    /// used; see [`Algorithm::levels`].
    pub fn compress(
        &mut self,
        algorithm: Algorithm,
        level: Option<i32>,
        src: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let level = algorithm.level(level)?;
        let failed = |e: &dyn fmt::Display| algorithm.encoder_failed(e);
        match algorithm {
            Algorithm::None => {
                out.extend_from_slice(src);
                Ok(())
            }
            Algorithm::Zlib | Algorithm::Gzip | Algorithm::Deflate => {
                self.deflate(algorithm, level, src, out)
            }
            Algorithm::Snappy => {
                let snappy = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
                let most = snap::raw::max_compress_len(src.len());
                append(out, most, |dst| snappy.compress(src, dst).map_err(|e| failed(&e)))
            }
            Algorithm::Lz4 => {
                let table = self.lz4.get_or_insert_with(|| Box::new(lz4_flex::block::CompressTable::large()));
                let most = lz4_flex::block::get_maximum_output_size(src.len());
                append(out, most, |dst| {
                    lz4_flex::block::compress_into_with_table(src, dst, table).map_err(|e| failed(&e))
                })
            }
            Algorithm::Lzo => {
                self.lzo.compress(src, out);
                Ok(())
            }
            Algorithm::Zstd => {
                let zstd = self.zstd.get_or_insert_with(zstd_safe::CCtx::create);
                append(out, zstd_safe::compress_bound(src.len()), |dst| {
                    zstd.compress(dst, src, level).map_err(|code| failed(&zstd_safe::get_error_name(code)))
                })
            }
            Algorithm::Bzip2 => {
                let level = bzip2::Compression::new(level.unsigned_abs());
                let mut stream = bzip2::write::BzEncoder::new(out, level);
                stream.write_all(src).and_then(|()| stream.finish().map(drop)).map_err(|e| failed(&e))
            }
            Algorithm::Brotli => {
                let params = brotli::enc::BrotliEncoderParams {
                    quality: level,
                    size_hint: src.len(),
                    ..Default::default()
                };
                let mut src = src;
                brotli::BrotliCompress(&mut src, out, &params).map(drop).map_err(|e| failed(&e))
            }
        }
    }

    fn deflate(&mut self, algorithm: Algorithm, level: i32, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.deflate.as_ref().is_none_or(|(l, _)| *l != level) {
            let level_of = libdeflater::CompressionLvl::new(level);
            let level_of = level_of.map_err(|e| algorithm.encoder_failed(format_args!("{e:?}")))?;
            self.deflate = Some((level, libdeflater::Compressor::new(level_of)));
        }
        let Some((_, c)) = &mut self.deflate else { return Err(algorithm.encoder_failed("no encoder")) };
        let n = src.len();
        let failed = |e: libdeflater::CompressionError| algorithm.encoder_failed(e);
        match algorithm {
            Algorithm::Zlib => {
                append(out, c.zlib_compress_bound(n), |dst| c.zlib_compress(src, dst).map_err(failed))
            }
            Algorithm::Gzip => {
                append(out, c.gzip_compress_bound(n), |dst| c.gzip_compress(src, dst).map_err(failed))
            }
            _ => append(out, c.deflate_compress_bound(n), |dst| c.deflate_compress(src, dst).map_err(failed)),
        }
    }
}

/// Lets `encode` write into `most` new bytes of `out` and keeps as many bytes as it returns; after an error,
/// keeps no bytes.
fn append(out: &mut Vec<u8>, most: usize, encode: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<()> {
    let start = out.len();
    out.resize(start.saturating_add(most), 0);
    let written = encode(out.get_mut(start..).unwrap_or_default());
    out.truncate(start.saturating_add(*written.as_ref().unwrap_or(&0)));
    written.map(drop)
}
