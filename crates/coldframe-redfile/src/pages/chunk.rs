//! The pages of one leaf in one row group, opened.
//!
//! ```text
//! page  | repetition levels | definition levels | values |     compressed together; the order is the dialect's
//! ```

use arrow_schema::DataType;
use bytes::Bytes;
use coldframe_encoding::checksum::check_crc32;
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::codec::{Algorithm, Decompressor};
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Limits, Result};

use super::levels::{Levels, Runs};
use super::plain::{PageValues, Values, check_text, fixed_width};
use super::walk::Page;
use crate::layout::dialect::Dialect;
use crate::layout::metadata::{Codec, PLAIN};
use crate::layout::page::DataPage;
use crate::schema::Leaf;

/// A page that is being read.
#[derive(Clone, Debug)]
pub(crate) struct OpenPage {
    pub(crate) number: usize,
    pub(crate) offset: u64,
    pub(crate) count: usize,
    pub(crate) at: usize,
    /// The number of non-null values that are not read yet.
    pub(crate) present: usize,
    pub(crate) levels: Levels,
    /// Set instead of `levels` if a short page of a leaf without repetition has many entries.
    pub(crate) runs: Option<Runs>,
    pub(crate) values: PageValues,
    /// Whether an entry takes less than a bit. If so, their number is not limited by the length of the file.
    pub(crate) unbacked: bool,
}

/// Buffers of a finished page, reused for the next page. A clone has no buffers.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pub(crate) levels: Levels,
    /// For the page's decompressed bytes.
    pub(crate) scratch: Vec<u8>,
}

impl Clone for Spare {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl OpenPage {
    /// Adds the page to an error.
    pub(crate) fn locate(&self, e: Error) -> Error {
        Error::new(e.into_kind()).at(self.offset).within(format!("page {}", self.number))
    }
}

/// The context of all pages of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkContext {
    /// The leaf.
    pub(crate) leaf: Leaf,
    /// The dialect.
    pub(crate) dialect: Dialect,
    /// The decompressor.
    pub(crate) codec: Option<HadoopCodec>,
    /// Whether the checksums of pages are compared.
    pub(crate) verify: bool,
    /// The limits on memory.
    pub(crate) limits: Limits,
}

/// The decompressor for pages whose metadata names `codec`.
pub(crate) fn page_codec(codec: Codec) -> Result<Option<HadoopCodec>> {
    match codec {
        Codec::Uncompressed => Ok(None),
        Codec::Snappy => Ok(Some(HadoopCodec::framed(Algorithm::Snappy))),
        Codec::Lzo => Ok(Some(HadoopCodec::framed(Algorithm::Lzo))),
        Codec::Gzip => HadoopCodec::from_algorithm(Algorithm::Gzip).map(Some),
        Codec::Unknown(code) => Err(Error::unsupported(format!("pages compressed by codec number {code}"))),
    }
}

impl ChunkContext {
    /// Whether values are put at their rows while they are read. This needs one entry per row, and numbers
    /// that need no byte swap.
    pub(crate) fn spreads(&self) -> bool {
        let leaf = &self.leaf;
        let number = matches!(fixed_width(leaf.physical_type), Some(4 | 8));
        number && leaf.max_repetition == 0 && leaf.max_definition > 0 && !self.dialect.big_endian()
    }

    /// A page's decompressed bytes.
    pub(crate) fn decompress(&self, page: &Page, decompressor: &mut Decompressor) -> Result<Bytes> {
        self.decompress_into(page, decompressor, Vec::new())
    }

    /// Like [`Self::decompress`], into the buffer `scratch`.
    fn decompress_into(
        &self,
        page: &Page,
        decompressor: &mut Decompressor,
        mut scratch: Vec<u8>,
    ) -> Result<Bytes> {
        self.check(page)?;
        let Some(codec) = &self.codec else {
            if page.header.uncompressed == page.stored.len() {
                return Ok(page.stored.clone());
            }
            let (actual, expected) = (page.stored.len(), page.header.uncompressed);
            return Err(Error::corrupt(format!("expected {expected} bytes, found {actual}")));
        };
        let most = codec.algorithm.max_expansion(page.stored.len()) as u64;
        let expected = self.limits.unpacked("a page", page.header.uncompressed as u64, most)?;
        scratch.clear();
        codec.decompress_exact(decompressor, &page.stored, expected, &mut scratch)?;
        Ok(scratch.into())
    }

    /// Compares the checksum of a page, if the page has a checksum.
    fn check(&self, page: &Page) -> Result<()> {
        match page.header.crc.filter(|_| self.verify) {
            Some(crc) => Ok(check_crc32(crc, &page.stored)?),
            None => Ok(()),
        }
    }

    /// Appends all values of a page to `out`, if they are plain numbers without levels and intact.
    pub(crate) fn append_plain(
        &self,
        page: &Page,
        decompressor: &mut Decompressor,
        out: &mut Values,
    ) -> bool {
        let (Some(codec), Some(width), Values::Fixed(out)) =
            (&self.codec, fixed_width(self.leaf.physical_type), out)
        else {
            return false;
        };
        let (start, size) = (out.len(), page.data.num_values.saturating_mul(width));
        let plain =
            self.leaf.max_definition == 0 && page.data.encoding == PLAIN && !self.dialect.big_endian();
        if !plain || page.header.uncompressed != size || self.limits.block("a page", size as u64).is_err() {
            return false;
        }
        if self.check(page).is_err() || !codec.may_expand(&page.stored, size) {
            return false;
        }
        out.resize(start.saturating_add(size), 0);
        let place = out.as_slice_mut().get_mut(start..).unwrap_or_default();
        let done = codec.decompress_into(decompressor, &page.stored, place).is_ok();
        if !done {
            out.truncate(start);
        }
        done
    }

    /// Levels and values of a page.
    pub(crate) fn load(
        &self,
        page: &Page,
        decompressor: &mut Decompressor,
        spare: Spare,
    ) -> Result<OpenPage> {
        let mut load = |Spare { mut levels, scratch }: Spare| -> Result<OpenPage> {
            let bytes = self.decompress_into(page, decompressor, scratch)?;
            let count = page.data.num_values;
            let unbacked = count / 8 > bytes.len();
            let at = self.dialect.read_levels(&self.leaf, &bytes, count, &self.limits, &mut levels)?;
            let present = levels.present(&self.leaf, count);
            let bytes = bytes.slice(at.min(bytes.len())..);
            let physical = self.leaf.physical_type;
            let values = PageValues::new(self.dialect, physical, page.data.encoding, bytes, present)?;
            let packs = unbacked && self.leaf.max_repetition == 0;
            let runs = if packs { Runs::of(&levels.definition) } else { None };
            let levels = if runs.is_some() { Levels::default() } else { levels };
            Ok(OpenPage {
                number: page.number,
                offset: page.place.start,
                count,
                at: 0,
                present,
                levels,
                runs,
                values,
                unbacked,
            })
        };
        // Offsets in errors are dropped, because offsets inside decompressed bytes would be mistaken for
        // offsets in the file.
        load(spare)
            .map_err(|e| Error::new(e.into_kind()).at(page.place.start))
            .within(|| format!("page {}", page.number))
    }

    /// Whether the byte arrays of a decompressed page are UTF-8; `None` if it cannot be read.
    pub(crate) fn is_text(&self, header: DataPage, page: &Bytes) -> Option<bool> {
        let mut levels = Levels::default();
        let count = header.num_values;
        let at = self.dialect.read_levels(&self.leaf, page, count, &self.limits, &mut levels).ok()?;
        let present = levels.present(&self.leaf, count);
        let bytes = page.slice(at.min(page.len())..);
        let physical = self.leaf.physical_type;
        let mut out = Values::new(physical);
        let values = PageValues::new(self.dialect, physical, header.encoding, bytes, present);
        values.ok()?.read(present, &mut out).ok()?;
        let Values::Arrays { offsets, data } = out else { return None };
        Some(check_text(&offsets, &data).is_ok())
    }

    /// Decodes a whole page, whose values are to become `data_type`; returns its levels.
    pub(crate) fn try_page(
        &self,
        page: &Page,
        data_type: &DataType,
        decompressor: &mut Decompressor,
    ) -> Result<Levels> {
        let mut open = self.load(page, decompressor, Spare::default())?;
        open.values
            .check(open.present, self.leaf.physical_type, data_type)
            .and_then(|()| open.values.finish())
            .map_err(|e| open.locate(e))?;
        Ok(open.levels)
    }
}
