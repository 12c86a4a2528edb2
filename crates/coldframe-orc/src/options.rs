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
        /// The same of a table of Hive: the file takes the names, and its types may be narrower, but not others.
        Hive = "hive",
    }
}

coldframe_core::options! {
    /// How an ORC file is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// unit of timestamps; "us" covers years outside 1677 to 2262 and drops nanoseconds
        timestamp_unit: TimestampUnit;
        /// true returns string columns as Arrow dictionaries
        dictionary: bool;
        /// encrypted columns without a key: "read" returns their masked values, "error" refuses them
        masked: Masked;
        /// whose columns `schema` describes. "file": this file's. "table": the table's; the file then takes from it
        /// binary for string and the precision of old decimals, by name, or by position if its columns are called
        /// _col0, _col1 .. "hive": the table's, matched in the same way, also within structs; the file then takes the
        /// names, and is refused if its types are neither the table's nor narrower ones
        schema_of: Declares;
        /// true finds the stripes of a file that has lost its tail; requires `schema` or `schema_from`. If nothing
        /// proves how many stripes there were, `on_error` must be "skip" or "null"
        recover: bool;
        /// name of a further column: the number of each row in the file, from 0
        row_numbers: Option<String>;
        /// for `recover`: name of an intact file in the same directory with the same types, codec and writer
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
    /// The key with this name, or `None` if there is none or access is denied.
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
    /// The name of a further column with the numbers of rows.
    pub(crate) row_numbers: Option<String>,
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
            row_numbers: given.row_numbers.clone(),
            declared: options.schema.clone(),
            declares: given.schema_of,
            keys: Keys { given: options.keys.clone(), source: options.key_source.clone() },
            limits: options.limits,
        }
    }
}
