//! The options for opening a data directory.

use std::collections::BTreeMap;

use arrow_cast::parse::string_to_timestamp_nanos;
use coldframe_core::options::{Options as _, Time, unexpected};
use coldframe_core::{Result, Value};

coldframe_core::options! {
    /// How a data directory is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// name or id of the table; required if there are several
        table: Option<String>;
        /// id of the only tablet to read
        tablet: Option<String>;
        /// true requires a tablet for each hash bucket, and all logs and super blocks; false states that other servers
        /// hold the missing tablets, and have no newer rows. Default: what is missing causes a warning
        complete: Option<bool>;
        /// whether to read rows that only the write-ahead log holds: those that the server had in memory
        wal: bool = true;
        /// time before which changes count: a datetime (UTC if it has no zone), ISO 8601 text, or a raw hybrid time.
        /// Default: all changes
        snapshot: Option<Time>;
    }
}

/// The values of the options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) table: Option<String>,
    pub(crate) tablet: Option<String>,
    /// Only operations before this hybrid time are applied.
    pub(crate) snapshot: Option<u64>,
    /// Whether partitions without a tablet in the directory are damage. `None` means that these partitions
    /// cause a warning.
    pub(crate) complete: Option<bool>,
    /// Whether the write-ahead log is read.
    pub(crate) wal: bool,
}

impl Options {
    pub(crate) fn new(extra: &BTreeMap<String, Value>) -> Result<Self> {
        let OpenOptions { table, tablet, complete, wal, snapshot } = OpenOptions::read("kudu", extra)?;
        let snapshot = snapshot.as_ref().map(hybrid_time).transpose()?;
        Ok(Self { table, tablet, snapshot, complete, wal })
    }
}

/// Converts a time to a hybrid time: microseconds since 1970, followed by 12 bits of a counter.
fn hybrid_time(of: &Time) -> Result<u64> {
    let bad = || unexpected("snapshot", "a hybrid time or a date and time", of);
    match of {
        Time::Number(number) => u64::try_from(*number).map_err(|_| bad()),
        Time::Text(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| bad())
        }
        Time::Text(text) => {
            let nanos = string_to_timestamp_nanos(text).map_err(|_| bad())?;
            let micros = u64::try_from(nanos / 1000).ok();
            micros.and_then(|micros| micros.checked_mul(1 << 12)).ok_or_else(bad)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_may_be_given_in_several_forms() {
        let read = |v: Value| Options::new(&BTreeMap::from([("snapshot".to_owned(), v)])).map(|o| o.snapshot);
        let of = |v: Value| read(v).unwrap().unwrap();
        assert_eq!(of(Value::Int(7_353_335_805_851_582_465)), 7_353_335_805_851_582_465);
        assert_eq!(of(Value::Str("7353335805851582465".into())), 7_353_335_805_851_582_465);
        assert_eq!(of(Value::Str("1970-01-01T00:00:01.5Z".into())), 1_500_000 << 12);
        assert_eq!(of(Value::Str("1970-01-01T01:00:01+01:00".into())), 1_000_000 << 12);
        assert_eq!(of(Value::Str("1970-01-01 00:00:01".into())), 1_000_000 << 12);
        assert_eq!(read(Value::Null).unwrap(), None);
        for bad in
            [Value::Int(-1), Value::Str("yesterday".into()), Value::Bool(true), Value::Str(String::new())]
        {
            assert!(read(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
