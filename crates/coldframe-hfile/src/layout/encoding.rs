//! Data block encodings. Each decoder needs only the block and the key of the previous cell.
//!
//! ```text
//! content of an encoded data block | encoding u16 | encoded cells |
//!   PREFIX, DIFF, FAST_DIFF        | size of the cells in plain form i32 | [DIFF: family length u8, family] | cell ... |
//!   ROW_INDEX_V1                   | plain cell ... | rows i32 | offset of each row i32 ... | size of the cells i32 |
//! integer                          | LEB128 |
//! [tags length | tags] [sequence id VLong] after each cell, as in plain form, except that the length is LEB128
//! ```
//!
//! HBase: `DataBlockEncoding`, `BufferedDataBlockEncoder` and the encoders named like the encodings.

mod diff;
mod fast_diff;
mod head;
mod prefix;
mod row_index;
mod tags;

use coldframe_encoding::Cursor;
use coldframe_encoding::varint::put_hadoop_vlong;
use coldframe_encoding::{Error, Result};

use crate::layout::cell::{Cell, CellLayout, CellSink, KEY_OVERHEAD, Key};
use crate::layout::context::BlockContext;
use tags::TagDictionary;

/// How the cells of a block are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Shared prefixes of keys are omitted.
    Prefix,
    /// Parts of a key that equal the same parts of the previous key are omitted; timestamps are differences.
    Diff,
    /// Like DIFF, but timestamps share leading bytes, and a value that equals the previous value is omitted.
    FastDiff,
    /// Plain cells followed by an index of rows.
    RowIndexV1,
}

impl Encoding {
    /// The encoding with this id.
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

    /// The encoding's name in HBase.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefix => "PREFIX",
            Self::Diff => "DIFF",
            Self::FastDiff => "FAST_DIFF",
            Self::RowIndexV1 => "ROW_INDEX_V1",
        }
    }
}

/// Decodes blocks, and reuses its buffers from block to block.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    dictionary: TagDictionary,
    tags: Vec<u8>,
    key: Vec<u8>,
}

impl Decoder {
    /// Passes the cells of an encoded block to `sink`. Errors have no file offset.
    pub(crate) fn decode(
        &mut self,
        content: &[u8],
        context: &BlockContext,
        sink: &mut impl CellSink,
    ) -> Result<Encoding> {
        self.decode_content(content, context, sink).map_err(|e| {
            let place = e.offset().map(|at| format!("byte {at} of the content: ")).unwrap_or_default();
            match e.into_kind() {
                coldframe_encoding::ErrorKind::Corrupt(reason) => Error::corrupt(format!("{place}{reason}")),
                other => Error::new(other),
            }
        })
    }

    fn decode_content(
        &mut self,
        content: &[u8],
        context: &BlockContext,
        sink: &mut impl CellSink,
    ) -> Result<Encoding> {
        let mut src = Cursor::new(content, 0);
        let encoding = Encoding::from_id(src.u16_be()?)?;
        if encoding == Encoding::RowIndexV1 {
            context.layout.each(row_index::cells(src)?, sink)?;
            return Ok(encoding);
        }
        let size = src.u32_be()?;
        context.limits.block("an encoded block", size.into())?;
        self.dictionary.clear();
        let tags = match (context.layout.tags, context.compressed_tags) {
            (false, _) => TagForm::None,
            (true, false) => TagForm::Plain,
            (true, true) => TagForm::Dictionary(&mut self.dictionary, &mut self.tags),
        };
        let left = context.limits.block("an encoded block", context.limits.max_block_bytes)?;
        let mut out = Out { sink, left, tags, sequence_ids: context.layout.sequence_ids };
        self.key.clear();
        match encoding {
            Encoding::Prefix => prefix::decode(&mut src, &mut self.key, &mut out)?,
            Encoding::Diff => diff::decode(&mut src, &mut self.key, &mut out)?,
            _ => fast_diff::decode(&mut src, &mut self.key, &mut out)?,
        }
        Ok(encoding)
    }
}

/// How the tags of encoded cells are stored.
enum TagForm<'d> {
    None,
    Plain,
    /// Through a dictionary. The buffer holds a cell's tags in plain form.
    Dictionary(&'d mut TagDictionary, &'d mut Vec<u8>),
}

/// Where decoded cells go.
struct Out<'o, S> {
    sink: &'o mut S,
    /// How many bytes the remaining cells may take in plain form.
    left: usize,
    tags: TagForm<'o>,
    sequence_ids: bool,
}

impl<S: CellSink> Out<'_, S> {
    /// Checks the lengths at the start of a cell.
    #[inline]
    fn begin(&mut self, key_len: usize, value_len: usize) -> Result<()> {
        let size = key_len.saturating_add(value_len).saturating_add(8);
        match self.left.checked_sub(size) {
            Some(left) if key_len >= KEY_OVERHEAD => {
                self.left = left;
                Ok(())
            }
            _ => Err(Error::corrupt(format!(
                "expected a cell of {KEY_OVERHEAD} bytes or more within the limits, found a key of {key_len} and a value of {value_len}"
            ))),
        }
    }

    /// Reads the parts that follow the value, and passes the cell on.
    #[inline(always)]
    fn end(&mut self, src: &mut Cursor<'_>, key: Key<'_>, value: &[u8]) -> Result<()> {
        let mut tags: &[u8] = &[];
        if !matches!(self.tags, TagForm::None) {
            let len = integer(src)?;
            if len > usize::from(u16::MAX) {
                return Err(Error::corrupt(format!("expected tags of at most 65535 bytes, found {len}")));
            }
            tags = match &mut self.tags {
                TagForm::Dictionary(dictionary, plain) => {
                    plain.clear();
                    dictionary.decode(src, len, plain)?;
                    plain
                }
                _ => src.take(len)?,
            };
        }
        let sequence_id = if self.sequence_ids { src.hadoop_vlong()? } else { 0 };
        let Key { row, family, qualifier, timestamp, kind } = key;
        self.sink.cell(&Cell { row, family, qualifier, timestamp, kind, value, tags, sequence_id })
    }
}

/// Collects cells in plain form, for searches in a block.
#[derive(Debug)]
pub struct Plain {
    /// The cells.
    pub bytes: Vec<u8>,
    layout: CellLayout,
}

impl Plain {
    /// An empty collection. `layout`: which parts follow the value of a cell.
    pub fn new(layout: CellLayout) -> Self {
        Self { bytes: Vec::new(), layout }
    }
}

impl CellSink for Plain {
    #[inline(always)]
    fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        let (row, family) = (u16::try_from(cell.row.len()), u8::try_from(cell.family.len()));
        let key_len = KEY_OVERHEAD + cell.row.len() + cell.family.len() + cell.qualifier.len();
        let lengths =
            (u32::try_from(key_len), u32::try_from(cell.value.len()), u16::try_from(cell.tags.len()));
        let (Ok(row), Ok(family), (Ok(key), Ok(value), Ok(tags))) = (row, family, lengths) else {
            return Err(Error::corrupt("expected parts of a cell that fit the lengths of the plain form"));
        };
        let out = &mut self.bytes;
        let [k0, k1, k2, k3] = key.to_be_bytes();
        let [v0, v1, v2, v3] = value.to_be_bytes();
        let [r0, r1] = row.to_be_bytes();
        out.extend_from_slice(&[k0, k1, k2, k3, v0, v1, v2, v3, r0, r1]);
        put(out, cell.row);
        out.push(family);
        put(out, cell.family);
        put(out, cell.qualifier);
        out.extend_from_slice(&cell.timestamp.to_be_bytes());
        out.push(cell.kind);
        put(out, cell.value);
        if self.layout.tags {
            out.extend_from_slice(&tags.to_be_bytes());
            out.extend_from_slice(cell.tags);
        }
        if self.layout.sequence_ids {
            put_hadoop_vlong(out, cell.sequence_id);
        }
        Ok(())
    }
}

/// Reads a LEB128 length.
#[inline]
fn integer(src: &mut Cursor<'_>) -> Result<usize> {
    let at = src.offset();
    let n = src.uleb128()?;
    match i32::try_from(n).ok().and_then(|n| usize::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => Err(Error::corrupt(format!("expected a length below 2 GiB, found {n}")).at(at)),
    }
}

/// Appends bytes. Rows, families and qualifiers are short: two overlapping copies of fixed length are faster than a
/// call with a variable length.
#[inline(always)]
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        16..=32 => put_twice::<16>(out, bytes),
        8..=15 => put_twice::<8>(out, bytes),
        4..=7 => put_twice::<4>(out, bytes),
        2..=3 => put_twice::<2>(out, bytes),
        1 => out.extend(bytes.first()),
        _ => out.extend_from_slice(bytes),
    }
}

/// Appends `N` to `2 * N` bytes: copies the first `N`, then the last `N`, which may overlap with the first.
#[inline(always)]
fn put_twice<const N: usize>(out: &mut Vec<u8>, bytes: &[u8]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        let overlap = out.len() + bytes.len() - N;
        out.extend_from_slice(first);
        out.truncate(overlap);
        out.extend_from_slice(last);
    }
}
