//! Parses the key of a row group: its number of rows, the size of each column and the length of each cell.
//!
//! ```text
//! | rows: VInt | column x n |
//! column | bytes on disk: VInt | bytes decompressed: VInt | length of what follows: VInt | cell lengths |
//! cell lengths | VInt ... |   n >= 0: a cell of n bytes; n < 0: !n = -n - 1 more cells of the last length
//! ```
//!
//! A run of two cells of length L is `L, !1`. A column without cell lengths in a group with rows was removed by
//! `TRUNCATE TABLE .. COLUMNS`: all its cells are null. Source: Hive's `RCFile.KeyBuffer`.

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::Cursor;

/// One column of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKey {
    /// Bytes on disk.
    pub(crate) disk_len: u64,
    /// Bytes after decompression.
    pub(crate) data_len: u64,
    /// The run-length coded cell lengths; empty for a truncated column.
    pub(crate) lengths: Bytes,
}

/// A parsed key.
#[derive(Clone, Debug)]
pub(crate) struct KeyBuffer {
    /// Rows in the group.
    pub(crate) rows: u64,
    /// The columns of the group.
    pub(crate) columns: Vec<ColumnKey>,
    /// Length of the key in bytes.
    pub(crate) len: usize,
}

/// Why a key does not parse.
#[derive(Debug)]
pub(crate) struct KeyError {
    pub(crate) error: Error,
    /// Whether more bytes could complete the key.
    pub(crate) incomplete: bool,
}

impl KeyBuffer {
    /// Parses the key at the start of `bytes` and ignores the bytes after it. `offset` is for errors.
    pub(crate) fn parse(bytes: &Bytes, columns: usize, offset: u64) -> Result<Self> {
        Self::parse_prefix(bytes, columns, offset, bytes.len() as u64).map_err(|e| e.error)
    }

    /// Like [`Self::parse`], but `bytes` are only the first bytes of `whole`.
    pub(crate) fn parse_prefix(
        bytes: &Bytes,
        columns: usize,
        offset: u64,
        whole: u64,
    ) -> Result<Self, KeyError> {
        let mut c = Cursor::new(bytes, offset);
        let rows = length(&mut c, "number of rows")?;
        // Each column takes at least three bytes: memory is allocated only for columns that the key can hold.
        let mut parsed = Vec::with_capacity(columns.min(c.remaining() / 3));
        let behind = whole.saturating_sub(bytes.len() as u64);
        for i in 0..columns {
            let column = parse_column(&mut c, bytes, behind);
            parsed.push(column.map_err(|e| KeyError { error: e.error.within(format!("column {i}")), ..e })?);
        }
        Ok(Self { rows, columns: parsed, len: bytes.len() - c.remaining() })
    }

    /// Bytes of all columns on disk.
    pub(crate) fn disk_len(&self) -> u64 {
        self.columns.iter().map(|c| c.disk_len).sum()
    }
}

/// `behind`: the number of bytes after the bytes of `c`.
fn parse_column(c: &mut Cursor<'_>, bytes: &Bytes, behind: u64) -> Result<ColumnKey, KeyError> {
    let disk_len = length(c, "bytes on disk")?;
    let data_len = length(c, "bytes decompressed")?;
    let len = length(c, "length of the cell lengths")?;
    let incomplete = len <= behind.saturating_add(c.remaining() as u64);
    let lengths = c.take(usize::try_from(len).unwrap_or(usize::MAX)).within(|| "cell lengths");
    let lengths = lengths.map_err(|error| KeyError { error, incomplete })?;
    Ok(ColumnKey { disk_len, data_len, lengths: bytes.slice_ref(lengths) })
}

fn length(c: &mut Cursor<'_>, what: &str) -> Result<u64, KeyError> {
    let at = c.offset();
    // A VInt has at most nine bytes: if nine are left, more bytes would change nothing.
    let incomplete = c.remaining() < 9;
    let value = c.hadoop_vint().within(|| what.to_owned()).map_err(|error| KeyError { error, incomplete })?;
    u64::try_from(value).map_err(|_| {
        let error = Error::corrupt(format!("expected 0 or more, found {value}"));
        KeyError { error: error.at(at).within(what.to_owned()), incomplete: false }
    })
}

/// Expands the cell lengths of one column, a few rows at a time.
#[derive(Clone, Debug)]
pub(crate) struct CellLengths {
    bytes: Bytes,
    at: usize,
    run_length: i32,
    run_left: u32,
    end: i32,
}

impl CellLengths {
    /// Starts at the first cell.
    pub(crate) fn new(lengths: Bytes) -> Self {
        Self { bytes: lengths, at: 0, run_length: -1, run_left: 0, end: 0 }
    }

    /// Where the last cell read ends in the column's bytes.
    pub(crate) fn end(&self) -> i32 {
        self.end
    }

    /// Appends the ends of the next `rows` cells to `ends`.
    pub(crate) fn read(&mut self, rows: usize, ends: &mut Vec<i32>) -> Result<()> {
        let first = ends.len();
        ends.resize(first.saturating_add(rows), 0);
        let mut at = first;
        while let Some(open) = ends.get_mut(at..).filter(|open| !open.is_empty()) {
            at += if self.run_left > 0 { self.read_run(open)? } else { self.read_short(open)? };
        }
        Ok(())
    }

    /// The number of cells that were not read yet, and the sum of their lengths.
    pub(crate) fn rest(&self) -> Result<(u64, u64)> {
        let last = u64::try_from(self.run_length).unwrap_or(0);
        let (cells, bytes) = count_behind(self.bytes.get(self.at..).unwrap_or_default(), last)?;
        let run = u64::from(self.run_left);
        Ok((cells + run, bytes.saturating_add(run.saturating_mul(last))))
    }

    /// Reads cells of the current run, at most `open.len()`.
    fn read_run(&mut self, open: &mut [i32]) -> Result<usize> {
        let count = usize::try_from(self.run_left).unwrap_or(usize::MAX).min(open.len());
        let n = u32::try_from(count).unwrap_or(u32::MAX);
        let total = i64::from(self.end) + i64::from(n) * i64::from(self.run_length);
        let total = i32::try_from(total).map_err(|_| too_long(total))?;
        let (mut end, step) = (self.end, self.run_length);
        for to in open.iter_mut().take(count) {
            end = end.wrapping_add(step); // cannot wrap: `total` fits
            *to = end;
        }
        self.end = total;
        self.run_left -= n;
        Ok(count)
    }

    /// Reads one-byte lengths and short runs, up to the first other form.
    ///
    /// Where lengths vary little, lengths and runs alternate almost at random, so the loop does not branch on the kind:
    /// for each byte it stores the ends of eight equal cells and keeps as many as the byte encodes.
    fn read_short(&mut self, open: &mut [i32]) -> Result<usize> {
        if !(0..=LONG_RUN_LENGTH).contains(&self.run_length) {
            return self.read_vint(open);
        }
        let bytes = self.bytes.get(self.at..).unwrap_or_default();
        let (mut end, mut last) = (i64::from(self.end), i64::from(self.run_length));
        let (mut cells, mut taken) = (0, 0);
        for b in bytes {
            let slots = open.get_mut(cells..).and_then(<[i32]>::first_chunk_mut::<8>);
            // 0x80..=0x8f: a length of more than one byte; up to 0xf6: a run of more than eight.
            let (Some(slots), false) = (slots, (0x80..0xf7).contains(b)) else { break };
            let run = *b >= 0x80;
            let count = if run { !*b } else { 1 };
            last = if run { last } else { i64::from(*b) };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the sum is checked for the whole stretch below; the length is one of 0..=LONG_RUN_LENGTH"
            )]
            let (first, step) = (end as i32, last as u16);
            for (slot, ahead) in slots.iter_mut().zip([1, 2, 3, 4, 5, 6, 7, 8].map(|n| step.wrapping_mul(n)))
            {
                *slot = first.wrapping_add(i32::from(ahead));
            }
            end += i64::from(count) * last;
            cells += usize::from(count);
            taken += 1;
        }
        if taken == 0 {
            return self.read_vint(open);
        }
        self.end = i32::try_from(end).map_err(|_| too_long(end))?;
        self.run_length = i32::try_from(last).unwrap_or(self.run_length);
        self.at += taken;
        Ok(cells)
    }

    /// Reads one VInt: a run's count or a length.
    fn read_vint(&mut self, open: &mut [i32]) -> Result<usize> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Err(Error::corrupt("expected a length for each row, found fewer cell lengths"));
        }
        let mut c = Cursor::new(rest, 0);
        let value = c.hadoop_vint().map_err(|e| Error::corrupt(e.reason()))?;
        self.at += rest.len() - c.remaining();
        if value < 0 {
            if self.run_length < 0 {
                return Err(Error::corrupt("expected a length first, found a run"));
            }
            self.run_left = (!value).cast_unsigned();
            return Ok(0);
        }
        self.run_length = value;
        let end = i64::from(self.end) + i64::from(value);
        self.end = i32::try_from(end).map_err(|_| too_long(end))?;
        open.iter_mut().take(1).for_each(|to| *to = self.end);
        Ok(1)
    }
}

/// The maximum length of a cell for which the sum of eight lengths fits 16 bits.
const LONG_RUN_LENGTH: i32 = (1 << 13) - 1;

#[cold]
fn too_long(total: i64) -> Error {
    Error::corrupt(format!("expected cells of less than 2 GiB together, found {total} bytes"))
}

/// The number of cells whose lengths are in this run-length coded list, and the sum of the lengths.
pub(crate) fn count_cells(lengths: &[u8]) -> Result<(u64, u64)> {
    count_behind(lengths, 0)
}

/// Like [`count_cells`], for lengths that follow a cell with `last` bytes.
fn count_behind(lengths: &[u8], mut last: u64) -> Result<(u64, u64)> {
    let mut c = Cursor::new(lengths, 0);
    let (mut cells, mut bytes) = (0u64, 0u64);
    while !c.is_empty() {
        let value = c.hadoop_vint().map_err(|e| Error::corrupt(e.reason()))?;
        let count = if value < 0 {
            u64::from((!value).cast_unsigned())
        } else {
            last = u64::from(value.cast_unsigned());
            1
        };
        cells += count;
        bytes = bytes.saturating_add(count.saturating_mul(last));
    }
    Ok((cells, bytes))
}

/// How many of the first cells lie within `len` bytes; cells whose lengths cannot be read do not count.
pub(crate) fn count_whole_cells(lengths: &[u8], len: u64) -> u64 {
    let mut c = Cursor::new(lengths, 0);
    let (mut cells, mut left, mut last) = (0u64, len, None);
    while !c.is_empty() {
        let Ok(value) = c.hadoop_vint() else { break };
        let count = match u64::try_from(value) {
            Ok(length) => {
                last = Some(length);
                1
            }
            Err(_) => u64::from((!value).cast_unsigned()),
        };
        // A run without a cell before it.
        let Some(length) = last else { break };
        let whole = left.checked_div(length).map_or(count, |most| most.min(count));
        cells = cells.saturating_add(whole);
        left -= whole * length;
        if whole < count {
            break;
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], rows: usize) -> Result<Vec<i32>> {
        let mut ends = Vec::new();
        CellLengths::new(Bytes::copy_from_slice(bytes)).read(rows, &mut ends).map(|()| ends)
    }

    #[test]
    fn runs_and_lengths_of_several_bytes_are_expanded() {
        assert_eq!(read(&[5, 0xfe], 2).unwrap(), [5, 10]); // a run of two: 5, !1
        assert_eq!(read(&[0, 0xfc, 3], 5).unwrap(), [0, 0, 0, 0, 3]);
        assert_eq!(read(&[0x8f, 0x8d, 0xfe, 1], 3).unwrap(), [141, 282, 283]);
        assert!(read(&[0xfe], 1).unwrap_err().to_string().contains("found a run"));
        assert!(read(&[5], 2).unwrap_err().to_string().contains("found fewer"));
        assert!(read(&[0x8c, 0x7f, 0xff, 0xff, 0xff, 1], 2).is_err());
        assert_eq!(count_cells(&[5, 0xfe, 0, 0xfc]).unwrap(), (6, 10));
    }

    #[test]
    fn whole_cells_end_where_lengths_or_bytes_end() {
        assert_eq!(count_whole_cells(&[5, 0xfe, 0, 0xfc], 10), 6);
        assert_eq!(count_whole_cells(&[5, 0xfe, 0, 0xfc], 9), 1);
        assert_eq!(count_whole_cells(&[5, 0xfc, 7], 21), 4);
        assert_eq!(count_whole_cells(&[0xfe, 5], 10), 0);
        assert_eq!(count_whole_cells(&[5, 0x8f], 10), 1);
        assert_eq!(count_whole_cells(&[6, 4], 5), 0);
    }

    #[test]
    fn a_key_gives_the_length_of_its_columns() {
        let key = Bytes::from_static(&[2, 4, 4, 2, 2, 0xfe, 0, 0, 0]);
        let k = KeyBuffer::parse(&key, 2, 100).unwrap();
        assert_eq!((k.rows, k.disk_len(), k.len), (2, 4, 9));
        assert!(k.columns[1].lengths.is_empty());
        let e = KeyBuffer::parse(&key, 3, 100).unwrap_err().to_string();
        assert_eq!(e, "byte 109: column 2: bytes on disk: expected 1 more bytes, found 0");
    }

    proptest! {
        #[test]
        fn reading_rows_in_parts_gives_the_same_ends(
            lengths in proptest::collection::vec((prop_oneof![0i32..300, 8180i32..8200], 0u32..14), 1..60), cuts in 1usize..40,
        ) {
            let (mut bytes, mut want, mut end) = (Vec::new(), Vec::new(), 0);
            for (len, more) in lengths {
                coldframe_encoding::varint::put_hadoop_vlong(&mut bytes, len.into());
                if more > 0 {
                    coldframe_encoding::varint::put_hadoop_vlong(&mut bytes, !i64::from(more));
                }
                for _ in 0..=more {
                    end += len;
                    want.push(end);
                }
            }
            let (mut cells, mut got) = (CellLengths::new(bytes.clone().into()), Vec::new());
            while got.len() < want.len() {
                let n = cuts.min(want.len() - got.len());
                cells.read(n, &mut got).unwrap();
                let rest = (want.len() - got.len(), end - got.last().unwrap());
                prop_assert_eq!(cells.rest().unwrap(), (rest.0 as u64, u64::from(rest.1.cast_unsigned())));
            }
            prop_assert_eq!(count_cells(&bytes).unwrap(), (want.len() as u64, u64::from(end.cast_unsigned())));
            prop_assert_eq!(got, want);
        }
    }
}
