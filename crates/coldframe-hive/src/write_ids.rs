//! Which writes of a transactional table are visible. A metastore knows this, but the files do not state it.
//!
//! ```text
//! default.sales:12:9:9,11:4,10      table : highest write : lowest open one : open ones : aborted ones
//! ```
//!
//! This is the format of Hive's `ValidReaderWriteIdList.writeToString`. Writes above the highest, open writes
//! and aborted writes are invisible.

use std::str::FromStr;

use coldframe_core::{Error, Result};

/// The visible writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteIds {
    highest: i64,
    /// The lowest open write; the largest integer if no write is open.
    least_open: i64,
    /// Open and aborted writes, sorted.
    exceptions: Vec<i64>,
    /// Open writes, a subset of `exceptions`.
    open: Vec<i64>,
}

impl FromStr for WriteIds {
    type Err = Error;

    fn from_str(list: &str) -> Result<Self> {
        let parts: Vec<&str> = list.trim().split(':').collect();
        let (&[_, highest, least_open], rest) = parts.split_first_chunk().ok_or_else(|| unexpected(list))?;
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| unexpected(list));
        if rest.len() > 2 {
            return Err(unexpected(list));
        }
        let listed = |at: usize| {
            let ids = rest.get(at).into_iter().flat_map(|ids| ids.split(','));
            ids.filter(|id| !id.trim().is_empty()).map(number).collect::<Result<Vec<_>>>()
        };
        let open = listed(0)?;
        let mut exceptions = [open.clone(), listed(1)?].concat();
        exceptions.sort_unstable();
        Ok(Self { highest: number(highest)?, least_open: number(least_open)?, exceptions, open })
    }
}

fn unexpected(list: &str) -> Error {
    Error::invalid(format!(
        "option `acid_valid_write_ids`: expected \"table:highest:least open:open,..:aborted,..\", found {list:?}"
    ))
}

impl WriteIds {
    /// Whether a write is visible. Rows from before the table was transactional have write 0.
    pub(crate) fn has(&self, write: i64) -> bool {
        write <= self.highest && self.exceptions.binary_search(&write).is_err()
    }

    /// Whether a write is later than the last write that the list covers.
    pub(crate) fn is_later(&self, write: i64) -> bool {
        write > self.highest
    }

    /// Whether any write from `least` to `most` is open.
    pub(crate) fn has_open(&self, least: i64, most: i64) -> bool {
        self.open.iter().any(|id| (least..=most).contains(id))
    }

    /// Whether any write from `least` to `most` is visible.
    pub(crate) fn has_any(&self, least: i64, most: i64) -> bool {
        let most = most.min(self.highest);
        let Some(count) = most.checked_sub(least).filter(|n| *n >= 0).and_then(|n| n.checked_add(1)) else {
            return least <= most;
        };
        let from = self.exceptions.partition_point(|id| *id < least);
        let mut inside: Vec<i64> =
            self.exceptions.iter().skip(from).take_while(|id| **id <= most).copied().collect();
        inside.dedup();
        i64::try_from(inside.len()).is_ok_and(|n| n < count)
    }

    /// Whether a base of all writes up to `write` may be read. A base up to the lowest open write may always
    /// be read. Beyond that write, a base from a compaction contains open writes and may not be read; a base
    /// from an overwrite may be read if its write is visible. Hive: `AcidUtils.isValidBase`.
    pub(crate) fn has_base(&self, write: i64, compacted: bool) -> bool {
        if write == i64::MIN || (self.least_open != i64::MAX && write <= self.least_open) {
            return true;
        }
        if compacted { write < self.least_open && write <= self.highest } else { self.has(write) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_as_hive_writes_them() {
        let ids: WriteIds = "default.sales:12:9:9,11:4,10".parse().unwrap();
        let valid: Vec<i64> = (0..15).filter(|id| ids.has(*id)).collect();
        assert_eq!(valid, [0, 1, 2, 3, 5, 6, 7, 8, 12]);
        for (least, most, any) in
            [(9, 11, false), (9, 12, true), (4, 4, false), (13, 20, false), (3, 4, true)]
        {
            assert_eq!(ids.has_any(least, most), any, "{least} {most}");
        }
        assert!(
            ids.has_base(8, true)
                && ids.has_base(9, true)
                && !ids.has_base(10, true)
                && !ids.has_base(12, true)
        );
        assert!(ids.has_base(12, false) && !ids.has_base(11, false) && ids.has_base(i64::MIN, true));
        assert!(ids.has_base(9, false) && !ids.has_base(10, false));
        assert!(ids.is_later(13) && !ids.is_later(12));
        assert!(ids.has_open(10, 12) && ids.has_open(9, 9) && !ids.has_open(10, 10) && !ids.has_open(1, 8));
        // Nothing open, nothing aborted.
        let all: WriteIds = "null:7:9223372036854775807::".parse().unwrap();
        assert!(all.has_any(i64::MIN, i64::MAX) && all.has(7) && !all.has(8) && all.has_base(7, true));
        assert_eq!("t:7:9223372036854775807".parse::<WriteIds>().unwrap(), all);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "t", "t:1", "t:x:1", "t:1:1:a", "t:1:1:1:1:1"] {
            let e = text.parse::<WriteIds>().unwrap_err().to_string();
            assert!(e.starts_with("option `acid_valid_write_ids`: expected"), "{e}");
        }
    }
}
