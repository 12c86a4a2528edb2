//! Cells in plain form, as stored in blocks without an encoding, and as the decoders of all encodings produce
//! them.
//!
//! ```text
//! cell | key length i32 | value length i32 | key | value | [tags length u16 | tags] | [sequence id VLong] |
//! key  | row length u16 | row | family length u8 | family | qualifier | timestamp i64 | type u8 |
//! ```
//!
//! HBase: `KeyValue`, `HFileReaderImpl.HFileScannerImpl`.

use bytes::Bytes;
use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

/// The length of a key, not counting its row, family and qualifier.
pub(crate) const KEY_OVERHEAD: usize = 2 + 1 + 8 + 1;

/// Which optional parts follow the value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CellLayout {
    /// Whether tags follow.
    pub tags: bool,
    /// Whether a sequence id follows.
    pub sequence_ids: bool,
}

/// The offsets and lengths of a cell's parts within its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef {
    /// The offset of the key.
    pub key: u32,
    /// The length of the key.
    pub key_len: u32,
    /// The length of the row.
    pub row_len: u16,
    /// The length of the family.
    pub family_len: u8,
    /// The length of the tags.
    pub tags_len: u16,
    /// The offset of the value.
    pub value: u32,
    /// The length of the value.
    pub value_len: u32,
    /// The sequence id; 0 if there is none.
    pub sequence_id: i64,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The column family.
    pub family: &'a [u8],
    /// The qualifier.
    pub qualifier: &'a [u8],
    /// The timestamp: milliseconds, unless the users of the table gave timestamps another meaning.
    pub timestamp: i64,
    /// The cell's type: one of [`kinds`](crate::kinds).
    pub kind: u8,
    /// The value.
    pub value: &'a [u8],
    /// The tags as stored.
    pub tags: &'a [u8],
    /// The sequence id.
    pub sequence_id: i64,
}

/// The row and column of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinates<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The column family.
    pub family: &'a [u8],
    /// The qualifier.
    pub qualifier: &'a [u8],
}

impl<'a> Cell<'a> {
    /// The cell's row and column.
    #[inline(always)]
    pub fn coordinates(&self) -> Coordinates<'a> {
        Coordinates { row: self.row, family: self.family, qualifier: self.qualifier }
    }
}

/// A consumer that gets cells one by one, in order.
pub trait CellSink {
    /// Takes the next cell.
    fn cell(&mut self, cell: &Cell<'_>) -> Result<()>;

    /// Whether the consumer is done with the cells of the block.
    #[inline(always)]
    fn is_done(&self) -> bool {
        false
    }

    /// Whether the consumer keeps blocks in memory, so that the values that it collects may refer to their
    /// bytes.
    fn keeps_blocks(&self) -> bool {
        false
    }

    /// Announces that the next cells lie in `block`. Called only if the consumer [keeps
    /// blocks](Self::keeps_blocks).
    fn enter(&mut self, _block: &Bytes) {}
}

/// The parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The column family.
    pub family: &'a [u8],
    /// The qualifier.
    pub qualifier: &'a [u8],
    /// The timestamp.
    pub timestamp: i64,
    /// The cell's type.
    pub kind: u8,
}

impl<'a> Key<'a> {
    /// Parses a whole key.
    #[inline(always)]
    pub(crate) fn parse(key: &'a [u8]) -> Option<Self> {
        let (row_len, rest) = key.split_first_chunk::<2>()?;
        let (row, rest) = rest.split_at_checked(u16::from_be_bytes(*row_len).into())?;
        let (family_len, rest) = rest.split_first()?;
        let (family, rest) = rest.split_at_checked((*family_len).into())?;
        let (kind, rest) = rest.split_last()?;
        let (qualifier, timestamp) = rest.split_last_chunk::<8>()?;
        Some(Self { row, family, qualifier, timestamp: i64::from_be_bytes(*timestamp), kind: *kind })
    }
}

/// The row at the start of a key. Keys in an index may end after the row.
pub fn row_of(key: &[u8]) -> Option<&[u8]> {
    let (len, rest) = key.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*len)))
}

impl CellLayout {
    /// Parses the cell at `at`; returns it and its end. Errors name the offset inside the block.
    #[inline(always)]
    pub fn cell(self, block: &[u8], at: usize) -> Result<(Cell<'_>, usize)> {
        self.parse(block, at).ok_or_else(|| self.explain(block, at))
    }

    /// Like [`Self::cell`], but returns the offsets of the parts.
    #[inline]
    pub fn read(self, block: &[u8], at: usize) -> Result<(CellRef, usize)> {
        let (cell, end) = self.cell(block, at)?;
        CellRef::of(&cell, at).map(|cell| (cell, end)).ok_or_else(|| self.explain(block, at))
    }

    /// Passes the cells of a block to `sink` until it is done.
    #[inline]
    pub fn each(self, block: &[u8], sink: &mut impl CellSink) -> Result<()> {
        let mut at = 0;
        while at < block.len() && !sink.is_done() {
            let (cell, end) = self.cell(block, at)?;
            sink.cell(&cell)?;
            at = end;
        }
        Ok(())
    }

    #[inline(always)]
    fn parse(self, block: &[u8], at: usize) -> Option<(Cell<'_>, usize)> {
        let (lengths, rest) = block.get(at..)?.split_first_chunk::<8>()?;
        let [k0, k1, k2, k3, v0, v1, v2, v3] = *lengths;
        let key_len = usize::try_from(u32::from_be_bytes([k0, k1, k2, k3])).ok()?;
        let value_len = usize::try_from(u32::from_be_bytes([v0, v1, v2, v3])).ok()?;
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (value, mut rest) = rest.split_at_checked(value_len)?;
        let key = Key::parse(key)?;
        let mut tags: &[u8] = &[];
        if self.tags {
            let (len, behind) = rest.split_first_chunk::<2>()?;
            (tags, rest) = behind.split_at_checked(u16::from_be_bytes(*len).into())?;
        }
        let mut sequence_id = 0;
        if self.sequence_ids {
            let (first, behind) = rest.split_first()?;
            let first = i8::from_ne_bytes([*first]);
            if first >= -112 {
                (sequence_id, rest) = (first.into(), behind);
            } else if let (-120..=-113, Some(eight)) = (first, behind.first_chunk::<8>()) {
                // The sequence id is not negative, so one to eight more bytes follow.
                let len = first.abs_diff(-112);
                sequence_id = i64::from_ne_bytes(
                    (u64::from_be_bytes(*eight) >> (64 - 8 * u32::from(len))).to_ne_bytes(),
                );
                rest = behind.get(usize::from(len)..)?;
            } else {
                let mut c = Cursor::new(rest, 0);
                sequence_id = c.hadoop_vlong().ok()?;
                rest = c.rest();
            }
        }
        let Key { row, family, qualifier, timestamp, kind } = key;
        let cell = Cell { row, family, qualifier, timestamp, kind, value, tags, sequence_id };
        Some((cell, block.len() - rest.len()))
    }

    /// The reason why there is no valid cell at `at`.
    #[cold]
    #[inline(never)]
    fn explain(self, block: &[u8], at: usize) -> Error {
        let mut c = Cursor::new(block.get(at..).unwrap_or_default(), 0);
        let reason = (|| -> Result<String> {
            let (key_len, value_len) = (c.i32_be()?, c.i32_be()?);
            let key = c.take_signed(key_len.into())?;
            c.take_signed(value_len.into())?;
            let mut k = Cursor::new(key, 0);
            let row = k.u16_be()?;
            k.skip(row.into())?;
            let family = k.u8()?;
            k.skip(family.into())?;
            k.skip(9)?;
            if self.tags {
                let tags = c.u16_be()?;
                c.skip(tags.into())?;
            }
            if self.sequence_ids {
                c.hadoop_vlong()?;
            }
            Ok("expected a block of at most 4 GiB".to_owned())
        })()
        .unwrap_or_else(|e| e.reason());
        Error::corrupt(format!("cell at byte {at} of the block: {reason}"))
    }
}

impl CellRef {
    /// The offsets of the parts of a cell that begins at `at` of its block; `None` if an offset exceeds 4
    /// GiB.
    #[inline]
    fn of(cell: &Cell<'_>, at: usize) -> Option<Self> {
        let key = u32::try_from(at).ok()?.checked_add(8)?;
        let key_len = KEY_OVERHEAD + cell.row.len() + cell.family.len() + cell.qualifier.len();
        let key_len = u32::try_from(key_len).ok()?;
        Some(Self {
            key,
            key_len,
            row_len: u16::try_from(cell.row.len()).ok()?,
            family_len: u8::try_from(cell.family.len()).ok()?,
            tags_len: u16::try_from(cell.tags.len()).ok()?,
            value: key.checked_add(key_len)?,
            value_len: u32::try_from(cell.value.len()).ok()?,
            sequence_id: cell.sequence_id,
        })
    }

    /// The cell's row.
    #[inline]
    pub fn row<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        part(block, self.key as usize + 2, self.row_len.into())
    }

    /// The cell's family.
    #[inline]
    pub fn family<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        part(block, self.key as usize + 3 + usize::from(self.row_len), self.family_len.into())
    }

    /// The cell's qualifier.
    #[inline]
    pub fn qualifier<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let before = 3 + usize::from(self.row_len) + usize::from(self.family_len);
        part(block, self.key as usize + before, (self.key_len as usize).saturating_sub(before + 9))
    }

    /// The cell's timestamp.
    #[inline]
    pub fn timestamp(&self, block: &[u8]) -> i64 {
        let end = self.key as usize + self.key_len as usize;
        let bytes = block.get(..end.saturating_sub(1)).and_then(|b| b.last_chunk());
        bytes.map_or(0, |b| i64::from_be_bytes(*b))
    }

    /// The cell's type.
    #[inline]
    pub fn kind(&self, block: &[u8]) -> u8 {
        let end = self.key as usize + self.key_len as usize;
        block.get(end.wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// The cell's value.
    #[inline]
    pub fn value<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        part(block, self.value as usize, self.value_len as usize)
    }

    /// The cell's tags as stored.
    #[inline]
    pub fn tags<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        part(block, self.value as usize + self.value_len as usize + 2, self.tags_len.into())
    }

    /// The cell.
    #[inline]
    pub fn cell<'a>(&self, block: &'a [u8]) -> Cell<'a> {
        Cell {
            row: self.row(block),
            family: self.family(block),
            qualifier: self.qualifier(block),
            timestamp: self.timestamp(block),
            kind: self.kind(block),
            value: self.value(block),
            tags: if self.tags_len == 0 { &[] } else { self.tags(block) },
            sequence_id: self.sequence_id,
        }
    }
}

/// Bytes of a block; their bounds were checked when the cell was parsed.
#[inline]
fn part(block: &[u8], at: usize, len: usize) -> &[u8] {
    block.get(at..).and_then(|b| b.get(..len)).unwrap_or_default()
}

/// Clears `cells`, then parses all cells of a block into it.
pub(crate) fn read_all(layout: CellLayout, block: &[u8], cells: &mut Vec<CellRef>) -> Result<()> {
    cells.clear();
    let mut at = 0;
    while at < block.len() {
        let (cell, end) = layout.read(block, at)?;
        cells.push(cell);
        at = end;
    }
    Ok(())
}

/// Iterates over the tags of a cell: returns the type and the bytes of each tag.
#[derive(Clone, Debug)]
pub struct Tags<'a>(pub Cursor<'a>);

impl<'a> Tags<'a> {
    /// The tags in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Cursor::new(bytes, 0))
    }

    /// The next tag.
    pub fn next_tag(&mut self) -> Result<Option<(u8, &'a [u8])>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let len = self.0.u16_be()?;
        let tag = self.0.take(len.into()).map_err(|e| Error::corrupt(format!("tag: {}", e.reason())))?;
        let (kind, value) =
            tag.split_first().ok_or_else(|| Error::corrupt("tag: expected a type, found nothing"))?;
        Ok(Some((*kind, value)))
    }
}
