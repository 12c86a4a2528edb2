//! Data block encodings: each is undone to the plain form of cells ([`crate::cell`]).
//!
//! ```text
//! content of an encoded data block | encoding u16 | encoded cells |
//!   PREFIX, DIFF, FAST_DIFF        | size of the cells in plain form i32 | [DIFF: family length u8, family] | cell ... |
//!   ROW_INDEX_V1                   | plain cell ... | rows i32 | offset of each row i32 ... | size of the cells i32 |
//! integer                          | LEB128 |
//! [tags length | tags] [sequence id VLong] behind each cell, as in plain form but that the length is LEB128
//! ```
//!
//! HBase: `DataBlockEncoding`, `BufferedDataBlockEncoder` and the encoders named like the encodings.

mod diff;
mod fast_diff;
mod prefix;
mod row_index;
mod tags;

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;

use crate::cell::{CellLayout, KEY_OVERHEAD};
use tags::TagDictionary;

/// How the cells of a block are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Prefixes of keys are left out.
    Prefix,
    /// Parts of keys that equal the previous ones are left out; timestamps are differences.
    Diff,
    /// The same, by bytes.
    FastDiff,
    /// Plain cells with an index of rows behind them.
    RowIndexV1,
}

impl Encoding {
    /// The encoding that a block names.
    pub fn from_id(id: u16) -> Result<Self> {
        match id {
            2 => Ok(Self::Prefix),
            3 => Ok(Self::Diff),
            4 => Ok(Self::FastDiff),
            6 => Err(Error::unsupported("data block encoding PREFIX_TREE (HBase 0.96 to 1.4)")),
            7 => Ok(Self::RowIndexV1),
            _ => Err(Error::corrupt(format!("expected a data block encoding of 2 to 7, found {id}"))),
        }
    }

    /// HBase's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefix => "PREFIX",
            Self::Diff => "DIFF",
            Self::FastDiff => "FAST_DIFF",
            Self::RowIndexV1 => "ROW_INDEX_V1",
        }
    }
}

/// Undoes encodings; keeps the tag dictionary's memory from block to block.
#[derive(Debug, Default)]
pub struct Decoder {
    tags: TagDictionary,
}

impl Decoder {
    /// Appends the cells of an encoded block to `out` in plain form. Errors have no place in the file.
    pub fn decode(
        &mut self,
        content: &[u8],
        layout: CellLayout,
        compressed_tags: bool,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Encoding> {
        self.decode_content(content, layout, compressed_tags, limits, out).map_err(|e| {
            let place = e.offset().map(|at| format!("byte {at} of the content: ")).unwrap_or_default();
            match e.into_kind() {
                coldframe_core::ErrorKind::Corrupt(reason) => Error::corrupt(format!("{place}{reason}")),
                other => Error::new(other),
            }
        })
    }

    fn decode_content(
        &mut self,
        content: &[u8],
        layout: CellLayout,
        compressed_tags: bool,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Encoding> {
        let mut src = Cursor::new(content, 0);
        let encoding = Encoding::from_id(src.u16_be()?)?;
        if encoding == Encoding::RowIndexV1 {
            out.extend_from_slice(row_index::cells(src)?);
            return Ok(encoding);
        }
        self.tags.clear();
        let start = out.len();
        let size = src.u32_be()?;
        let size = limits.block("an encoded block", size.into())?;
        // What is claimed is believed as far as encodings usually reach; the rest grows as it is found.
        out.reserve(size.min(content.len().saturating_mul(16)));
        let tags = match (layout.tags, compressed_tags) {
            (false, _) => TagForm::None,
            (true, false) => TagForm::Plain,
            (true, true) => TagForm::Dictionary(&mut self.tags),
        };
        let most = limits.block("an encoded block", limits.max_block_bytes)?.saturating_add(start);
        let mut plain = Plain { out, key: 0..0, most, tags, sequence_ids: layout.sequence_ids };
        match encoding {
            Encoding::Prefix => prefix::decode(&mut src, &mut plain)?,
            Encoding::Diff => diff::decode(&mut src, &mut plain)?,
            _ => fast_diff::decode(&mut src, &mut plain)?,
        }
        Ok(encoding)
    }
}

/// How the tags of encoded cells are stored.
enum TagForm<'d> {
    None,
    Plain,
    Dictionary(&'d mut TagDictionary),
}

/// Cells in plain form while they are made; the previous key is a part of them.
struct Plain<'o> {
    out: &'o mut Vec<u8>,
    /// Where the last key stands in `out`.
    key: std::ops::Range<usize>,
    /// How long `out` may become.
    most: usize,
    tags: TagForm<'o>,
    sequence_ids: bool,
}

impl Plain<'_> {
    /// Starts a cell: its lengths.
    fn begin(&mut self, key_len: usize, value_len: usize) -> Result<()> {
        let size = key_len.saturating_add(value_len).saturating_add(8);
        if key_len < KEY_OVERHEAD || self.most.saturating_sub(self.out.len()) < size {
            return Err(Error::corrupt(format!(
                "expected a cell of {KEY_OVERHEAD} bytes or more within the limits, found a key of {key_len} and a value of {value_len}"
            )));
        }
        let lengths = [key_len, value_len].map(|n| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes());
        self.out.extend_from_slice(lengths.as_flattened());
        Ok(())
    }

    /// Appends the part `range` of the previous key.
    #[inline]
    fn copy_key(&mut self, range: std::ops::Range<usize>) -> Result<()> {
        let (start, end) =
            (self.key.start.saturating_add(range.start), self.key.start.saturating_add(range.end));
        if start > end || end > self.key.end {
            let known = self.key.len();
            return Err(Error::corrupt(format!(
                "expected a part of the previous key of {known} bytes, found {range:?}"
            )));
        }
        self.out.extend_from_within(start..end);
        Ok(())
    }

    /// The previous key.
    #[inline]
    fn previous(&self) -> &[u8] {
        self.out.get(self.key.clone()).unwrap_or_default()
    }

    /// Ends the key that began at `start`: it must be `len` bytes.
    #[inline]
    fn end_key(&mut self, start: usize, len: usize) -> Result<()> {
        self.key = start..self.out.len();
        if self.key.len() == len {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected a key of {len} bytes, found {}", self.key.len())))
    }

    /// Appends what stands behind a value.
    #[inline]
    fn end_cell(&mut self, src: &mut Cursor<'_>) -> Result<()> {
        if !matches!(self.tags, TagForm::None) {
            self.copy_tags(src)?;
        }
        if self.sequence_ids {
            let before = src.rest();
            src.hadoop_vlong()?;
            let used = before.len() - src.remaining();
            self.out.extend_from_slice(before.get(..used).unwrap_or_default());
        }
        Ok(())
    }

    fn copy_tags(&mut self, src: &mut Cursor<'_>) -> Result<()> {
        let len = integer(src)?;
        let size = u16::try_from(len)
            .map_err(|_| Error::corrupt(format!("expected tags of at most 65535 bytes, found {len}")))?;
        self.out.extend_from_slice(&size.to_be_bytes());
        match &mut self.tags {
            TagForm::Dictionary(dictionary) => dictionary.decode(src, len, self.out),
            _ => {
                self.out.extend_from_slice(src.take(len)?);
                Ok(())
            }
        }
    }
}

/// A LEB128 integer as a length.
#[inline]
fn integer(src: &mut Cursor<'_>) -> Result<usize> {
    let at = src.offset();
    let n = src.uleb128()?;
    match i32::try_from(n).ok().and_then(|n| usize::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => Err(Error::corrupt(format!("expected a length below 2 GiB, found {n}")).at(at)),
    }
}
