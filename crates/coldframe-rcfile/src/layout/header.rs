//! Parses the header: its variant, the codec, the metadata and the sync marker.
//!
//! ```text
//! RCF1 | "RCF" 01 | compressed u8 | [codec: Text] | metadata | sync [16] |
//! SEQ6 | "SEQ" 06 | key class: Text | value class: Text | compressed u8 | block-compressed u8 = 0
//!      | [codec: Text] | metadata | sync [16] |
//!
//! metadata | count i32 BE | count x (name: Text, value: Text) |        Text | length: VInt | bytes |
//! ```
//!
//! Source: Hive's `RCFile.Reader.init` and the javadoc of `RCFile`; Hive wrote `SEQ6` before 0.9 and still writes
//! it with `hive.exec.rcfile.use.explicit.header=false`.

use coldframe_core::{Error, ErrorContext, Limits, Result, Value};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

/// Length of a sync marker's hash.
pub const SYNC_LEN: usize = 16;

/// The metadata entry that holds the number of columns.
pub(crate) const COLUMN_NUMBER: &str = "hive.io.rcfile.column.number";

const KEY_CLASS_SUFFIX: &str = "RCFile$KeyBuffer";

/// The variant of a file's header, which the magic bytes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Magic {
    /// A SequenceFile's header, version 6.
    Seq6,
    /// RCFile's own header, version 1.
    #[default]
    Rcf1,
}

impl Magic {
    /// The name used in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seq6 => "SEQ6",
            Self::Rcf1 => "RCF1",
        }
    }
}

/// The parsed header.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Header {
    /// The variant.
    pub magic: Magic,
    /// Key and value class of a `SEQ6` header.
    pub classes: Option<(String, String)>,
    /// The codec's Java class, if the file is compressed.
    pub codec_class: Option<String>,
    /// Metadata in file order.
    pub metadata: Vec<(Vec<u8>, Vec<u8>)>,
    /// Number of columns, from the metadata.
    pub columns: usize,
    /// The file's sync hash.
    pub sync: [u8; SYNC_LEN],
    /// Offset of the metadata's entry count.
    pub metadata_offset: u64,
    /// Where the first row group (or its sync marker) starts.
    pub end: u64,
}

impl Header {
    /// Whether a file that begins with `head` is an RCFile.
    pub fn probe(head: &[u8]) -> bool {
        if head.starts_with(b"RCF") {
            return head.get(3).is_some_and(|version| *version <= 1);
        }
        let mut cursor = Cursor::new(head, 0);
        let is_sequence_file = cursor.expect("magic", b"SEQ\x06").is_ok();
        is_sequence_file
            && cursor.hadoop_text().is_ok_and(|class| class.ends_with(KEY_CLASS_SUFFIX.as_bytes()))
    }

    /// Parses the header from the file's first bytes.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let mut c = Cursor::new(bytes, 0);
        let magic = parse_magic(&mut c)?;
        let classes = match magic {
            Magic::Rcf1 => None,
            Magic::Seq6 => Some((text(&mut c, "key class")?, text(&mut c, "value class")?)),
        };
        if let Some((key, _)) = classes.as_ref().filter(|(k, _)| !k.ends_with(KEY_CLASS_SUFFIX)) {
            return Err(Error::corrupt(format!(
                "key class: expected one ending in {KEY_CLASS_SUFFIX}, found {key}"
            ))
            .at(4));
        }
        let compressed = flag(&mut c, "compressed")?;
        if magic == Magic::Seq6 && flag(&mut c, "block-compressed")? {
            return Err(
                Error::corrupt("block-compressed: expected 0, found 1").at(c.offset().saturating_sub(1))
            );
        }
        let codec_class = if compressed { Some(text(&mut c, "codec class")?) } else { None };
        let metadata_offset = c.offset();
        let metadata = parse_metadata(&mut c, limits).within(|| "metadata")?;
        let sync = c.array().within(|| "sync marker")?;
        let columns = column_number(&metadata, limits).at(metadata_offset).within(|| "metadata")?;
        Ok(Self { magic, classes, codec_class, metadata, columns, sync, metadata_offset, end: c.offset() })
    }

    /// The codec, or `None` for an uncompressed file; an unsupported error for an unknown class.
    pub fn codec(&self) -> Result<Option<HadoopCodec>> {
        self.codec_class.as_deref().map(HadoopCodec::from_class_name).transpose()
    }

    /// All fields of the header, by name.
    pub fn describe(&self) -> Vec<(String, Value)> {
        let metadata = Value::Map(
            self.metadata
                .iter()
                .map(|(k, v)| (String::from_utf8_lossy(k).into_owned(), Value::text_or_bytes(v)))
                .collect(),
        );
        let mut all = vec![
            ("header".to_owned(), Value::from(self.magic.name())),
            ("codec".to_owned(), Value::from(self.codec_class.clone())),
            ("columns".to_owned(), Value::from(self.columns)),
            ("metadata".to_owned(), metadata),
            ("sync".to_owned(), Value::from(hex(&self.sync))),
            ("header_length".to_owned(), Value::from(self.end)),
        ];
        if let Some((key, value)) = &self.classes {
            all.push(("key_class".to_owned(), Value::from(key.as_str())));
            all.push(("value_class".to_owned(), Value::from(value.as_str())));
        }
        all
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn parse_magic(c: &mut Cursor<'_>) -> Result<Magic> {
    let [a, b, d, version] = c.array::<4>().within(|| "magic")?;
    match (&[a, b, d], version) {
        (b"RCF", 0 | 1) => Ok(Magic::Rcf1),
        (b"SEQ", 6) => Ok(Magic::Seq6),
        (b"RCF" | b"SEQ", v) => {
            Err(Error::unsupported(format!("RCFile header version {v}")).at(3).within("magic"))
        }
        (other, _) => {
            let magic = other.escape_ascii();
            Err(Error::corrupt(format!("expected \"RCF\" or \"SEQ\", found \"{magic}\""))
                .at(0)
                .within("magic"))
        }
    }
}

fn text(c: &mut Cursor<'_>, what: &str) -> Result<String> {
    let at = c.offset();
    let bytes = c.hadoop_text().within(|| what.to_owned())?;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::corrupt("expected UTF-8 text, found other bytes").at(at).within(what.to_owned()))
}

fn flag(c: &mut Cursor<'_>, what: &str) -> Result<bool> {
    let at = c.offset();
    match c.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => {
            Err(Error::corrupt(format!("expected 0 or 1, found {other}")).at(at).within(what.to_owned()))
        }
    }
}

/// Memory of one entry: two buffers with their headers.
const ENTRY_BYTES: u64 = 96;

fn parse_metadata(c: &mut Cursor<'_>, limits: &Limits) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let at = c.offset();
    let count = c.i32_be()?;
    // Two empty Texts take two bytes. A higher count is an error, and no memory is allocated for it.
    let max = c.remaining() / 2;
    let count = usize::try_from(count).ok().filter(|n| *n <= max).ok_or_else(|| {
        Error::corrupt(format!("expected a count of at most {max} entries, found {count}")).at(at)
    })?;
    limits.decoded("the entries of a header", count as u64 * ENTRY_BYTES, c.remaining() as u64).at(at)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push((c.hadoop_text()?.to_vec(), c.hadoop_text()?.to_vec()));
    }
    Ok(entries)
}

fn column_number(metadata: &[(Vec<u8>, Vec<u8>)], limits: &Limits) -> Result<usize> {
    let value = metadata.iter().find(|(k, _)| k == COLUMN_NUMBER.as_bytes()).map(|(_, v)| v);
    let Some(value) = value else {
        return Err(Error::corrupt(format!("expected an entry {COLUMN_NUMBER}, found none")));
    };
    let number = std::str::from_utf8(value).ok().and_then(|s| s.trim().parse::<u32>().ok());
    let Some(number) = number else {
        let text = value.escape_ascii();
        return Err(Error::corrupt(format!("{COLUMN_NUMBER}: expected a number, found \"{text}\"")));
    };
    limits.columns("the number of columns", number.into())
}

#[cfg(test)]
mod tests;
