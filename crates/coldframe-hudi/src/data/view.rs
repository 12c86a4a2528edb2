//! Which instants a view shows.

use coldframe_core::io::Folder;
use coldframe_core::{Error, Limits, Result};
use serde_json::Value as Json;

use crate::data::commit::Commit;
use crate::data::timeline::{Instant, Timeline};

/// Commits, with their records.
pub(crate) type Commits = Vec<(Instant, Commit)>;

/// Which rows of a table are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The latest state, or the state as of an instant.
    Snapshot {
        /// The last instant that counts.
        as_of: Option<String>,
    },
    /// The base files of the latest state, without the logs over them.
    ReadOptimized {
        /// The last instant that counts.
        as_of: Option<String>,
    },
    /// The last state, up to `end`, of those rows that were written after `begin`.
    Incremental {
        /// Excluded.
        begin: String,
        /// Included.
        end: Option<String>,
    },
}

/// The instants that a view shows.
#[derive(Clone, Debug)]
pub(crate) struct Visible<'a> {
    timeline: &'a Timeline,
    shown: &'a Shown,
}

impl<'a> Visible<'a> {
    /// The instants that `shown` shows.
    pub(crate) fn new(timeline: &'a Timeline, shown: &'a Shown) -> Self {
        Self { timeline, shown }
    }

    /// Whether only the rows of a range of commits are shown.
    pub(crate) fn is_incremental(&self) -> bool {
        matches!(self.shown, Shown::Incremental { .. })
    }

    /// The table's timeline.
    pub(crate) fn timeline(&self) -> &'a Timeline {
        self.timeline
    }

    /// Whether the files and blocks of an instant are valid.
    pub(crate) fn has(&self, time: &str) -> bool {
        self.timeline.is_committed(time) && !self.is_later(time)
    }

    /// The commits that the view shows, and the instants of those whose files are empty.
    pub(crate) fn commits(&self, folder: &dyn Folder, limits: &Limits) -> Result<(Commits, Vec<String>)> {
        let (mut all, mut unrecorded) = (Vec::new(), Vec::new());
        for instant in self.timeline.commits().filter(|i| self.has(&i.time)) {
            let json = self.timeline.content(folder, instant, limits)?.unwrap_or_else(|| {
                unrecorded.push(instant.time.clone());
                Json::Null
            });
            all.push((instant.clone(), Commit::new(&json)));
        }
        Ok((all, unrecorded))
    }

    /// Whether an instant is later than the view.
    pub(crate) fn is_later(&self, time: &str) -> bool {
        match self.shown {
            Shown::Snapshot { as_of } | Shown::ReadOptimized { as_of } => {
                as_of.as_ref().is_some_and(|last| time > last.as_str())
            }
            Shown::Incremental { end: Some(end), .. } => self.at(time) > end.as_str(),
            Shown::Incremental { end: None, .. } => false,
        }
    }

    /// The time of an instant that an incremental view compares: its completion in layout 2.
    fn at<'t>(&'t self, time: &'t str) -> &'t str {
        match self.timeline.by_completion {
            true => self.timeline.completion(time).unwrap_or(time),
            false => time,
        }
    }

    /// Whether the rows of an instant are shown: in an incremental view, those of a range.
    pub(crate) fn shows(&self, time: &str) -> bool {
        let is_in = match self.shown {
            Shown::Incremental { begin, .. } => self.at(time) > begin.as_str(),
            Shown::Snapshot { .. } | Shown::ReadOptimized { .. } => true,
        };
        is_in && self.has(time)
    }
}

/// An instant as the user gives it: its digits, or a date and time.
pub(crate) fn instant(option: &str, text: &str) -> Result<String> {
    let wrong = || {
        Error::invalid(format!(
            "option `{option}`: expected an instant of the timeline, or a date and time, found {text:?}"
        ))
    };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_separator = |c: char| matches!(c, '-' | ':' | ' ' | 'T' | '.');
    if digits.is_empty() || text.chars().any(|c| !c.is_ascii_digit() && !is_separator(c)) {
        return Err(wrong());
    }
    let is_date = digits.len() < text.len();
    match digits.len() {
        8 if is_date => Ok(format!("{digits}000000")),
        0..8 if is_date => Err(wrong()),
        _ => Ok(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_digits_or_dates() {
        let of = |text| instant("as_of", text);
        assert_eq!(of("20260102030405678").unwrap(), "20260102030405678");
        assert_eq!(of("2026-01-02").unwrap(), "20260102000000");
        assert_eq!(of("2026-01-02 03:04:05.678").unwrap(), "20260102030405678");
        assert_eq!(of("000").unwrap(), "000");
        assert!(of("soon").is_err() && of("").is_err() && of("2026-1").is_err());
    }
}
