//! An open CFile: its metadata, its purpose, and how its blocks are stored. The source may be a part of a
//! larger file, and may be decrypted while it is read; offsets are relative to the start of the CFile.

use std::sync::{Arc, OnceLock};

use coldframe_core::salvage::Loss;
use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};

use crate::encoding::dict::Dictionary;
use crate::layout::block::{BlockFormat, DataBlock};
use crate::layout::delta;
use crate::layout::footer::Footer;
use crate::layout::types::{Encoding, KuduType, Physical};

/// The name of the column of ordinals.
pub const ORDINAL: &str = "ordinal";
/// The name of the column of values.
pub const VALUE: &str = "value";

/// The purpose of a CFile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// A column of a rowset. Blocks are found by ordinal.
    Column,
    /// Changes to the rows of a rowset.
    Delta,
    /// The keys of a rowset whose key has several columns.
    Index,
    /// A bloom filter of keys.
    Bloom,
}

impl Purpose {
    /// Determines the purpose from a footer.
    pub fn of(footer: &Footer) -> Result<Self> {
        let purpose = match footer.positional {
            Some(_) => Self::Column,
            None if delta::is_delta(footer) => Self::Delta,
            None if is_bloom(footer) => Self::Bloom,
            None if footer.value.is_some() => Self::Index,
            None if footer.num_values == 0 => Self::Column,
            None => {
                let e = format!("expected an index to {} values, found none", footer.num_values);
                return Err(Error::corrupt(e).at(footer.range.start).within("footer"));
            }
        };
        if purpose != Self::Column {
            check_entries(footer, purpose)?;
        }
        Ok(purpose)
    }

    /// The name of the purpose.
    pub fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Delta => "delta",
            Self::Index => "index",
            Self::Bloom => "bloom",
        }
    }
}

/// Whether this is the footer of a bloom file.
fn is_bloom(footer: &Footer) -> bool {
    footer.data_type == KuduType::Binary
        && footer.num_values == 0
        && footer.value.is_some()
        && footer.positional.is_none()
        && !delta::is_delta(footer)
}

/// Fails if Kudu does not use this encoding for the entries of a file that has no ordinals.
fn check_entries(footer: &Footer, kind: Purpose) -> Result<()> {
    if footer.value.is_none() {
        let e = format!("expected a value index of a {} file, found none", kind.name());
        return Err(Error::corrupt(e).at(footer.range.start).within("footer"));
    }
    let encoded = matches!(
        (kind, footer.encoding),
        (_, Encoding::Plain) | (Purpose::Index | Purpose::Bloom, Encoding::Prefix)
    );
    if encoded && !footer.nullable && footer.data_type.physical() == Physical::Binary {
        return Ok(());
    }
    let (data_type, encoding) = (footer.data_type, footer.encoding);
    let nulls = if footer.nullable { " with nulls" } else { "" };
    Err(Error::unsupported(format!("{encoding} of {data_type}{nulls} in a CFile without a positional index")))
}

/// An open CFile.
#[derive(Debug)]
pub struct CFile {
    source: Arc<dyn ReadAt>,
    footer: Footer,
    format: BlockFormat,
    dictionary: OnceLock<Arc<Dictionary>>,
    located: OnceLock<Arc<Located>>,
}

/// All data blocks in the positional index, and the ordinals for which it lists no block.
#[derive(Debug, Default)]
pub(crate) struct Located {
    pub(crate) blocks: Vec<DataBlock>,
    pub(crate) lost: Vec<Loss>,
}

impl CFile {
    /// Opens a file: reads the header and the footer.
    pub fn open(source: Arc<dyn ReadAt>, verify: bool, limits: Limits) -> Result<Self> {
        let footer = Footer::read(source.as_ref(), verify, &limits)?;
        let (version, compression) = (footer.version, footer.compression);
        let format = BlockFormat { version, compression, checksums: footer.has_checksums(), verify, limits };
        Ok(Self { source, footer, format, dictionary: OnceLock::new(), located: OnceLock::new() })
    }

    /// The contents of footer and header.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// How the file's blocks are stored.
    pub fn format(&self) -> &BlockFormat {
        &self.format
    }

    /// The source of the file's bytes.
    pub fn source(&self) -> &Arc<dyn ReadAt> {
        &self.source
    }

    /// The offset before which all blocks must end.
    pub fn blocks_end(&self) -> u64 {
        self.footer.range.start
    }

    /// The result of `find`, which is called only on first use.
    pub(crate) fn located(&self, find: impl FnOnce() -> Result<Located>) -> Result<Arc<Located>> {
        if let Some(located) = self.located.get() {
            return Ok(located.clone());
        }
        let located = Arc::new(find()?);
        Ok(self.located.get_or_init(|| located).clone())
    }

    /// The dictionary, read on first use.
    pub fn dictionary(&self) -> Result<Option<Arc<Dictionary>>> {
        if self.footer.encoding != Encoding::Dict {
            return Ok(None);
        }
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(Some(dictionary.clone()));
        }
        // A file without values may have no dictionary.
        let Some(pointer) = self.footer.dictionary else { return Ok(None) };
        let read = || -> Result<Dictionary> {
            self.format.limits.block("dictionary", pointer.size.into())?;
            let stored = self.source.read(pointer.range())?;
            let bytes = self.format.open_owned(&stored, pointer.offset)?;
            Dictionary::parse(bytes, pointer.offset, self.footer.data_type)
        };
        let dictionary = Arc::new(read().within(|| "dictionary")?);
        Ok(Some(self.dictionary.get_or_init(|| dictionary).clone()))
    }
}
