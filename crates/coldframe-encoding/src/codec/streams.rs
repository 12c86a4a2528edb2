//! Codecs whose streams can expand almost without bound: zstd, bzip2, brotli.

use brotli::reader::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use zstd::zstd_safe;

use super::{Algorithm, Filled};
use crate::Result;

/// A zstd context, created on first use.
#[derive(Default)]
pub(super) struct ZstdDecoder(Option<zstd_safe::DCtx<'static>>);

impl ZstdDecoder {
    /// One call decodes all frames into the slice, so zstd allocates no window buffer, whose size the file
    /// would determine.
    pub(super) fn fill(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Filled> {
        if src.is_empty() {
            return Err(Algorithm::Zstd.corrupt("expected a frame, found nothing"));
        }
        let context = self.0.get_or_insert_with(zstd_safe::DCtx::create);
        match context.decompress(dst, src) {
            Ok(n) => Ok(Filled::To(n)),
            Err(code) => match zstd_safe::get_error_name(code) {
                "Destination buffer is too small" => overflow(context, src, dst.len()),
                name => Err(Algorithm::Zstd.corrupt(name)),
            },
        }
    }
}

/// libzstd also reports "too small" for damaged blocks (literals longer than allowed). The buffer is too
/// small only if the stream really yields more than `room` bytes, so that a damaged block cannot request a
/// larger buffer.
#[cold]
fn overflow(context: &mut zstd_safe::DCtx<'static>, src: &[u8], room: usize) -> Result<Filled> {
    let fail = |code| Algorithm::Zstd.corrupt(zstd_safe::get_error_name(code));
    context.reset(zstd_safe::ResetDirective::SessionOnly).map_err(fail)?;
    let mut sink = vec![0; 128 << 10];
    let mut input = zstd_safe::InBuffer::around(src);
    let mut total = 0usize;
    loop {
        let mut output = zstd_safe::OutBuffer::around(sink.as_mut_slice());
        let before = input.pos();
        context.decompress_stream(&mut output, &mut input).map_err(fail)?;
        total = total.saturating_add(output.pos());
        if total > room {
            context.reset(zstd_safe::ResetDirective::SessionOnly).map_err(fail)?;
            return Ok(Filled::Overflow);
        }
        if output.pos() == 0 && input.pos() == before {
            return Err(
                Algorithm::Zstd.corrupt(format_args!("expected more than {room} bytes, found {total}"))
            );
        }
    }
}

pub(super) fn zstd_content_size(src: &[u8]) -> Option<usize> {
    let size = zstd_safe::get_frame_content_size(src).ok().flatten()?;
    usize::try_from(size).ok()
}

/// Several streams may follow each other, as parallel bzip2 and Hadoop write them.
pub(super) fn bzip2(src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    let (mut rest, mut written) = (src, 0usize);
    loop {
        let mut stream = bzip2::Decompress::new(false);
        loop {
            let (read_before, wrote_before) = (stream.total_in(), stream.total_out());
            let mut spare = [0u8; 1];
            let free = dst.get_mut(written..).unwrap_or_default();
            let full = free.is_empty();
            // If the output is full, only the end of the stream may follow. A spare byte shows whether there
            // is more output instead.
            let room = if full { spare.as_mut_slice() } else { free };
            let status = stream.decompress(rest, room).map_err(|e| Algorithm::Bzip2.corrupt(e))?;
            let read = usize::try_from(stream.total_in() - read_before).unwrap_or(usize::MAX);
            let wrote = usize::try_from(stream.total_out() - wrote_before).unwrap_or(usize::MAX);
            rest = rest.get(read..).unwrap_or_default();
            if full && wrote > 0 {
                return Ok(Filled::Overflow);
            }
            written = written.saturating_add(wrote);
            if status == bzip2::Status::StreamEnd {
                break;
            }
            if read == 0 && wrote == 0 {
                return Err(Algorithm::Bzip2.corrupt("expected more input, found the end"));
            }
        }
        if rest.is_empty() {
            return Ok(Filled::To(written));
        }
    }
}

pub(super) fn brotli(src: &[u8], dst: &mut [u8]) -> Result<Filled> {
    let alloc = StandardAlloc::default;
    // This is strict: it refuses the large-window extension, which allows windows of 1 GiB.
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let (mut available, mut read) = (src.len(), 0);
    let (mut free, mut written, mut total) = (dst.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut available,
        &mut read,
        src,
        &mut free,
        &mut written,
        dst,
        &mut total,
        &mut state,
    );
    match result {
        BrotliResult::ResultSuccess if available == 0 => Ok(Filled::To(written)),
        BrotliResult::ResultSuccess => {
            Err(Algorithm::Brotli.corrupt(format_args!("expected the end, found {available} more bytes")))
        }
        BrotliResult::NeedsMoreOutput => Ok(Filled::Overflow),
        BrotliResult::NeedsMoreInput => Err(Algorithm::Brotli.corrupt("expected more input, found the end")),
        BrotliResult::ResultFailure => Err(Algorithm::Brotli.corrupt("invalid data")),
    }
}
