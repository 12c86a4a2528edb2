//! What the user may say of a file when it is opened.

use std::sync::Arc;

use arrow_schema::TimeUnit;
use coldframe_core::options::{flag, integer, text};
use coldframe_core::{Error, Limits, OpenOptions, OptionDoc, Result};

use crate::acid::write_ids::WriteIds;
use crate::encryption::{Keys, Masked};

/// More do not help.
const MOST_THREADS: usize = 256;

/// The options of `open`.
pub const OPEN_OPTIONS: &[OptionDoc] = &[
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
        name: "threads",
        help: "how many threads may be at work on columns, those of other stripes counted; default all processors, 1 for none but the caller's",
    },
    OptionDoc {
        name: "acid",
        help: "true opens the directory of a transactional Hive table as its live rows",
    },
    OptionDoc {
        name: "acid_valid_write_ids",
        help: "with `acid`: which writes count, as Hive's ValidReaderWriteIdList has it: \
               \"table:highest:least open:open,..:aborted,..\"; default all",
    },
    OptionDoc {
        name: "recover",
        help: "true finds the stripes of a file without its tail; needs a schema, or a whole file of the table beside it",
    },
    OptionDoc {
        name: "schema_from",
        help: "with `recover`: the name of the whole file beside it whose types, codec and writer the file has",
    },
];

/// The options, read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Unit of timestamps.
    pub timestamp_unit: TimeUnit,
    /// Whether strings come as dictionaries.
    pub dictionary: bool,
    /// What becomes of encrypted columns without a key.
    pub masked: Masked,
    /// Whether a directory is a transactional table.
    pub acid: bool,
    /// Whether a file without a tail is searched for stripes.
    pub recover: bool,
    /// How many threads decode.
    pub threads: usize,
    /// Keys by name.
    pub keys: Keys,
    /// Which writes of a transactional table count; all without.
    pub write_ids: Option<Arc<WriteIds>>,
    /// Bounds.
    pub limits: Limits,
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
        Ok(Self {
            timestamp_unit,
            dictionary: flag(extra, "dictionary")?,
            masked,
            acid: flag(extra, "acid")?,
            recover: flag(extra, "recover")?,
            threads: match integer::<usize>(extra, "threads")? {
                None | Some(0) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
                Some(threads) => threads.min(MOST_THREADS),
            },
            keys: Keys { given: options.keys.clone(), source: options.key_source.clone() },
            write_ids: match text(extra, "acid_valid_write_ids")? {
                None => None,
                Some(list) => Some(Arc::new(list.parse()?)),
            },
            limits: options.limits,
        })
    }
}

fn unexpected(name: &str, expected: &str, found: &str) -> Error {
    Error::invalid(format!("option `{name}`: expected {expected}, found \"{found}\""))
}
