//! Parses log files into blocks.
//!
//! ```text
//! block   | "#HUDI#" | size i64 | version i32 = 1 | type i32 | header | content length i64 | content | footer | total i64 |
//! header, footer   | entries i32 | ( key i32 | length i32 | text ) ... |
//! delete  | version i32 | length i32 | v3: Avro HoodieDeleteRecordList; v1, v2: objects of the Kryo library |
//! avro    | version i32 = 3 | records i32 | ( length i32 | datum ) ... |
//! command | type i32 = 0: roll back |
//! ```
//!
//! All integers are big-endian. `size` counts the bytes after itself up to the end of the block; `total` is 6
//! more, for the magic bytes. A writer that dies leaves an incomplete block: its two sizes differ, or it is
//! followed neither by the magic bytes of another block nor by the end of the file. An incomplete block
//! extends to the next magic bytes. The instant in its header, if that was written, determines whether the
//! block is valid.

use std::collections::BTreeMap;
use std::ops::Range;

use coldframe_core::{Error, Limits, Node, Result};
use coldframe_encoding::Cursor;
use memchr::memmem;

use crate::avro::Schema;
use crate::avro::datum::Datum;

/// The magic bytes of every block.
pub(crate) const MAGIC: &[u8; 6] = b"#HUDI#";
/// The size of the magic bytes and the size field.
const HEAD: usize = MAGIC.len() + 8;

/// Keys of a header.
const INSTANT_TIME: i32 = 0;
const TARGET_INSTANT_TIME: i32 = 1;
const SCHEMA: i32 = 2;
const COMPACTED_BLOCK_TIMES: i32 = 4;
const IS_PARTIAL: i32 = 7;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A command to roll an instant back.
    Command,
    /// Keys of deleted records.
    Delete,
    /// An incomplete or damaged block.
    Corrupt,
    /// Records as Avro datums.
    Avro,
    /// Records as an HFile.
    HFile,
    /// Records as a Parquet file: only in the logs of data tables, never in the logs of metadata tables.
    Parquet,
    /// Records before and after their changes: only in the logs of data tables, never in the logs of metadata
    /// tables.
    ChangeData,
    /// A block of another version of the format: only its length is known.
    Unknown,
}

impl BlockKind {
    fn of(ordinal: i32) -> Option<Self> {
        Some(match ordinal {
            0 => Self::Command,
            1 => Self::Delete,
            2 => Self::Corrupt,
            3 => Self::Avro,
            4 => Self::HFile,
            5 => Self::Parquet,
            6 => Self::ChangeData,
            _ => return None,
        })
    }

    /// The name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Delete => "delete",
            Self::Corrupt => "corrupt",
            Self::Avro => "avro",
            Self::HFile => "hfile",
            Self::Parquet => "parquet",
            Self::ChangeData => "cdc",
            Self::Unknown => "unknown",
        }
    }
}

/// A block of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The range of all bytes of the block.
    pub bytes: Range<u64>,
    /// The bytes of its content.
    pub content: Range<u64>,
    /// Its kind.
    pub kind: BlockKind,
    /// Its header.
    pub header: BTreeMap<i32, String>,
    /// If the block is corrupt or unknown: why it cannot be read.
    pub reason: String,
    /// Whether the file ends inside the block.
    pub cut: bool,
}

impl Block {
    /// The instant that wrote the block.
    pub(crate) fn instant(&self) -> Option<&str> {
        self.header.get(&INSTANT_TIME).map(String::as_str)
    }

    /// The instant that a command rolls back.
    pub(crate) fn target(&self) -> Option<&str> {
        self.header.get(&TARGET_INSTANT_TIME).map(String::as_str)
    }

    /// The schema of the block's records.
    pub(crate) fn schema(&self) -> Option<&str> {
        self.header.get(&SCHEMA).map(String::as_str)
    }

    /// If the block holds merged records of other blocks, the instants of those blocks.
    pub(crate) fn compacted(&self) -> Option<Vec<&str>> {
        self.header.get(&COMPACTED_BLOCK_TIMES).map(|times| times.split(',').map(str::trim).collect())
    }

    /// Whether the records have only the columns that they change.
    pub(crate) fn is_partial(&self) -> bool {
        self.header.get(&IS_PARTIAL).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Sets the instant, from the file's name, if a block that cannot be read lacks it.
    pub(crate) fn set_instant(&mut self, instant: &str) {
        if matches!(self.kind, BlockKind::Corrupt | BlockKind::Unknown) {
            self.header.entry(INSTANT_TIME).or_insert_with(|| instant.to_owned());
        }
    }

    /// A block of another version of the format. Its header cannot be located.
    fn unknown(bytes: Range<u64>, reason: String) -> Self {
        let header = BTreeMap::new();
        Self { content: bytes.clone(), bytes, kind: BlockKind::Unknown, header, reason, cut: false }
    }

    /// A corrupt block: the bytes `block` at offset `at` of the file.
    fn corrupt(block: &[u8], at: usize, reason: String, limits: &Limits, cut: bool) -> Self {
        let bytes = range(at, block.len());
        let header = || -> Result<BTreeMap<i32, String>> {
            let mut c = Cursor::new(block, at as u64);
            c.expect("magic", MAGIC)?;
            c.skip(HEAD - MAGIC.len() + 8)?;
            entries(&mut c, limits)
        };
        let header = header().unwrap_or_default();
        Self { content: bytes.clone(), bytes, kind: BlockKind::Corrupt, header, reason, cut }
    }
}

/// Splits a log file into blocks. An incomplete or overwritten part is a corrupt block. A whole block of another
/// version of the format is unknown, and the blocks after it are still read.
pub(crate) fn blocks(log: &[u8], limits: &Limits) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < log.len() {
        let rest = log.get(at..).unwrap_or_default();
        let length = match extent(rest) {
            Ok(length) => {
                let whole = rest.get(..length).unwrap_or_default();
                match parse(whole, at as u64, limits) {
                    Ok(block) => blocks.push(block),
                    Err(e) if e.is_damage() => {
                        let reason = e.within("log block").to_string();
                        blocks.push(Block::corrupt(whole, at, reason, limits, false));
                    }
                    Err(e) => blocks.push(Block::unknown(range(at, length), e.reason())),
                }
                length
            }
            Err(reason) => {
                // Like Hudi, this treats magic bytes inside an incomplete block as the start of the next
                // block.
                let next = memmem::find(rest.get(1..).unwrap_or_default(), MAGIC);
                let length = next.map_or(rest.len(), |n| n + 1);
                let block = rest.get(..length).unwrap_or_default();
                let cut = length == rest.len() && is_cut(rest);
                blocks.push(Block::corrupt(block, at, reason, limits, cut));
                length
            }
        };
        at += length;
    }
    blocks
}

/// Whether `rest`, an incomplete block at the end of a file, may have been cut off by that end.
fn is_cut(rest: &[u8]) -> bool {
    let magic = rest.get(..MAGIC.len()).unwrap_or(rest);
    let size = rest.get(MAGIC.len()..).and_then(|b| b.first_chunk()).copied().map(i64::from_be_bytes);
    let beyond = |size: i64| usize::try_from(size).is_ok_and(|n| n > rest.len().saturating_sub(HEAD));
    MAGIC.starts_with(magic) && size.is_none_or(beyond)
}

fn range(at: usize, length: usize) -> Range<u64> {
    at as u64..(at + length) as u64
}

/// The length of the block at the front of `rest`, or why it is not a whole block.
fn extent(rest: &[u8]) -> Result<usize, String> {
    if !rest.starts_with(MAGIC) {
        return Err(format!(
            "expected the magic #HUDI#, found \"{}\"",
            rest.get(..6).unwrap_or(rest).escape_ascii()
        ));
    }
    let size = rest.get(MAGIC.len()..).and_then(|b| b.first_chunk()).copied().map(i64::from_be_bytes);
    let size = size.ok_or_else(|| "expected the size of a block, found the end of the file".to_owned())?;
    let length = usize::try_from(size).ok().and_then(|n| n.checked_add(HEAD)).unwrap_or(usize::MAX);
    let Some((whole, behind)) = rest.split_at_checked(length) else {
        return Err(format!("expected a block of {size} bytes, found {}", rest.len() - HEAD));
    };
    let total = whole.last_chunk().copied().map(i64::from_be_bytes);
    if whole.len() < HEAD + 8 || total != size.checked_add(6) {
        return Err(format!("expected the same size at both ends of a block, found {size} at the front"));
    }
    if behind.len() >= MAGIC.len() && !behind.starts_with(MAGIC) {
        return Err("expected a magic or the end of the file after a block, found other bytes".to_owned());
    }
    Ok(length)
}

/// Parses a whole block.
fn parse(whole: &[u8], at: u64, limits: &Limits) -> Result<Block> {
    let bytes = at..at + whole.len() as u64;
    let mut c = Cursor::new(whole, at);
    c.skip(HEAD)?;
    let version = c.i32_be()?;
    if version != 1 {
        return Err(Error::unsupported(format!("version {version} of Hudi's log format")));
    }
    let ordinal = c.i32_be()?;
    let kind = BlockKind::of(ordinal)
        .ok_or_else(|| Error::corrupt(format!("expected a block type of 0 to 6, found {ordinal}")))?;
    let header = entries(&mut c, limits).map_err(|e| e.within("header"))?;
    let length = c.i64_be()?;
    let start = c.offset();
    c.take_signed(length).map_err(|e| e.within("content"))?;
    let content = start..c.offset();
    entries(&mut c, limits).map_err(|e| e.within("footer"))?;
    c.skip(8)?;
    c.finish()?;
    Ok(Block { bytes, content, kind, header, reason: String::new(), cut: false })
}

fn entries(c: &mut Cursor<'_>, limits: &Limits) -> Result<BTreeMap<i32, String>> {
    let count = c.i32_be()?;
    let count = u64::try_from(count)
        .map_err(|_| Error::corrupt(format!("expected 0 entries or more, found {count}")))?;
    // An entry takes at least eight bytes.
    let room = c.remaining();
    if count.saturating_mul(8) > room as u64 {
        return Err(Error::corrupt(format!("expected {count} entries, found only {room} bytes")));
    }
    limits.metadata("entries of a log block", count)?;
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let key = c.i32_be()?;
        let length = c.i32_be()?;
        let text = String::from_utf8_lossy(c.take_signed(length.into())?).into_owned();
        map.insert(key, text);
    }
    Ok(map)
}

/// The schema of a delete block's list. `orderingVal` is a union of null and of records that each wrap a
/// value.
pub(crate) fn delete_schema(limits: &Limits) -> Result<Schema> {
    let wrapped = [
        "\"boolean\"",
        "\"int\"",
        "\"long\"",
        "\"float\"",
        "\"double\"",
        "\"bytes\"",
        "\"string\"",
        "\"int\"",
        "\"bytes\"",
        "\"long\"",
        "\"long\"",
    ];
    let wrappers = wrapped.iter().enumerate().map(|(i, of)| {
        format!(r#"{{"type":"record","name":"W{i}","fields":[{{"name":"value","type":{of}}}]}}"#)
    });
    let mut wrappers: Vec<String> = wrappers.collect();
    // The values of several ordering columns: each value is wrapped again, and a local date has a wrapper
    // only here.
    let names: Vec<String> = (0..wrapped.len()).map(|i| format!("\"W{i}\"")).collect();
    let names = names.join(",");
    wrappers.push(format!(
        r#"{{"type":"record","name":"Several","fields":[{{"name":"values","type":["null",{{"type":"array","items":
        ["null",{names},{{"type":"record","name":"LocalDate","fields":[{{"name":"value","type":"int"}}]}}]}}]}}]}}"#
    ));
    let wrappers = wrappers.join(",");
    let json = format!(
        r#"{{"type":"record","name":"List","fields":[{{"name":"deleteRecordList","type":{{"type":"array","items":
        {{"type":"record","name":"Delete","fields":[
            {{"name":"recordKey","type":["null","string"]}},
            {{"name":"partitionPath","type":["null","string"]}},
            {{"name":"orderingVal","type":["null",{wrappers}]}}]}}}}}}]}}"#
    );
    Schema::parse(json.as_bytes(), limits)
}

/// The keys that a delete block deletes.
pub(crate) fn deleted_keys(content: &[u8], at: u64, limits: &Limits) -> Result<Vec<Vec<u8>>> {
    let mut c = Cursor::new(content, at);
    let version = c.i32_be()?;
    let length = c.i32_be()?;
    let list = c.take_signed(length.into())?;
    c.finish()?;
    if version < 3 {
        return Err(Error::unsupported(format!(
            "version {version} of Hudi's delete blocks, which store keys as Java objects"
        )));
    }
    let schema = delete_schema(limits)?;
    let list = Datum::decode(&schema, list, limits)?;
    let Datum::Record(fields) = &list else { return Ok(Vec::new()) };
    let Some(Datum::Array(records)) = fields.first() else { return Ok(Vec::new()) };
    Ok(records
        .iter()
        .filter_map(|record| match record {
            Datum::Record(fields) => match fields.first()?.unwrap_union() {
                Datum::String(key) => Some(key.as_bytes().to_vec()),
                _ => None,
            },
            _ => None,
        })
        .collect())
}

/// The node of a block in a tree of layouts, whose file begins at `at`.
pub(crate) fn node(block: &Block, at: u64) -> Node {
    let mut node =
        Node::new(format!("{} block", block.kind.name()), at + block.bytes.start..at + block.bytes.end);
    if let Some(instant) = block.instant() {
        node = node.with("instant", instant);
    }
    if let Some(target) = block.target() {
        node = node.with("rolls back", target);
    }
    if !block.reason.is_empty() {
        node = node.with("damage", block.reason.as_str());
    }
    if block.content != block.bytes {
        node.push(Node::new("content", at + block.content.start..at + block.content.end));
        node.fill_gaps("framing");
    }
    node
}

/// The datums of an Avro block, in order.
pub(crate) fn avro_datums(content: &[u8], at: u64) -> Result<Vec<&[u8]>> {
    let mut c = Cursor::new(content, at);
    let version = c.i32_be()?;
    if !(1..=3).contains(&version) {
        return Err(Error::unsupported(format!("version {version} of Hudi's Avro blocks")));
    }
    let count = c.i32_be()?;
    let mut datums = Vec::new();
    for _ in 0..count {
        let length = c.i32_be()?;
        datums.push(c.take_signed(length.into())?);
    }
    c.finish()?;
    Ok(datums)
}

#[cfg(test)]
mod tests;
