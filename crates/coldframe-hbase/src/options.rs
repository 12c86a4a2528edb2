//! The options for opening a root directory.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_cast::parse::string_to_timestamp_nanos;
use coldframe_core::options::{Kind, Options as _, Time, unexpected};
use coldframe_core::{Error, Result};
use coldframe_hfile::Options as FileOptions;

use crate::columns::wide::{self, WideTable};
use crate::layout::names::TableName;

coldframe_core::choices! {
    /// Which cells a table shows.
    #[non_exhaustive]
    pub enum View {
        /// The newest visible version of each column.
        Latest = "latest",
        /// All visible versions, or a number of them.
        Versions = "versions",
        /// All that is stored, including delete markers.
        Raw = "raw",
        /// The newest visible versions, as one row for each row key.
        Pivot = "pivot",
    }
}

coldframe_core::options! {
    /// How a table of a root directory is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// the table as "namespace:table"; required if there are several
        table: Option<String>;
        /// name of a snapshot: reads the table as the snapshot has it
        snapshot: Option<String>;
        /// "latest" (default): the newest visible version of each column, as a client scan returns it; "versions": all
        /// visible versions; "raw": all stored cells and delete markers; "pivot": one row for each row key, with the
        /// columns of `columns` and a map of the others
        view: Option<View>;
        /// {"family:qualifier": type}: the columns of view="pivot". Types, as HBase's `Bytes` encodes them: binary,
        /// string, long, int, short, float, double, boolean, decimal (returned as text)
        columns: Vec<(String, String)>;
        /// CREATE TABLE statement of a table that Phoenix wrote: gives view="pivot" its columns, those of the row key
        /// included, with Phoenix's types
        phoenix: Option<String>;
        /// column families to read; default: all
        families: Option<Vec<String>>;
        /// for view="pivot": whether to add a column `rest`, a map of all other columns; default: true, but false with
        /// `phoenix`
        rest: Option<bool>;
        /// for view="versions" or "raw": most versions to return of a column
        versions: Option<u32>;
        /// (from, to): only cells with a timestamp in this range; `to` is excluded
        time_range: Option<(Time, Time)>;
        /// time at which the expiry of cells is judged, in milliseconds or as text (UTC); default: now
        as_of: Option<Time>;
        /// true returns families and qualifiers as Arrow dictionaries; not for view="pivot", which has none
        dictionary: bool;
        /// whether to read edits that only the write-ahead logs hold; a snapshot has none
        wal: bool = true;
        /// true treats as damage what seems to be missing: write-ahead logs, a descriptor, regions that hbase:meta does not
        /// list. Default: a warning
        complete: bool;
        /// size of the cache of decoded blocks for look-ups, for each file of the table
        block_cache_bytes: u64 = 16 << 20, as Kind::SIZE;
    }
}

/// The values of the options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) table: Option<TableName>,
    pub(crate) snapshot: Option<String>,
    pub(crate) view: View,
    /// The maximum number of versions of a column.
    pub(crate) versions: u32,
    /// Whether families and qualifiers are returned as dictionaries.
    pub(crate) dictionary: bool,
    /// The range of timestamps, whose end is excluded.
    pub(crate) time_range: Option<(i64, i64)>,
    /// The time at which the expiry of cells is judged, in milliseconds since 1970.
    pub(crate) now: i64,
    /// Whether write-ahead logs are read.
    pub(crate) wal: bool,
    /// Whether missing parts are damage.
    pub(crate) complete: bool,
    /// The wide table of `pivot`.
    pub(crate) wide: Arc<WideTable>,
    /// The families to read; `None` means all.
    pub(crate) families: Option<Vec<String>>,
    /// How HFiles are read.
    pub(crate) files: FileOptions,
}

impl Options {
    pub(crate) fn new(options: &coldframe_core::OpenOptions) -> Result<Self> {
        let given = OpenOptions::read("hbase", &options.extra)?;
        if options.schema.is_some() {
            return Err(Error::unsupported("a schema for HBase, whose tables have none"));
        }
        let of_phoenix = if given.phoenix.is_some() { View::Pivot } else { View::Latest };
        let view = given.view.unwrap_or(of_phoenix);
        let versions = match (view, given.versions) {
            (View::Latest | View::Pivot, None | Some(1)) => 1,
            (View::Latest | View::Pivot, Some(_)) => {
                return Err(Error::invalid(
                    "option `versions`: it is only for view=\"versions\" and \"raw\"",
                ));
            }
            (_, given) => given.unwrap_or(u32::MAX),
        };
        if view == View::Pivot && given.dictionary {
            return Err(Error::invalid("option `dictionary`: it is not for view=\"pivot\""));
        }
        let files = FileOptions {
            cache_bytes: given.block_cache_bytes,
            verify: !options.skip_checksums,
            keys: options.keys.clone(),
            limits: options.limits,
            ..FileOptions::default()
        };
        let wide = Arc::new(wide_table(&given, view)?);
        let ends = |(from, to): &(Time, Time)| -> Result<_> {
            Ok((milliseconds("time_range", from)?, milliseconds("time_range", to)?))
        };
        Ok(Self {
            table: given.table.as_deref().map(TableName::parse),
            snapshot: given.snapshot,
            view,
            versions,
            dictionary: given.dictionary,
            time_range: given.time_range.as_ref().map(ends).transpose()?,
            now: given.as_of.map_or_else(|| Ok(now()), |time| milliseconds("as_of", &time))?,
            wal: given.wal,
            complete: given.complete,
            wide,
            families: given.families,
            files,
        })
    }
}

/// The wide table of the options `columns`, `phoenix` and `rest`.
fn wide_table(given: &OpenOptions, view: View) -> Result<WideTable> {
    let OpenOptions { columns, phoenix, rest, .. } = given;
    if view != View::Pivot && (!columns.is_empty() || phoenix.is_some()) {
        let name = if columns.is_empty() { "phoenix" } else { "columns" };
        return Err(Error::invalid(format!("option `{name}`: it is only for view=\"pivot\"")));
    }
    match phoenix {
        Some(_) if !columns.is_empty() => {
            Err(Error::invalid("options `columns` and `phoenix`: expected one of them"))
        }
        Some(statement) => WideTable::of_phoenix(statement, rest.unwrap_or(false)),
        None => Ok(WideTable { columns: wide::columns(columns)?, phoenix: None, rest: rest.unwrap_or(true) }),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The value of an option in milliseconds since 1970. The option is given as such a number, or as a date and
/// time.
fn milliseconds(name: &str, of: &Time) -> Result<i64> {
    let wrong = || unexpected(name, "milliseconds since 1970, or a date and time", of);
    match of {
        Time::Number(number) => i64::try_from(*number).map_err(|_| wrong()),
        Time::Text(text) => match text.parse() {
            Ok(number) => Ok(number),
            Err(_) => string_to_timestamp_nanos(text).map(|n| n.div_euclid(1_000_000)).map_err(|_| wrong()),
        },
    }
}

#[cfg(test)]
mod tests {
    use coldframe_core::Value;

    use super::*;

    fn options(pairs: &[(&str, Value)]) -> Result<Options> {
        let extra = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Options::new(&coldframe_core::OpenOptions { extra, ..Default::default() })
    }

    #[test]
    fn times_are_numbers_or_text() {
        let range = Value::List(vec![Value::Int(5), Value::Str("1970-01-01T00:00:01Z".to_owned())]);
        let read = options(&[("time_range", range), ("as_of", Value::Str("17".to_owned()))]).unwrap();
        assert_eq!((read.time_range, read.now, read.wal), (Some((5, 1000)), 17, true));
        assert!(options(&[("time_range", Value::Int(5))]).is_err());
        assert!(options(&[("as_of", Value::Str("soon".to_owned()))]).is_err());
    }

    #[test]
    fn the_latest_view_has_one_version() {
        assert_eq!(options(&[]).unwrap().versions, 1);
        assert!(options(&[("versions", Value::Int(2))]).is_err());
        let view = ("view", Value::Str("versions".to_owned()));
        assert_eq!(options(&[view.clone(), ("versions", Value::Int(2))]).unwrap().versions, 2);
        assert_eq!(options(&[view]).unwrap().versions, u32::MAX);
    }
}
