//! Writes one stream of integers.

use coldframe_encoding::Result;

use super::int_rle::IntRle;
use super::stream::{Codec, Stream};

/// A stream of integers.
#[derive(Debug)]
pub(super) struct IntStream {
    rle: IntRle,
    stream: Stream,
}

impl IntStream {
    pub(super) fn new(signed: bool, aligned: bool) -> Self {
        Self { rle: IntRle::new(signed, aligned), stream: Stream::default() }
    }

    pub(super) fn write(&mut self, values: &[i64], codec: &mut Codec) -> Result<()> {
        self.rle.write(values, &mut self.stream.open)?;
        self.stream.spill(codec)
    }

    pub(super) fn position(&self, codec: &Codec, to: &mut Vec<u64>) {
        self.stream.position(codec, to);
        to.push(self.rle.pending());
    }

    pub(super) fn take(&mut self, codec: &mut Codec) -> Result<Vec<u8>> {
        self.rle.flush(&mut self.stream.open)?;
        self.stream.take(codec)
    }

    pub(super) fn into_stream(mut self) -> Result<Stream> {
        self.rle.flush(&mut self.stream.open)?;
        Ok(self.stream)
    }

    pub(super) fn memory(&self, codec: &Codec) -> usize {
        self.stream.memory(codec)
    }

    pub(super) fn is_aligned(&self) -> bool {
        self.rle.is_aligned()
    }
}
