//! Defines the user's options for opening a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::TimeUnit;
use coldframe_core::options::TimestampUnit;
use coldframe_core::types::hive::HiveVersion;
use coldframe_core::{KeySource, Limits, Result, SchemaSpec};

coldframe_core::choices! {
    /// What to do about columns whose key is missing.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Masked {
        /// Read the masked values.
        #[default]
        Read = "read",
        /// Refuse the scan.
        Refuse = "error",
    }
}

coldframe_core::choices! {
    /// What a declared schema describes.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Declares {
        /// The file's columns: a column that the file lacks or has with another type is a mistake.
        #[default]
        File = "file",
        /// The columns of its table, which may have changed since the file was written.
        Table = "table",
        /// The columns of its Hive table: the file takes the names, and its values are converted to the types.
        Hive = "hive",
        /// The same, but a file whose types are neither the table's nor narrower ones is refused.
        HiveExact = "hive_exact",
    }
}

coldframe_core::choices! {
    /// The calendar of days before 1582-10-15 in a file that does not state it.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Calendar {
        /// That of the writer's default: hybrid for Java's writer, proleptic for the others.
        #[default]
        Writer = "writer",
        /// Julian days, as in Hive up to 3.0 and Spark 2.
        Hybrid = "hybrid",
        /// Gregorian days, as in Hive 3.1.
        Proleptic = "proleptic",
    }
}

impl Calendar {
    /// Whether days before 1582-10-15 are Julian, if the user says so.
    pub(crate) fn hybrid(self) -> Option<bool> {
        match self {
            Self::Writer => None,
            Self::Hybrid => Some(true),
            Self::Proleptic => Some(false),
        }
    }
}

coldframe_core::options! {
    /// How an ORC file is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// unit of timestamps; "us" covers years outside 1677 to 2262 and drops nanoseconds
        timestamp_unit: TimestampUnit;
        /// a time zone: timestamps are then instants, as Spark's ORC reader gives them in a JVM with this zone.
        /// Without it, and with schema_of="hive", they are the writer's wall clock
        timestamps_in: Option<String>;
        /// true returns string columns as Arrow dictionaries
        dictionary: bool;
        /// calendar of days before 1582-10-15 in files that do not state it: "hybrid" (Hive up to 3.0, Spark 2),
        /// "proleptic" (Hive 3.1), or "writer", the default of the file's writer, which is hybrid for Java's
        calendar: Calendar;
        /// encrypted columns without a key: "read" returns their masked values, "error" refuses them
        masked: Masked;
        /// whose columns `schema` describes. "file": this file's. "table": the table's; the file then takes from it
        /// binary for string and the precision of old decimals, by name, or by position if its columns are called
        /// _col0, _col1 .. "hive": the table's, matched in the same way, also within structs; the file then takes the
        /// names, and its values are converted to the table's types as Hive's reader does. "hive_exact": the same without
        /// conversions: a file whose types are neither the table's nor narrower ones is refused
        schema_of: Declares;
        /// version of Hive whose lenient parsing, calendar and conversions apply
        hive_version: HiveVersion;
        /// true finds the stripes of a file that has lost its tail; requires `schema` or `schema_from`. If nothing
        /// proves how many stripes there were, `on_error` must be "skip" or "null"
        recover: bool;
        /// name of a further column: the number of each row in the file, from 0
        row_numbers: Option<String>;
        /// for `recover`: name of an intact file in the same directory with the same types, codec and writer
        schema_from: Option<String>;
    }
}

/// The user's keys by name: given keys first, then keys of a key source.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    /// Keys given with the options.
    pub(crate) given: BTreeMap<String, Vec<u8>>,
    /// Supplies keys that are not in `given`.
    pub(crate) source: Option<Arc<dyn KeySource>>,
}

impl std::fmt::Debug for Keys {
    /// The keys are not printed.
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

/// The options of an open file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Unit of timestamps.
    pub(crate) timestamp_unit: TimeUnit,
    /// The zone of the reader, in which timestamps are instants; without it, they are wall clocks.
    pub(crate) timestamps_in: Option<String>,
    /// Whether strings come as dictionaries.
    pub(crate) dictionary: bool,
    /// The calendar of a file that does not state it.
    pub(crate) calendar: Calendar,
    /// How encrypted columns without a key are treated.
    pub(crate) masked: Masked,
    /// Whether a file without a tail is searched for stripes.
    pub(crate) recover: bool,
    /// The name of an additional column with the row numbers.
    pub(crate) row_numbers: Option<String>,
    /// The declared schema.
    pub(crate) declared: Option<SchemaSpec>,
    /// Whether `declared` describes the file's columns or its table's.
    pub(crate) declares: Declares,
    /// Whether the values are converted to the types that `declared` has for a Hive table. Otherwise other types than
    /// narrower ones are an error.
    pub(crate) converts: bool,
    /// The version of Hive whose conversions apply.
    pub(crate) hive_version: HiveVersion,
    /// Keys by name.
    pub(crate) keys: Keys,
    /// Whether values are compared with the sums and counts that the file states of them.
    pub(crate) compares_statistics: bool,
    /// Bounds.
    pub(crate) limits: Limits,
}

impl Options {
    /// Collects ORC's own options (`given`) and those of all formats.
    pub fn new(given: &OpenOptions, options: &coldframe_core::OpenOptions) -> Self {
        Self {
            timestamp_unit: given.timestamp_unit.into(),
            // Hive's conversions are of wall clocks.
            timestamps_in: given.timestamps_in.clone().filter(|_| given.schema_of != Declares::Hive),
            dictionary: given.dictionary,
            calendar: given.calendar,
            masked: given.masked,
            recover: given.recover,
            row_numbers: given.row_numbers.clone(),
            declared: options.schema.clone(),
            declares: given.schema_of,
            converts: false,
            hive_version: given.hive_version,
            keys: Keys { given: options.keys.clone(), source: options.key_source.clone() },
            compares_statistics: !options.skip_checksums,
            limits: options.limits,
        }
    }
}
