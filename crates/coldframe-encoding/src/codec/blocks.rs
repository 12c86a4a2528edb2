//! Codecs that work on whole blocks: stored, snappy, LZ4.

use super::{Algorithm, Filled};
use crate::Result;

pub(super) fn copy(src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    match dst.get_mut(..src.len()) {
        Some(dst) => {
            dst.copy_from_slice(src);
            Ok(Filled::To(src.len()))
        }
        None => Ok(Filled::Overflow),
    }
}

pub(super) fn snappy_content_size(src: &[u8]) -> Option<usize> {
    snap::raw::decompress_len(src).ok()
}

pub(super) fn snappy(decoder: &mut snap::raw::Decoder, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    match decoder.decompress(src, dst) {
        Ok(n) => Ok(Filled::To(n)),
        Err(snap::Error::BufferTooSmall { .. }) => Ok(Filled::Overflow),
        Err(e) => Err(Algorithm::Snappy.corrupt(e)),
    }
}

pub(super) fn lz4(src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    use lz4_flex::block::{DecompressError, decompress_into};
    match decompress_into(src, dst) {
        Ok(n) => Ok(Filled::To(n)),
        Err(DecompressError::OutputTooSmall { .. }) => Ok(Filled::Overflow),
        Err(e) => Err(Algorithm::Lz4.corrupt(e)),
    }
}
