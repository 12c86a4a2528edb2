//! Tasks for Java: their bytes, and the values that only the driver needs.
//!
//! ```text
//! pruned:   number                                          of units that the files' metadata exclude
//! settings: count, then name, text                          of Hadoop's client; none if no task has ranges
//! task:     length, bytes of crate::task
//!           count of values of its partition, then each     0 | 1, number | 2, text
//!           count of ranges in files, then each             path, start, end
//! ```
//!
//! As in Java, numbers are big-endian. Counts and lengths have 4 bytes, other numbers 8. A text is its length
//! and UTF-8.

use std::collections::BTreeMap;
use std::ops::Range;

use coldframe::dataset::storage::os_path;
use coldframe::dataset::{Part, Split};
use coldframe::{Error, Result, store};

use super::keys::Key;

const MAX_LEN: usize = i32::MAX.unsigned_abs() as usize;

/// One task, with the values that the driver needs.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// The bytes for an executor.
    pub task: Vec<u8>,
    /// The values of the file's partition; empty if the request is not by partition.
    pub key: Vec<Key>,
    /// The byte ranges that the task reads, for files whose store knows the hosts.
    pub ranges: Vec<(String, Range<u64>)>,
}

/// All tasks of a plan.
#[derive(Clone, Debug, Default)]
pub struct Planning {
    /// The number of units, such as stripes, that the files' metadata rule out; no task reads them.
    pub pruned: u64,
    /// Settings of Hadoop's client for the files of [`Planned::ranges`], without secrets.
    pub settings: BTreeMap<String, String>,
    /// The tasks.
    pub tasks: Vec<Planned>,
}

impl Planning {
    /// The bytes for Java.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.tasks.iter().map(|task| task.task.len() + 64).sum());
        out.extend_from_slice(&self.pruned.to_be_bytes());
        count(&mut out, self.settings.len())?;
        for (name, text) in &self.settings {
            framed(&mut out, name.as_bytes())?;
            framed(&mut out, text.as_bytes())?;
        }
        for task in &self.tasks {
            framed(&mut out, &task.task)?;
            count(&mut out, task.key.len())?;
            for key in &task.key {
                match key {
                    Key::Null => out.push(0),
                    Key::Number(number) => {
                        out.push(1);
                        out.extend_from_slice(&number.to_be_bytes());
                    }
                    Key::Text(text) => {
                        out.push(2);
                        framed(&mut out, text.as_bytes())?;
                    }
                }
            }
            count(&mut out, task.ranges.len())?;
            for (path, range) in &task.ranges {
                framed(&mut out, path.as_bytes())?;
                out.extend_from_slice(&range.start.to_be_bytes());
                out.extend_from_slice(&range.end.to_be_bytes());
            }
        }
        if out.len() > MAX_LEN {
            return Err(Error::unsupported("a plan of more than 2 GiB: plan fewer files at once"));
        }
        Ok(out)
    }
}

fn count(out: &mut Vec<u8>, of: usize) -> Result<()> {
    let of = u32::try_from(of).ok().filter(|_| of <= MAX_LEN);
    let of = of.ok_or_else(|| Error::unsupported("a task of more than 2 GiB"))?;
    out.extend_from_slice(&of.to_be_bytes());
    Ok(())
}

fn framed(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    count(out, bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// The byte ranges that these splits read, for files whose store knows the hosts.
pub fn ranges(splits: &[Split]) -> Vec<(String, Range<u64>)> {
    let of = |split: &Split| {
        let range = range(split)?;
        let path = &split.file.path;
        store::has_hosts(&os_path(path)).then(|| (path.clone(), range))
    };
    splits.iter().filter_map(of).collect()
}

/// The approximate byte range that a split reads; `None` for a part of a folder that is one table.
pub(crate) fn range(split: &Split) -> Option<Range<u64>> {
    let bytes = split.file_bytes()?;
    Some(match &split.part {
        Part::Cut(cut) => cut.range.start.min(bytes)..cut.range.end.min(bytes),
        Part::Share { number, of, .. } => {
            let at = |number: u64| {
                let at = u128::from(bytes) * u128::from(number) / u128::from((*of).max(1));
                u64::try_from(at).map_or(bytes, |at| at.min(bytes))
            };
            at(*number)..at(number.saturating_add(1))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coldframe::dataset::{Opening, SplitFile};
    use coldframe::store::Identity;

    use super::*;

    fn split(path: &str, len: Option<u64>, part: Part) -> Split {
        let file = SplitFile {
            path: path.to_owned(),
            opening: Arc::new(Opening::default()),
            known: len.map(|len| Identity { len, modified: None, etag: None }),
            recorded: Arc::default(),
            fragment: None,
            source: None,
        };
        Split { file: Arc::new(file), part, own: Vec::new() }
    }

    #[test]
    fn only_stores_with_hosts_have_ranges() {
        let share = |number| Part::Share { number, of: 3, target: 1 };
        let cut = Part::Cut(coldframe::Split { part: 0, range: 4..u64::MAX, rows: None });
        let splits = [
            split("hdfs://nn/t/a b", Some(10), share(0)),
            split("hdfs://nn/t/a b", Some(10), share(2)),
            split("viewfs:///t/c", Some(9), cut.clone()),
            split("hdfs://nn/kudu", None, cut),
            split("s3://b/t/x", Some(10), share(0)),
            split("/t/x", Some(10), share(0)),
        ];
        let named = |path: &str, range| (path.to_owned(), range);
        let expected =
            [named("hdfs://nn/t/a b", 0..3), named("hdfs://nn/t/a b", 6..10), named("viewfs:///t/c", 4..9)];
        assert_eq!(ranges(&splits), expected);
    }

    #[test]
    fn bytes_for_java_have_counts_before_items() {
        let task = Planned {
            task: vec![7, 8],
            key: vec![Key::Null, Key::Number(-2), Key::Text("ä".to_owned())],
            ranges: vec![("p".to_owned(), 1..2)],
        };
        let settings = BTreeMap::from([("user".to_owned(), "u".to_owned())]);
        let bytes = Planning { pruned: 3, settings, tasks: vec![task] }.to_bytes().unwrap();
        let mut expected = 3u64.to_be_bytes().to_vec();
        expected.extend([0, 0, 0, 1, 0, 0, 0, 4]);
        expected.extend(b"user\0\0\0\x01u");
        expected.extend([0, 0, 0, 2, 7, 8, 0, 0, 0, 3, 0, 1]);
        expected.extend((-2i64).to_be_bytes());
        expected.extend([2, 0, 0, 0, 2]);
        expected.extend("ä".as_bytes());
        expected.extend([0, 0, 0, 1, 0, 0, 0, 1, b'p']);
        expected.extend(1u64.to_be_bytes());
        expected.extend(2u64.to_be_bytes());
        assert_eq!(bytes, expected);
    }
}
