//! Deflate in its three wrappers.
//!
//! ```text
//! zlib  | CMF FLG | deflate | Adler-32 BE |
//! gzip  | 1f 8b 08 FLG MTIME(4) XFL OS | [extra, name, comment, crc] | deflate | CRC-32 LE | size mod 2^32 LE |
//! ```
//!
//! The pure-Java gzip of old Hadoop (seen from Hive 0.8.1) writes blocks without the 10-byte header, and
//! their CRC-32 continues from the previous block of the same compressor. Such blocks are read too. The
//! CRC-32 cannot be checked for a single block, so instead the deflate stream must end exactly 8 bytes before
//! the end and have the stored size.
//!
//! libdeflate is used because whole buffers are available. Compared with flate2 and zlib-rs on one core of a
//! shared 2-core x86-64 machine, in MB/s of output from blocks of 64 KiB to 1 MiB:
//!
//! | data (ratio) | libdeflate | zlib-rs |
//! |---|---|---|
//! | RCFile, text cells (1.5) | 350 to 395 | 180 to 245 |
//! | prose (2.4) | 710 to 815 | 335 to 410 |
//! | JSON (11) | 2040 to 3570 | 725 to 985 |
//!
//! A decoder of our own in safe code, which interleaved two chunks and decoded up to three literals per
//! look-up, took 1.4 times as long as libdeflate for the chunks of an ORC file: mispredicted branches cost
//! more than look-ups that depend on each other.
//!
//! flate2 is still used for two questions that libdeflate cannot answer: where a stream ends, and whether
//! further members follow.

use std::io::Read;

use libdeflater::DecompressionError;
use memchr::memmem;

use super::{Algorithm, Filled};
use crate::Result;

/// A libdeflate context, created on first use.
#[derive(Default)]
pub(super) struct Inflate(Option<libdeflater::Decompressor>);

impl Inflate {
    fn context(&mut self) -> &mut libdeflater::Decompressor {
        self.0.get_or_insert_with(libdeflater::Decompressor::new)
    }

    /// Does not detect bytes after the last deflate block: libdeflate does not report where a raw stream
    /// ends.
    pub(super) fn raw(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        filled(Algorithm::Deflate, self.context().deflate_decompress(src, dst))
    }

    pub(super) fn zlib(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        let filled = filled(Algorithm::Zlib, self.context().zlib_decompress(src, dst))?;
        if let Filled::To(n) = filled {
            let sum = libdeflater::adler32(dst.get(..n).unwrap_or_default());
            if !ends_with_first(src, &sum.to_be_bytes()) {
                ends(Algorithm::Zlib, flate2::Decompress::new(true), src)?;
            }
        }
        Ok(filled)
    }

    pub(super) fn gzip(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        if !src.starts_with(&[0x1f, 0x8b]) {
            return self.gzip_without_header(src, dst);
        }
        let filled = filled(Algorithm::Gzip, self.context().gzip_decompress(src, dst))?;
        match filled {
            Filled::To(n) if !ends_with_first(src, &gzip_trailer(dst.get(..n).unwrap_or_default())) => {
                gzip_members(src, dst)
            }
            _ => Ok(filled),
        }
    }

    fn gzip_without_header(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        let Some((body, stored)) = src.split_last_chunk::<8>() else {
            return Err(
                Algorithm::Gzip.corrupt(format_args!("expected at least 8 bytes, found {}", src.len()))
            );
        };
        let not_gzip =
            || Algorithm::Gzip.corrupt("expected the magic 1f8b or deflate without a header, found neither");
        let filled = match self.context().deflate_decompress(body, dst) {
            Err(DecompressionError::BadData) => return Err(not_gzip()),
            other => filled(Algorithm::Gzip, other)?,
        };
        if let Filled::To(n) = filled {
            let trailer = gzip_trailer(dst.get(..n).unwrap_or_default());
            if stored.last_chunk::<4>() != trailer.last_chunk::<4>() {
                return Err(not_gzip());
            }
            if *stored != trailer {
                ends(Algorithm::Gzip, flate2::Decompress::new(false), body)?;
            }
        }
        Ok(filled)
    }
}

fn filled(algorithm: Algorithm, result: Result<usize, DecompressionError>) -> Result<Filled> {
    match result {
        Ok(n) => Ok(Filled::To(n)),
        Err(DecompressionError::InsufficientSpace) => Ok(Filled::Overflow),
        Err(DecompressionError::BadData) => Err(algorithm.corrupt("invalid data, or its checksum differs")),
    }
}

/// The CRC-32 and size at the end of a gzip member.
fn gzip_trailer(data: &[u8]) -> [u8; 8] {
    let size = u32::try_from(data.len() & 0xffff_ffff).unwrap_or(0);
    let trailer = u64::from(libdeflater::crc32(data)) | u64::from(size) << 32;
    trailer.to_le_bytes()
}

/// Whether nothing follows the stream. libdeflate does not report where the stream ends, but it ends with its
/// checksum: if the checksum occurs first at the end of `src`, nothing follows.
fn ends_with_first(src: &[u8], checksum: &[u8]) -> bool {
    memmem::find(src, checksum) == src.len().checked_sub(checksum.len())
}

/// An error if a raw stream does not end where `src` ends. Decompression itself stops after the last block
/// and ignores further bytes.
pub fn check_end(src: &[u8]) -> Result<()> {
    ends(Algorithm::Deflate, flate2::Decompress::new(false), src)
}

/// An error if bytes follow the stream.
#[cold]
fn ends(algorithm: Algorithm, mut stream: flate2::Decompress, src: &[u8]) -> Result<()> {
    let mut sink = vec![0; 32 << 10];
    loop {
        let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let rest = src.get(read..).unwrap_or_default();
        let wrote = stream.total_out();
        let status = stream.decompress(rest, &mut sink, flate2::FlushDecompress::None);
        let status = status.map_err(|e| algorithm.corrupt(e))?;
        let now = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        match status {
            flate2::Status::StreamEnd if now == src.len() => return Ok(()),
            flate2::Status::StreamEnd => {
                let more = src.len().saturating_sub(now);
                return Err(algorithm.corrupt(format_args!("expected the end, found {more} more bytes")));
            }
            _ if now == read && stream.total_out() == wrote => {
                return Err(algorithm.corrupt("expected more input, found the end"));
            }
            _ => {}
        }
    }
}

/// Decodes several members, one after another. Other bytes after a member are an error.
#[cold]
fn gzip_members(src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    let mut members = flate2::bufread::MultiGzDecoder::new(src);
    let mut written = 0usize;
    loop {
        let mut spare = [0u8; 1];
        let free = dst.get_mut(written..).unwrap_or_default();
        let full = free.is_empty();
        let room = if full { spare.as_mut_slice() } else { free };
        match members.read(room) {
            Ok(0) => return Ok(Filled::To(written)),
            Ok(_) if full => return Ok(Filled::Overflow),
            Ok(n) => written = written.saturating_add(n),
            Err(e) => return Err(Algorithm::Gzip.corrupt(format_args!("after the first member: {e}"))),
        }
    }
}
