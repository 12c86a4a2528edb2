//! Reads write-ahead logs edit by edit; files in `recovered.edits` have the same format.
//!
//! ```text
//! file  | "PWAL" | length varint, LogHeader | edit | edit .. | [trailer | its size i32 | "LAWP"] |
//! edit  | length varint, LogKey | cell .. |                                        as many as the key states
//! cell  | length i32 | key length i32 | value length i32 | key | value | [tags length u16 | tags] |
//! ```
//!
//! An index update of Phoenix (codec `IndexedWALEditCodec`) stands among the cells: i32 -1, the index table, its mutation, each with its
//! length as a vint. An index update is no cell of the table, and is skipped.
//!
//! The cells of a compressed log depend on those before them: they are decoded on the way, and passed on as those of a plain log.
//!
//! If the server died, the trailer is missing and the last edit may be cut off; everything before it is intact. HBase:
//! `ProtobufLogReader`, `WALCellCodec`, `KeyValueCodecWithTags`.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::limits::message;
use coldframe_hfile::{Cell, CellLayout};
use prost::Message;

use super::compressed_log::{Compression, Input};
use super::names::{META_REGION, RECOVERED_EDITS};
use super::proto::{LogHeader, LogKey};

const MAGIC: &[u8] = b"PWAL";
const END: &[u8] = b"LAWP";
/// The codec of Phoenix's index updates, and the number in place of a cell's length before such an update.
const INDEXED: &str = "IndexedWALEditCodec";
const INDEX_UPDATE: i32 = -1;
/// How many bytes are read at a time.
const WINDOW: u64 = 4 << 20;

/// The location of the cells of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The offset of the first cell's length. In a compressed log, the number of bytes that the cells of the edits before it
    /// take in a plain log.
    pub(crate) at: u64,
    /// The length of the cells in bytes.
    pub(crate) len: u64,
    /// The sequence id of all cells of the edit.
    pub(crate) sequence_id: i64,
}

/// Iterates over edits.
#[derive(Debug)]
pub(crate) struct LogReader {
    source: Arc<dyn ReadAt>,
    limits: Limits,
    /// The bytes of the file from the offset `window` on.
    held: Bytes,
    window: u64,
    at: u64,
    /// The offset at which the edits end.
    end: u64,
    /// Whether the log has a trailer, which shows that nothing was cut off.
    closed: bool,
    cut_at: Option<u64>,
    /// Whether Phoenix's index updates stand among the cells.
    has_index_updates: bool,
    /// What a reader of a compressed log knows from the edits before.
    compression: Option<Box<Compression>>,
    /// The cells of the last edit of a compressed log, and the length of those of all edits.
    plain: Bytes,
    plain_len: u64,
}

/// The length of the start of a key: a protobuf tag, and the length of the region's encoded name.
const KEY_BEGIN: usize = 2;
const REGION_LEN: usize = 32;
/// Maximum number of offsets that are tried as the start of a key.
const MAX_TRIED: usize = 1 << 10;

fn is_key(bytes: &[u8]) -> bool {
    match bytes.split_first_chunk() {
        Some((&[0x0a, 0x20], name)) => name.iter().all(u8::is_ascii_hexdigit),
        Some((&[0x0a, 0x0a], rest)) => rest.starts_with(META_REGION.as_bytes()),
        _ => false,
    }
}

/// Whether an edit of a compressed log may begin with these bytes of its key: the region and the table by number, or a new
/// region.
fn is_compressed_key(bytes: &[u8]) -> bool {
    match bytes {
        [0x0a, 0x02, region, _, 0x12, 0x02, table, _, 0x18, ..] => *region < 0x80 && *table < 0x80,
        [0x0a, 0x22, 0xff, 0x20, name @ ..] => name.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

impl LogReader {
    /// Reads the header. `path`: where the log lies, which decides how a compressed log is read.
    pub(crate) fn open(source: Arc<dyn ReadAt>, limits: Limits, path: &str) -> Result<Self> {
        let mut reader = Self {
            end: source.len(),
            source,
            limits,
            held: Bytes::new(),
            window: 0,
            at: 0,
            closed: false,
            cut_at: None,
            has_index_updates: false,
            compression: None,
            plain: Bytes::new(),
            plain_len: 0,
        };
        let end = reader.end;
        if end == 0 {
            return Ok(reader);
        }
        let magic = reader.take(4)?.unwrap_or_default();
        if magic != MAGIC {
            let text = magic.escape_ascii();
            return Err(Error::corrupt(format!("expected \"PWAL\", found \"{text}\"")).at(0));
        }
        let header = reader.message::<LogHeader>()?.unwrap_or_default();
        let secure = |class: &Option<String>| class.as_ref().is_some_and(|c| c.contains("Secure"));
        if header.encryption_key.is_some() || secure(&header.writer_class) || secure(&header.codec_class) {
            return Err(Error::unsupported("encrypted write-ahead logs; `wal=False` reads what was flushed"));
        }
        reader.compression = Compression::of(&header, path.contains(RECOVERED_EDITS))?.map(Box::new);
        reader.has_index_updates = header.codec_class.is_some_and(|class| class.ends_with(INDEXED));
        if reader.has_index_updates && reader.compression.is_some() {
            return Err(Error::unsupported(
                "compressed write-ahead logs of Phoenix's codec; `wal=False` reads what was flushed",
            ));
        }
        reader.find_end()?;
        Ok(reader)
    }

    /// Finds the start of the trailer, if there is one.
    fn find_end(&mut self) -> Result<()> {
        let len = self.source.len();
        let Some(at) = len.checked_sub(8).filter(|at| *at >= self.at) else { return Ok(()) };
        let tail = self.source.read(at..len)?;
        let mut cursor = Cursor::new(&tail, at);
        let size = cursor.i32_be()?;
        if cursor.rest() == END
            && let Some(end) = u64::try_from(size).ok().and_then(|size| at.checked_sub(size))
            && end >= self.at
        {
            (self.end, self.closed) = (end, true);
        }
        Ok(())
    }

    /// The next `len` bytes; `None` if the file ends earlier.
    fn take(&mut self, len: u64) -> Result<Option<Bytes>> {
        let Some(end) = self.at.checked_add(len).filter(|end| *end <= self.end) else { return Ok(None) };
        if self.at < self.window || end > self.window + self.held.len() as u64 {
            let until = self.at.saturating_add(len.max(WINDOW)).min(self.source.len());
            (self.held, self.window) = (self.source.read(self.at..until)?, self.at);
        }
        let place = |n: u64| usize::try_from(n - self.window).unwrap_or(usize::MAX);
        let taken = self.held.slice(place(self.at)..place(end));
        self.at = end;
        Ok(Some(taken))
    }

    fn varint(&mut self) -> Result<Option<u64>> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let Some(byte) = self.take(1)?.and_then(|b| b.first().copied()) else { return Ok(None) };
            if shift > 56 {
                return Err(Error::corrupt("expected a length of at most 2^56, found more").at(self.at));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(value));
            }
            shift += 7;
        }
    }

    fn message<M: Message + Default + message::Shaped>(&mut self) -> Result<Option<M>> {
        let at = self.at;
        let Some(length) = self.varint()? else { return Ok(None) };
        let Some(bytes) = self.take(length)? else { return Ok(None) };
        self.limits.metadata("a message", length).at(at)?;
        message::check::<M>(&bytes, &self.limits, self.source.len()).at(at)?;
        M::decode(bytes.as_ref()).map(Some).map_err(|e| Error::corrupt(format!("protobuf: {e}")).at(at))
    }

    /// The next edit: its key and the location of its cells. `None` at the end, or where an incomplete write begins.
    pub(crate) fn next_edit(&mut self) -> Result<Option<(LogKey, Edit)>> {
        let begin = self.at;
        if begin >= self.end {
            return Ok(None);
        }
        let edit = self.whole_edit()?;
        if edit.is_some() {
            return Ok(edit);
        }
        if self.closed {
            let message =
                format!("expected an edit that ends before the trailer at {}, found a longer one", self.end);
            return Err(Error::corrupt(message).at(begin).within("edit"));
        }
        // If the write is incomplete because the server died, nothing follows it.
        if let Some(next) = self.edit_after(begin)? {
            let message = format!(
                "the log is cut short: expected an edit that ends before {}, found a longer one, and another edit at {next}",
                self.end
            );
            return Err(Error::corrupt(message).at(begin).within("edit"));
        }
        self.cut_at = Some(begin);
        Ok(None)
    }

    /// The offset of an incomplete edit, once the reader has found it.
    pub(crate) fn cut_at(&self) -> Option<u64> {
        self.cut_at
    }

    /// The start of a complete edit after the one at `begin`. If there is one, the edit at `begin` is not cut
    /// off, but its length is damaged.
    fn edit_after(&mut self, begin: u64) -> Result<Option<u64>> {
        let (mut at, mut tried) = (begin.saturating_add(1), 0);
        while at < self.end && tried < MAX_TRIED {
            self.at = at;
            let len = self.end.saturating_sub(at).min(WINDOW);
            let Some(bytes) = self.take(len)? else { break };
            let mut windows = bytes.windows(KEY_BEGIN + REGION_LEN).enumerate();
            let is_compressed = self.compression.is_some();
            let is_start =
                |window: &[u8]| if is_compressed { is_compressed_key(window) } else { is_key(window) };
            while let Some((i, _)) = windows.find(|(_, window)| is_start(window)) {
                tried += 1;
                if tried > MAX_TRIED {
                    break;
                }
                // The key is preceded by its length, which takes one or two bytes.
                for back in [1, 2] {
                    let Some(place) = at.saturating_add(i as u64).checked_sub(back) else { continue };
                    self.at = place;
                    if place > begin && self.is_edit() {
                        return Ok(Some(place));
                    }
                }
            }
            if len < WINDOW {
                break;
            }
            at = at.saturating_add(len - (KEY_BEGIN + REGION_LEN) as u64);
        }
        self.at = self.end;
        Ok(None)
    }

    /// Whether an edit with cells begins here. Of a compressed one, only the key can be read.
    fn is_edit(&mut self) -> bool {
        match self.compression.take() {
            None => matches!(self.whole_edit(), Ok(Some((_, edit))) if edit.len > 0),
            Some(compression) => {
                let key = self.message::<LogKey>();
                let is_key = |key: &LogKey| key.cells > Some(0) && compression.is_key(key);
                let is_edit = matches!(key, Ok(Some(key)) if is_key(&key));
                self.compression = Some(compression);
                is_edit
            }
        }
    }

    /// Whether the cells that [`Edit`] locates are those of [`Self::take_cells`], and not in the file.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// The cells of the last edit of a compressed log, as those of a plain log.
    pub(crate) fn take_cells(&mut self) -> Bytes {
        std::mem::take(&mut self.plain)
    }

    /// The cells of an edit of a compressed log; `None` if they extend beyond the end of the edits.
    fn decode_cells(&mut self, compression: &mut Compression, key: &mut LogKey) -> Result<Option<Edit>> {
        let at = self.at;
        compression.key(key).at(at)?;
        let mut cells = Vec::new();
        for _ in 0..key.cells.unwrap_or(0) {
            let at = self.at;
            let limits = self.limits;
            if compression.cell(self, &limits, &mut cells).at(at).within(|| "edit")?.is_none() {
                return Ok(None);
            }
        }
        let edit = Edit { at: self.plain_len, len: cells.len() as u64, sequence_id: 0 };
        self.plain_len = self.plain_len.saturating_add(edit.len);
        self.plain = Bytes::from(cells);
        Ok(Some(edit))
    }

    /// Skips the two byte arrays of an index update; `None` if they extend beyond the end of the edits.
    fn skip_index_update(&mut self) -> Result<Option<()>> {
        for _ in 0..2 {
            let at = self.at;
            let Some(first) = self.take(1)?.and_then(|b| b.first().copied()) else { return Ok(None) };
            let rest = self.take(vint_rest(first))?;
            let Some(rest) = rest else { return Ok(None) };
            let length = vint(first, &rest).ok_or_else(|| {
                Error::corrupt("expected the length of a part of an index update, found a negative one")
                    .at(at)
                    .within("edit")
            })?;
            match self.at.checked_add(length).filter(|end| *end <= self.end) {
                Some(end) => self.at = end,
                None => return Ok(None),
            }
        }
        Ok(Some(()))
    }

    /// Reads an edit; `None` if it extends beyond the end of the edits.
    fn whole_edit(&mut self) -> Result<Option<(LogKey, Edit)>> {
        let begin = self.at;
        let Some(mut key) = self.message::<LogKey>().within(|| "edit")? else { return Ok(None) };
        let sequence_id = i64::try_from(key.sequence_id)
            .map_err(|_| Error::corrupt("expected a sequence id below 2^63, found more").at(begin))?;
        if let Some(mut compression) = self.compression.take() {
            let edit = self.decode_cells(&mut compression, &mut key);
            self.compression = Some(compression);
            return Ok(edit?.map(|edit| (key, Edit { sequence_id, ..edit })));
        }
        let at = self.at;
        for _ in 0..key.cells.unwrap_or(0) {
            let place = self.at;
            let Some(length) = self.take(4)? else { return Ok(None) };
            let length = length.first_chunk::<4>().map_or(0, |four| i32::from_be_bytes(*four));
            if length == INDEX_UPDATE && self.has_index_updates {
                if self.skip_index_update()?.is_none() {
                    return Ok(None);
                }
                continue;
            }
            let length = u64::try_from(length).map_err(|_| {
                Error::corrupt(format!("expected a cell's length, found {length}")).at(place).within("edit")
            })?;
            // This only locates the cells; it does not read them.
            match self.at.checked_add(length).filter(|end| *end <= self.end) {
                Some(end) => self.at = end,
                None => return Ok(None),
            }
        }
        Ok(Some((key, Edit { at, len: self.at - at, sequence_id })))
    }
}

impl Input for LogReader {
    fn take(&mut self, len: u64) -> Result<Option<Bytes>> {
        LogReader::take(self, len)
    }

    fn varint(&mut self) -> Result<Option<u64>> {
        LogReader::varint(self)
    }
}

/// How many bytes follow the first byte of Hadoop's vint (`WritableUtils.readVInt`).
fn vint_rest(first: u8) -> u64 {
    match first {
        0x88..=0x8f => u64::from(0x90 - first),
        0x80..=0x87 => u64::from(0x88 - first),
        _ => 0,
    }
}

/// The value of a vint; `None` if it is negative.
fn vint(first: u8, rest: &[u8]) -> Option<u64> {
    match first {
        0..=0x7f => Some(first.into()),
        0x88..=0x8f => Some(rest.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))),
        _ => None,
    }
}

/// Passes the cells of an edit to `with`.
pub(crate) fn each_cell(
    source: &dyn ReadAt,
    edit: &Edit,
    mut with: impl FnMut(&Cell<'_>) -> Result<()>,
) -> Result<()> {
    let bytes = source.read(edit.at..edit.at.saturating_add(edit.len))?;
    let mut cursor = Cursor::new(&bytes, edit.at);
    while !cursor.is_empty() {
        let at = cursor.offset();
        let length = cursor.i32_be()?;
        // The reader has accepted it where it located the cells.
        if length == INDEX_UPDATE {
            for _ in 0..2 {
                let first = cursor.u8()?;
                let rest = cursor.take(usize::try_from(vint_rest(first)).unwrap_or(usize::MAX))?;
                let length = vint(first, rest).and_then(|length| usize::try_from(length).ok());
                cursor.take(
                    length.ok_or_else(|| Error::corrupt("expected a length, found a negative one").at(at))?,
                )?;
            }
            continue;
        }
        let cell = cursor.take_signed(length.into())?;
        // If a cell has no tags, nothing follows the value, not even the length of the tags.
        let lengths = cell.first_chunk::<8>().map(|l| {
            let [a, b, c, d, e, f, g, h] = *l;
            u64::from(u32::from_be_bytes([a, b, c, d])) + u64::from(u32::from_be_bytes([e, f, g, h])) + 8
        });
        let tags = lengths.is_some_and(|lengths| lengths < cell.len() as u64);
        let layout = CellLayout { tags, sequence_ids: false };
        let (mut read, end) = layout.cell(cell, 0).at(at).within(|| "edit")?;
        if end != cell.len() {
            let message = format!("expected a cell of {} bytes, found one of {end}", cell.len());
            return Err(Error::corrupt(message).at(at).within("edit"));
        }
        read.sequence_id = edit.sequence_id;
        with(&read)?;
    }
    Ok(())
}
