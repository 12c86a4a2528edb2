//! What the user says when a root directory is opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_cast::parse::string_to_timestamp_nanos;
use coldframe_core::options::{boolean, integer, text, unexpected};
use coldframe_core::{Error, OpenOptions, OptionDoc, Result, Value};
use coldframe_hfile::Options as FileOptions;

use crate::columns::wide::{self, WideTable};
use crate::layout::names::TableName;

/// The options of `open`.
pub(crate) const OPEN_OPTIONS: &[OptionDoc] = &[
    OptionDoc { name: "table", help: "\"namespace:table\"; needed where there are several" },
    OptionDoc { name: "snapshot", help: "the name of a snapshot: the table as it was when that was taken" },
    OptionDoc {
        name: "view",
        help: "\"latest\" (default): the newest visible version of each column, as a client's scan shows it; \
               \"versions\": all visible ones; \"raw\": all cells and delete markers that are stored; \
               \"pivot\": a row for each row key, the columns of `columns` and a map of the others",
    },
    OptionDoc {
        name: "columns",
        help: "{\"family:qualifier\": type}: the columns of view=\"pivot\"; types are HBase's Bytes: binary, string, \
               long, int, short, float, double, boolean, decimal (as text)",
    },
    OptionDoc {
        name: "phoenix",
        help: "of a table that Phoenix wrote its CREATE TABLE statement: the columns of view=\"pivot\", by Phoenix's \
               types, with those of the row key",
    },
    OptionDoc { name: "families", help: "the only families to read; default all" },
    OptionDoc {
        name: "rest",
        help: "with view=\"pivot\": whether the column `rest` has all other columns; default true, with \
               `phoenix` false",
    },
    OptionDoc { name: "versions", help: "with view=\"versions\" or \"raw\": most versions of a column" },
    OptionDoc { name: "time_range", help: "(from, to): only cells of these timestamps, `to` excluded" },
    OptionDoc {
        name: "as_of",
        help: "the time by which cells have expired or not, in milliseconds or as text (UTC); default now",
    },
    OptionDoc {
        name: "wal",
        help: "whether edits that only the write-ahead logs hold count; default true. A snapshot has none",
    },
    OptionDoc {
        name: "block_cache_bytes",
        help: "decoded blocks of a file that look-ups keep; default 16 MiB",
    },
];

/// Bytes of decoded blocks that look-ups keep of each file: tables have many.
const CACHE_BYTES: u64 = 16 << 20;

/// Which cells a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The newest visible version of each column.
    Latest,
    /// All visible versions, or so many.
    Versions,
    /// All that is stored.
    Raw,
    /// The newest visible versions, a row for each row key.
    Pivot,
}

/// The values of the options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) table: Option<TableName>,
    pub(crate) snapshot: Option<String>,
    pub(crate) view: View,
    /// Most versions of a column.
    pub(crate) versions: u32,
    /// Timestamps from, and up to but not at.
    pub(crate) time_range: Option<(i64, i64)>,
    /// The clock, in milliseconds since 1970.
    pub(crate) now: i64,
    /// Whether write-ahead logs are read.
    pub(crate) wal: bool,
    /// The wide table of `pivot`.
    pub(crate) wide: Arc<WideTable>,
    /// The only families that are read.
    pub(crate) families: Option<Vec<String>>,
    /// How HFiles are read.
    pub(crate) files: FileOptions,
}

impl Options {
    pub(crate) fn new(options: &OpenOptions) -> Result<Self> {
        let extra = &options.extra;
        if options.schema.is_some() {
            return Err(Error::unsupported("a schema for HBase, whose tables have none"));
        }
        let view = match text(extra, "view")? {
            None if text(extra, "phoenix")?.is_some() => View::Pivot,
            None | Some("latest") => View::Latest,
            Some("versions") => View::Versions,
            Some("raw") => View::Raw,
            Some("pivot") => View::Pivot,
            Some(other) => {
                return Err(unexpected("view", "\"latest\", \"versions\", \"raw\" or \"pivot\"", other));
            }
        };
        let versions: Option<u32> = integer(extra, "versions")?;
        let versions = match (view, versions) {
            (View::Latest | View::Pivot, None | Some(1)) => 1,
            (View::Latest | View::Pivot, Some(_)) => {
                return Err(Error::invalid("option `versions`: it is for view=\"versions\" and \"raw\""));
            }
            (_, given) => given.unwrap_or(u32::MAX),
        };
        let files = FileOptions {
            cache_bytes: integer(extra, "block_cache_bytes")?.unwrap_or(CACHE_BYTES),
            verify: !options.skip_checksums,
            keys: options.keys.clone(),
            limits: options.limits,
            ..FileOptions::default()
        };
        Ok(Self {
            table: text(extra, "table")?.map(TableName::parse),
            snapshot: text(extra, "snapshot")?.map(str::to_owned),
            view,
            versions,
            time_range: time_range(extra)?,
            now: time(extra, "as_of")?.unwrap_or_else(now),
            wal: boolean(extra, "wal")?.unwrap_or(true),
            wide: Arc::new(wide_table(extra, view)?),
            families: families(extra)?,
            files,
        })
    }
}

/// What `columns`, `phoenix` and `rest` say.
fn wide_table(extra: &BTreeMap<String, Value>, view: View) -> Result<WideTable> {
    let (phoenix, rest) = (text(extra, "phoenix")?, boolean(extra, "rest")?);
    let columns = extra.get("columns").filter(|given| !matches!(given, Value::Null));
    if view != View::Pivot && (columns.is_some() || phoenix.is_some()) {
        let name = if columns.is_some() { "columns" } else { "phoenix" };
        return Err(Error::invalid(format!("option `{name}`: it is for view=\"pivot\"")));
    }
    match (phoenix, columns) {
        (Some(_), Some(_)) => Err(Error::invalid("options `columns` and `phoenix`: expected one of them")),
        (Some(statement), None) => WideTable::of_phoenix(statement, rest.unwrap_or(false)),
        (None, columns) => {
            let columns = columns.map(wide::columns).transpose()?.unwrap_or_default();
            Ok(WideTable { columns, phoenix: None, rest: rest.unwrap_or(true) })
        }
    }
}

fn families(extra: &BTreeMap<String, Value>) -> Result<Option<Vec<String>>> {
    let wrong = |found: &Value| unexpected("families", "a list of names", found);
    match extra.get("families") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Str(names)) => Ok(Some(names.split(',').map(|name| name.trim().to_owned()).collect())),
        Some(Value::List(names)) => {
            let name = |name: &Value| match name {
                Value::Str(name) => Ok(name.clone()),
                other => Err(wrong(other)),
            };
            names.iter().map(name).collect::<Result<_>>().map(Some)
        }
        Some(other) => Err(wrong(other)),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since 1970, as such or as a date and time.
fn milliseconds(name: &str, value: &Value) -> Result<i64> {
    let wrong = || unexpected(name, "milliseconds since 1970, or a date and time", value);
    match value {
        Value::Int(n) => Ok(*n),
        Value::Str(s) => match s.parse() {
            Ok(n) => Ok(n),
            Err(_) => string_to_timestamp_nanos(s).map(|n| n.div_euclid(1_000_000)).map_err(|_| wrong()),
        },
        _ => Err(wrong()),
    }
}

fn time(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<i64>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => milliseconds(name, value).map(Some),
    }
}

fn time_range(extra: &BTreeMap<String, Value>) -> Result<Option<(i64, i64)>> {
    let name = "time_range";
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::List(ends)) => match ends.as_slice() {
            [from, to] => Ok(Some((milliseconds(name, from)?, milliseconds(name, to)?))),
            _ => Err(unexpected(name, "two times", ends)),
        },
        Some(other) => Err(unexpected(name, "two times", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, Value)]) -> Result<Options> {
        let extra = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Options::new(&OpenOptions { extra, ..OpenOptions::default() })
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
