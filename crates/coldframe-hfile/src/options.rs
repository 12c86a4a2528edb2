//! The options of opening a file.

use std::collections::BTreeMap;

use coldframe_core::options::{Kind, Options as _};
use coldframe_core::{Error, Limits, Result};

coldframe_core::choices! {
    /// The columns of a file.
    #[non_exhaustive]
    pub enum View {
        /// Row, family, qualifier, timestamp, type, value, tags, sequence id.
        Cells = "cells",
        /// Key and value.
        KeyValue = "kv",
    }
}

coldframe_core::choices! {
    /// How the column `type` shows cell types.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum CellTypes {
        /// As numbers.
        #[default]
        Code = "code",
        /// As names.
        Name = "name",
    }
}

coldframe_core::options! {
    /// How an HFile is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// "cells" (HBase) or "kv" (Hudi); default: what the file states
        view: Option<View>;
        /// how the type of a cell is shown: its number or its name
        types: CellTypes;
        /// true returns the families and qualifiers of cells as Arrow dictionaries
        dictionary: bool;
        /// {"family:qualifier": type}: gives one row for each row key, with the latest visible value of each of these
        /// columns. Types, as HBase's `Bytes` encodes them: binary, string, long, int, short, float, double, boolean
        pivot: Vec<(String, String)>;
        /// size of the cache of decoded blocks for look-ups
        block_cache_bytes: u64 = 256 << 20, as Kind::SIZE;
    }
}

/// The parsed options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which columns the file has; `None` means that the file decides.
    pub view: Option<View>,
    /// Whether cell types are shown as names.
    pub type_names: bool,
    /// Whether families and qualifiers are dictionaries.
    pub dictionary: bool,
    /// For a wide table: its columns and the types of their values.
    pub pivot: Vec<(String, String)>,
    /// Bytes of decoded blocks to cache.
    pub cache_bytes: u64,
    /// Whether checksums are verified.
    pub verify: bool,
    /// Master keys by alias.
    pub keys: BTreeMap<String, Vec<u8>>,
    /// The limits on memory.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            view: None,
            type_names: false,
            dictionary: false,
            pivot: Vec::new(),
            cache_bytes: OpenOptions::default().block_cache_bytes,
            verify: true,
            keys: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

impl Options {
    /// Parses the user's options.
    pub fn new(options: &coldframe_core::OpenOptions) -> Result<Self> {
        let given = OpenOptions::from_given_or(&options.extra, OpenOptions::default())?;
        if options.schema.is_some() {
            return Err(Error::unsupported(
                "a schema for HFile, whose columns are fixed; `pivot` gives values their types",
            ));
        }
        Ok(Self {
            view: given.view,
            type_names: given.types == CellTypes::Name,
            dictionary: given.dictionary,
            pivot: given.pivot,
            cache_bytes: given.block_cache_bytes,
            verify: !options.skip_checksums,
            keys: options.keys.clone(),
            limits: options.limits,
        })
    }
}
