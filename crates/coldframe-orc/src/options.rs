//! What the user may say of a file when it is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::TimeUnit;
use coldframe_core::options::{flag, text};
use coldframe_core::{Error, KeySource, Limits, OpenOptions, OptionDoc, Result, SchemaSpec};

/// The options of `open`.
pub(crate) const OPEN_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "timestamp_unit",
        help: "\"ns\" (default) or \"us\": unit of timestamps; us holds years outside 1677..2262, cutting digits off",
    },
    OptionDoc {
        name: "dictionary",
        help: "true hands out string columns as Arrow dictionaries; the words of a stripe with a dictionary are not repeated",
    },
    OptionDoc {
        name: "masked",
        help: "\"read\" (default) gives encrypted columns without a key as their mask left them; \"error\" refuses them",
    },
    OptionDoc {
        name: "schema_of",
        help: "\"file\" (default): `schema` names columns of this file. \"table\": it is the table's; of it the file takes binary for its text and digits for decimals that state none, by name, or by position where its columns are called _col0, _col1 ..",
    },
    OptionDoc {
        name: "recover",
        help: "true finds the stripes of a file without its tail; needs `schema` or `schema_from`. Where nothing is left of the tail that proves how many stripes there were, `on_error` must be skip or null",
    },
    OptionDoc {
        name: "schema_from",
        help: "with `recover`: the name of the whole file beside it whose types, codec and writer the file has",
    },
];

/// What to do about columns whose key is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Masked {
    /// Read what the mask left.
    #[default]
    Read,
    /// Refuse the scan.
    Refuse,
}

/// Whose columns a declared schema has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Declares {
    /// The file's: what it does not have, or has otherwise, is a mistake.
    #[default]
    File,
    /// Those of its table, which may have changed since the file was written.
    Table,
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
    /// From what the user said.
    pub fn new(options: &OpenOptions) -> Result<Self> {
        let extra = &options.extra;
        let timestamp_unit = match text(extra, "timestamp_unit")? {
            None | Some("ns") => TimeUnit::Nanosecond,
            Some("us") => TimeUnit::Microsecond,
            Some(other) => return Err(unexpected("timestamp_unit", "\"ns\" or \"us\"", other)),
        };
        let masked = match text(extra, "masked")? {
            None | Some("read") => Masked::Read,
            Some("error") => Masked::Refuse,
            Some(other) => return Err(unexpected("masked", "\"read\" or \"error\"", other)),
        };
        let declares = match text(extra, "schema_of")? {
            None | Some("file") => Declares::File,
            Some("table") => Declares::Table,
            Some(other) => return Err(unexpected("schema_of", "\"file\" or \"table\"", other)),
        };
        let recover = flag(extra, "recover")?;
        Ok(Self {
            timestamp_unit,
            dictionary: flag(extra, "dictionary")?,
            masked,
            recover,
            declared: options.schema.clone(),
            declares,
            keys: Keys { given: options.keys.clone(), source: options.key_source.clone() },
            limits: options.limits,
        })
    }
}

fn unexpected(name: &str, expected: &str, found: &str) -> Error {
    Error::invalid(format!("option `{name}`: expected {expected}, found \"{found}\""))
}
