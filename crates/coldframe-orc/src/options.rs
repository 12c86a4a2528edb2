//! What the user may say of a file when it is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::TimeUnit;
use coldframe_core::options::TimestampUnit;
use coldframe_core::{KeySource, Limits, Result, SchemaSpec};

coldframe_core::choices! {
    /// What to do about columns whose key is missing.
    #[derive(Default)]
    pub enum Masked {
        /// Read what the mask left.
        #[default]
        Read = "read",
        /// Refuse the scan.
        Refuse = "error",
    }
}

coldframe_core::choices! {
    /// Whose columns a declared schema has.
    #[derive(Default)]
    pub enum Declares {
        /// The file's: what it does not have, or has otherwise, is a mistake.
        #[default]
        File = "file",
        /// Those of its table, which may have changed since the file was written.
        Table = "table",
    }
}

coldframe_core::options! {
    /// How an ORC file is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// unit of timestamps; us holds years outside 1677..2262, cutting digits off
        timestamp_unit: TimestampUnit;
        /// true hands out string columns as Arrow dictionaries; the words of a stripe with a dictionary are not repeated
        dictionary: bool;
        /// "read" gives encrypted columns without a key as their mask left them; "error" refuses them
        masked: Masked;
        /// "file": `schema` names columns of this file. "table": it is the table's; of it the file takes binary for its text and digits
        /// for decimals that state none, by name, or by position where its columns are called _col0, _col1 ..
        schema_of: Declares;
        /// true finds the stripes of a file without its tail; needs `schema` or `schema_from`. Where nothing is left of the tail that
        /// proves how many stripes there were, `on_error` must be skip or null
        recover: bool;
        /// with `recover`: the name of the whole file beside it whose types, codec and writer the file has
        schema_from: Option<String>;
    }
}

/// The user's keys by name: given ones, then those that somebody else has.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    /// Given ones.
    pub(crate) given: BTreeMap<String, Vec<u8>>,
    /// Who is asked for others.
    pub(crate) source: Option<Arc<dyn KeySource>>,
}

impl std::fmt::Debug for Keys {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// The key of a name, if there is one that may be had.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match (self.given.get(name), &self.source) {
            (Some(key), _) => Ok(Some(key.clone())),
            (None, Some(source)) => source.key(name),
            (None, None) => Ok(None),
        }
    }
}

/// The options, read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Unit of timestamps.
    pub(crate) timestamp_unit: TimeUnit,
    /// Whether strings come as dictionaries.
    pub(crate) dictionary: bool,
    /// What becomes of encrypted columns without a key.
    pub(crate) masked: Masked,
    /// Whether a file without a tail is searched for stripes.
    pub(crate) recover: bool,
    /// What is said of columns.
    pub(crate) declared: Option<SchemaSpec>,
    /// Whether that is said of the file's columns, or of its table's.
    pub(crate) declares: Declares,
    /// Keys by name.
    pub(crate) keys: Keys,
    /// Bounds.
    pub(crate) limits: Limits,
}

impl Options {
    /// From what the user said: `given`, and what every format may be told.
    pub fn new(given: &OpenOptions, options: &coldframe_core::OpenOptions) -> Self {
        Self {
            timestamp_unit: given.timestamp_unit.into(),
            dictionary: given.dictionary,
            masked: given.masked,
            recover: given.recover,
            declared: options.schema.clone(),
            declares: given.schema_of,
            keys: Keys { given: options.keys.clone(), source: options.key_source.clone() },
            limits: options.limits,
        }
    }
}
