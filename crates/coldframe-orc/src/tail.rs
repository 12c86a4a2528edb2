//! The end of a file: where everything else is found from.
//!
//! ```text
//! | "ORC" | stripe .. | encrypted stripe statistics | metadata | footer | postscript | length of the postscript u8 |
//! ```
//!
//! ORC specification v1, "File Tail". What real files do besides: the magic is only at the file's start (Hive 0.11), version,
//! block size or lengths are absent, the file has no bytes at all (Java: a table without rows or columns).

use std::ops::Range;

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::codec::Decompressor;

use crate::compression::Compression;
use crate::proto::{self, Footer, Metadata, PostScript};

/// What a file begins with, and what its postscript ends with.
pub const MAGIC: &[u8] = b"ORC";
/// How much is read at first.
const GUESS: u64 = 16 << 10;

/// The tail of a file.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The postscript.
    pub postscript: PostScript,
    /// The codec it names.
    pub compression: Compression,
    /// The footer.
    pub footer: Footer,
    /// Where the encrypted statistics of stripes are.
    pub stripe_statistics_bytes: Range<u64>,
    /// Where the metadata is: see [`Tail::read_metadata`].
    pub metadata_bytes: Range<u64>,
    /// Where the footer is.
    pub footer_bytes: Range<u64>,
    /// Where the postscript is, without its length.
    pub postscript_bytes: Range<u64>,
    /// Length of the file.
    pub file_len: u64,
}

impl Tail {
    /// Reads the tail of `source`.
    pub fn read(source: &dyn ReadAt, limits: &Limits) -> Result<Self> {
        let len = source.len();
        if len == 0 {
            return Self::of_nothing(limits);
        }
        let start = len.saturating_sub(GUESS);
        let last = source.read(start..len)?;
        let (length, rest) =
            last.split_last().ok_or_else(|| Error::corrupt("expected a postscript, found no bytes"))?;
        let length = usize::from(*length);
        let at = rest.len().checked_sub(length).ok_or_else(|| {
            Error::corrupt(format!("expected a postscript of {length} bytes, found {}", rest.len()))
                .at(len - 1)
                .within("postscript")
        })?;
        let postscript_start = start + at as u64;
        let bytes = rest.get(at..).unwrap_or_default();
        let postscript: PostScript = proto::decode("postscript", bytes).at(postscript_start)?;
        if !bytes.ends_with(MAGIC) && source.read(0..len.min(3))? != MAGIC {
            return Err(Error::corrupt(
                "expected the magic \"ORC\" in the postscript or at the file's start, found neither",
            )
            .at(postscript_start)
            .within("postscript"));
        }
        check_version(&postscript).at(postscript_start)?;
        let compression =
            Compression::new(&postscript, limits).at(postscript_start).within(|| "postscript")?;
        let before = |end: u64, length: u64, what: &str| {
            let start = end.checked_sub(length).ok_or_else(|| {
                Error::corrupt(format!("expected {length} bytes of {what} in front of byte {end}"))
                    .at(postscript_start)
                    .within("postscript")
            });
            start.map(|start| start..end)
        };
        let footer_bytes = before(postscript_start, postscript.footer_length(), "footer")?;
        let metadata_bytes = before(footer_bytes.start, postscript.metadata_length(), "metadata")?;
        let stripe_statistics_bytes =
            before(metadata_bytes.start, postscript.stripe_statistics_length(), "stripe statistics")?;
        limits.metadata("the footer", postscript.footer_length()).at(footer_bytes.start)?;
        let stored = match footer_bytes.start.checked_sub(start).and_then(|s| usize::try_from(s).ok()) {
            Some(from) => last.slice(from.min(at)..at),
            None => source.read(footer_bytes.clone())?,
        };
        let footer = compression
            .message(&mut Decompressor::new(), &stored, footer_bytes.start, limits)
            .within(|| "footer")?;
        let footer: Footer = proto::decode("footer", &footer).at(footer_bytes.start)?;
        // What a cut file ends with may pass for a postscript that names no footer.
        if footer.types.is_empty() {
            let message =
                format!("expected types, found none in a footer of {} bytes", postscript.footer_length());
            return Err(Error::corrupt(message).at(footer_bytes.start).within("footer"));
        }
        Ok(Self {
            postscript,
            compression,
            footer,
            stripe_statistics_bytes,
            metadata_bytes,
            footer_bytes,
            postscript_bytes: postscript_start..len - 1,
            file_len: len,
        })
    }

    /// The tail of a file of 0 bytes.
    fn of_nothing(limits: &Limits) -> Result<Self> {
        let postscript = PostScript::default();
        let compression = Compression::new(&postscript, limits)?;
        let root = proto::Type { kind: Some(crate::types::Kind::Struct.number()), ..proto::Type::default() };
        Ok(Self {
            postscript,
            compression,
            footer: Footer { types: vec![root], ..Footer::default() },
            stripe_statistics_bytes: 0..0,
            metadata_bytes: 0..0,
            footer_bytes: 0..0,
            postscript_bytes: 0..0,
            file_len: 0,
        })
    }

    /// The statistics of stripes; none where the file has none.
    pub fn read_metadata(&self, source: &dyn ReadAt, limits: &Limits) -> Result<Metadata> {
        let range = self.metadata_bytes.clone();
        if range.is_empty() {
            return Ok(Metadata::default());
        }
        limits.metadata("the metadata", range.end - range.start).at(range.start)?;
        let stored = source.read(range.clone())?;
        let message = self
            .compression
            .message(&mut Decompressor::new(), &stored, range.start, limits)
            .within(|| "metadata")?;
        proto::decode("metadata", &message).at(range.start)
    }

    /// Major and minor version of the format; 0.11 where it is not stated.
    pub fn version(&self) -> (u32, u32) {
        match self.postscript.version.as_slice() {
            [major, minor, ..] => (*major, *minor),
            [major] => (*major, 0),
            [] => (0, 11),
        }
    }

    /// Whether decimals of at most 18 digits are one stream of integers: version 1.9999, the draft of 2.0.
    pub fn has_short_decimals(&self) -> bool {
        self.version() == (1, 9999)
    }
}

fn check_version(postscript: &PostScript) -> Result<()> {
    match postscript.version.as_slice() {
        [] | [0] | [0, ..] | [1, 9999, ..] => Ok(()),
        other => {
            let text: Vec<String> = other.iter().map(u32::to_string).collect();
            Err(Error::unsupported(format!("ORC version {}", text.join("."))))
        }
    }
}
