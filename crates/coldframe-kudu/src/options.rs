//! What the user says when a data directory is opened.

use std::collections::BTreeMap;

use arrow_cast::parse::string_to_timestamp_nanos;
use coldframe_core::{Error, OptionDoc, Result, Value, options};

/// The options of a data directory.
pub(crate) const OPEN_OPTIONS: &[OptionDoc] = &[
    OptionDoc { name: "table", help: "the table's name or id; needed where there are several" },
    OptionDoc { name: "tablet", help: "the id of the one tablet to read" },
    OptionDoc {
        name: "complete",
        help: "true demands a tablet for each hash bucket; false says that other servers are known to hold some: without \
               either, those that they may hold are a warning",
    },
    OptionDoc {
        name: "wal",
        help: "whether rows count that only the write-ahead log holds: those that the server had in memory; default true",
    },
    OptionDoc {
        name: "snapshot",
        help: "the table as it was before this time: a datetime (UTC if it has no zone), ISO 8601 text, or a raw hybrid time; default latest",
    },
];

/// The values of the options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) table: Option<String>,
    pub(crate) tablet: Option<String>,
    /// Operations before this hybrid time count.
    pub(crate) snapshot: Option<u64>,
    /// Whether partitions of which the directory has no tablet are damage; `None` if they are to be told.
    pub(crate) complete: Option<bool>,
    /// Whether the write-ahead log is read.
    pub(crate) wal: bool,
}

impl Options {
    pub(crate) fn new(extra: &BTreeMap<String, Value>) -> Result<Self> {
        let text = |name| -> Result<Option<String>> { Ok(options::text(extra, name)?.map(str::to_owned)) };
        Ok(Self {
            table: text("table")?,
            tablet: text("tablet")?,
            snapshot: snapshot(extra.get("snapshot"))?,
            complete: options::boolean(extra, "complete")?,
            wal: options::boolean(extra, "wal")?.unwrap_or(true),
        })
    }
}

/// A hybrid time: microseconds since 1970, and 12 bits of a counter.
fn snapshot(value: Option<&Value>) -> Result<Option<u64>> {
    let bad = |found: &dyn std::fmt::Debug| {
        Error::invalid(format!(
            "option `snapshot`: expected a hybrid time or a date and time, found {found:?}"
        ))
    };
    let time = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Int(n)) => u64::try_from(*n).map_err(|_| bad(n))?,
        Some(Value::UInt(n)) => *n,
        Some(Value::Str(s)) if !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) => {
            s.parse().map_err(|_| bad(s))?
        }
        Some(Value::Str(s)) => {
            let nanos = string_to_timestamp_nanos(s).map_err(|_| bad(s))?;
            u64::try_from(nanos / 1000)
                .ok()
                .and_then(|micros| micros.checked_mul(1 << 12))
                .ok_or_else(|| bad(s))?
        }
        Some(other) => return Err(bad(other)),
    };
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_snapshot() {
        let of = |v: Value| snapshot(Some(&v)).unwrap().unwrap();
        assert_eq!(of(Value::Int(7_353_335_805_851_582_465)), 7_353_335_805_851_582_465);
        assert_eq!(of(Value::Str("7353335805851582465".into())), 7_353_335_805_851_582_465);
        assert_eq!(of(Value::Str("1970-01-01T00:00:01.5Z".into())), 1_500_000 << 12);
        assert_eq!(of(Value::Str("1970-01-01T01:00:01+01:00".into())), 1_000_000 << 12);
        assert_eq!(of(Value::Str("1970-01-01 00:00:01".into())), 1_000_000 << 12);
        assert_eq!(snapshot(None).unwrap(), None);
        for bad in
            [Value::Int(-1), Value::Str("yesterday".into()), Value::Bool(true), Value::Str(String::new())]
        {
            assert!(snapshot(Some(&bad)).is_err(), "{bad:?}");
        }
    }
}
