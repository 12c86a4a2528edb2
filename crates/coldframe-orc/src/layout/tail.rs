//! Parses the end of a file, which states where everything else is.
//!
//! ```text
//! | "ORC" | stripe .. | encrypted stripe statistics | metadata | footer | postscript | length of the postscript u8 |
//! ```
//!
//! ORC specification v1, "File Tail". There are also files with the magic bytes only at the start (Hive
//! 0.11), without version, block size or lengths, or with no bytes at all (Java: a table without rows or
//! columns).

use std::ops::Range;

use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Limits, Result};

use super::compression::Compression;
use super::proto::{self, Footer, PostScript};
use super::types::Kind;

/// The first bytes of a file, and the last of its postscript.
pub(crate) const MAGIC: &[u8] = b"ORC";
/// Number of bytes of the first read at the file's end.
pub(crate) const GUESS: u64 = 16 << 10;

/// The tail of a file.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// The postscript.
    pub(crate) postscript: PostScript,
    /// The codec that the postscript states.
    pub(crate) compression: Compression,
    /// The footer.
    pub(crate) footer: Footer,
    /// Where the encrypted statistics of stripes are.
    pub(crate) stripe_statistics_bytes: Range<u64>,
    /// Where the metadata is.
    pub(crate) metadata_bytes: Range<u64>,
    /// Where the footer is.
    pub(crate) footer_bytes: Range<u64>,
    /// Where the postscript is, without its length.
    pub(crate) postscript_bytes: Range<u64>,
    /// Length of the file.
    pub(crate) file_len: u64,
}

/// The postscript of a file and the positions it states, before the footer is read.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The postscript.
    pub(crate) postscript: PostScript,
    /// The codec that the postscript states.
    pub(crate) compression: Compression,
    /// Whether the postscript ends with the magic bytes; early writers put them only at the start of the
    /// file.
    pub(crate) has_magic: bool,
    /// Where the encrypted statistics of stripes are.
    pub(crate) stripe_statistics_bytes: Range<u64>,
    /// Where the metadata is.
    pub(crate) metadata_bytes: Range<u64>,
    /// Where the footer is.
    pub(crate) footer_bytes: Range<u64>,
    /// Where the postscript is, without its length.
    pub(crate) postscript_bytes: Range<u64>,
}

impl End {
    /// Parses the `last` bytes of a file of `len` bytes.
    pub(crate) fn parse(last: &[u8], len: u64, limits: &Limits) -> Result<Self> {
        let start = len.saturating_sub(last.len() as u64);
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
        let postscript: PostScript =
            proto::decode_small("postscript", bytes.to_vec().into()).at(postscript_start)?;
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
        Ok(Self {
            postscript,
            compression,
            has_magic: bytes.ends_with(MAGIC),
            stripe_statistics_bytes,
            metadata_bytes,
            footer_bytes,
            postscript_bytes: postscript_start..len - 1,
        })
    }

    /// The error for a file without the magic bytes.
    pub(crate) fn without_magic(&self) -> Error {
        Error::corrupt("expected the magic \"ORC\" in the postscript or at the file's start, found neither")
            .at(self.postscript_bytes.start)
            .within("postscript")
    }
}

impl Tail {
    /// Parses the footer's stored bytes, in a file of `len` bytes.
    pub(crate) fn new(end: End, stored: &[u8], len: u64, limits: &Limits) -> Result<Self> {
        let start = end.footer_bytes.start;
        let footer = end.compression.message(stored, start, limits, len).within(|| "footer")?;
        let footer: Footer = proto::decode("footer", footer, limits, len).at(start)?;
        // The end of a truncated file may look like a postscript that names no footer.
        if footer.types.is_empty() {
            let message =
                format!("expected types, found none in a footer of {} bytes", end.postscript.footer_length());
            return Err(Error::corrupt(message).at(start).within("footer"));
        }
        Ok(Self {
            postscript: end.postscript,
            compression: end.compression,
            footer,
            stripe_statistics_bytes: end.stripe_statistics_bytes,
            metadata_bytes: end.metadata_bytes,
            footer_bytes: end.footer_bytes,
            postscript_bytes: end.postscript_bytes,
            file_len: len,
        })
    }

    /// The tail of a file of 0 bytes.
    pub(crate) fn of_nothing(limits: &Limits) -> Result<Self> {
        let postscript = PostScript::default();
        let compression = Compression::new(&postscript, limits)?;
        let root = proto::Type { kind: Some(Kind::Struct.number()), ..proto::Type::default() };
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

    /// Major and minor version of the format; 0.11 if not stated.
    pub(crate) fn version(&self) -> (u32, u32) {
        match self.postscript.version.as_slice() {
            [major, minor, ..] => (*major, *minor),
            [major] => (*major, 0),
            [] => (0, 11),
        }
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
