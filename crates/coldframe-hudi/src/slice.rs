//! Parses file names, and selects the files of the latest committed state of a file group.
//!
//! ```text
//! base  <file id>_<write token>_<instant>.<extension>                   record-index-0000-0_4-153-369_20261121071043867.hfile
//! log   .<file id>_<instant>.log.<version>[_<write token>[.cdc]]       .record-index-0000-0_20261121071047495.log.1_2-214-520
//! ```
//!
//! In tables up to version 6, a log has the instant of its base file. In later versions a log has the instant
//! of the commit that wrote it. Such a log belongs to the last base file whose compaction was planned before
//! the commit was completed, because a compaction includes nothing that is committed after it is planned.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::Result;
use coldframe_core::io::{Entry, Folder};

use crate::timeline::{Timeline, is_instant};

/// The first table version that names logs by the commits that wrote them.
const LOGS_BY_COMMIT: u32 = 8;

/// A file of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupFile {
    /// The path, relative to the partition's folder.
    pub path: String,
    /// The length in bytes.
    pub len: u64,
    /// The instant in the file's name.
    pub instant: String,
}

/// The files of the latest committed state of a file group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The group's id.
    pub file_id: String,
    /// The latest committed base file, if any.
    pub base: Option<GroupFile>,
    /// The log files in merge order.
    pub logs: Vec<GroupFile>,
}

/// A parsed file name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileName<'a> {
    /// A base file.
    Base {
        /// The id of the group.
        file_id: &'a str,
        /// The instant that wrote the file.
        instant: &'a str,
        /// `hfile` in metadata tables; the format of the base files in data tables.
        extension: &'a str,
    },
    /// A log file.
    Log {
        /// The id of the group.
        file_id: &'a str,
        /// The instant in its name.
        instant: &'a str,
        /// The number of the log among the group's logs of this instant.
        version: u64,
        /// The write token of the task that wrote the log.
        token: &'a str,
        /// Whether the log has records before and after their changes, instead of the changes.
        is_cdc: bool,
    },
}

/// Parses a file name of a metadata table or a data table.
pub(crate) fn parse_name(name: &str) -> Option<FileName<'_>> {
    let Some((stem, tail)) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once(".log.")) else {
        let (stem, extension) = name.rsplit_once('.')?;
        let (rest, instant) = stem.rsplit_once('_')?;
        let (file_id, _) = rest.rsplit_once('_')?;
        let is_base = is_instant(instant) && !file_id.is_empty() && !name.starts_with('.');
        return is_base.then_some(FileName::Base { file_id, instant, extension });
    };
    let (file_id, instant) = stem.rsplit_once('_')?;
    let (version, token) = tail.split_once('_').unwrap_or((tail, ""));
    let (token, is_cdc) = token.strip_suffix(".cdc").map_or((token, false), |token| (token, true));
    let version = version.parse().ok()?;
    // Files with checksums of a local file system have `.crc` after the token.
    let plain = token.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    (is_instant(instant) && plain).then_some(FileName::Log { file_id, instant, version, token, is_cdc })
}

/// Whether a file has records before and after their changes, which do not belong to a table's state: `.cdc`
/// in Hudi 1.x, `-cdc` in 0.x.
pub(crate) fn is_change_data(name: &str) -> bool {
    let rest = name.strip_suffix("-cdc").or(name.strip_suffix(".cdc"));
    rest.is_some_and(|rest| matches!(parse_name(rest), Some(FileName::Log { .. })))
}

/// The instant in the name of a log file; `path` may include folders.
pub(crate) fn log_instant(path: &str) -> Option<&str> {
    match parse_name(path.rsplit('/').next().unwrap_or_default())? {
        FileName::Log { instant, .. } => Some(instant),
        FileName::Base { .. } => None,
    }
}

/// A base file, and logs with their sort keys.
#[derive(Default)]
struct GroupFiles {
    bases: BTreeMap<String, GroupFile>,
    logs: Vec<(String, u64, String, GroupFile)>,
}

/// The latest committed slices of the groups in a partition's folder, by name. `instants` takes those in the names of all
/// files.
pub(crate) fn latest(
    folder: &dyn Folder,
    path: &str,
    (timeline, version): (&Timeline, u32),
    instants: &mut BTreeSet<String>,
) -> Result<Vec<Slice>> {
    let mut groups: BTreeMap<String, GroupFiles> = BTreeMap::new();
    for Entry { path, len, is_folder } in folder.list(path)? {
        if is_folder {
            continue;
        }
        match parse_name(path.rsplit('/').next().unwrap_or_default()) {
            Some(FileName::Base { file_id, instant, extension: "hfile" }) => {
                let (file_id, instant) = (file_id.to_owned(), instant.to_owned());
                let file = GroupFile { path, len, instant: instant.clone() };
                instants.insert(instant.clone());
                groups.entry(file_id).or_default().bases.insert(instant, file);
            }
            Some(FileName::Log { file_id, instant, version, token, is_cdc: false }) => {
                let (file_id, token) = (file_id.to_owned(), token.to_owned());
                let instant = instant.to_owned();
                instants.insert(instant.clone());
                let file = GroupFile { path, len, instant: instant.clone() };
                groups.entry(file_id).or_default().logs.push((instant, version, token, file));
            }
            _ => {}
        }
    }
    let slices = groups.into_iter().map(|(file_id, files)| slice(file_id, files, timeline, version));
    Ok(slices.collect())
}

fn slice(file_id: String, mut files: GroupFiles, timeline: &Timeline, version: u32) -> Slice {
    let mut bases = files.bases.into_iter().rev();
    let base = bases.find(|(instant, _)| timeline.is_committed(instant)).map(|(_, file)| file);
    files.logs.sort_by(|a, b| (&a.0, a.1, &a.2).cmp(&(&b.0, b.1, &b.2)));
    let newest = base.as_ref().map(|base| base.instant.as_str());
    let logs = files.logs.into_iter().filter(|(instant, ..)| belongs(instant, newest, timeline, version));
    let logs = logs.map(|(.., file)| file);
    let logs = logs.collect();
    Slice { file_id, base, logs }
}

/// Whether a log with the instant `log` in its name belongs to the latest slice of its group, whose base file
/// has the instant `base`.
pub(crate) fn belongs(log: &str, base: Option<&str>, timeline: &Timeline, version: u32) -> bool {
    match base {
        None => true,
        Some(base) if version < LOGS_BY_COMMIT => log >= base,
        // The log of a pending commit belongs to the latest slice; whether its blocks are valid is checked
        // for each block.
        Some(base) => timeline.completion(log).is_none_or(|done| done >= base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Completed;

    #[test]
    fn names_of_files_are_parsed() {
        assert_eq!(
            parse_name("files-0000-0_0-5-4_00000000000000000.hfile"),
            Some(FileName::Base {
                file_id: "files-0000-0",
                instant: "00000000000000000",
                extension: "hfile"
            })
        );
        assert_eq!(
            parse_name(".secondary-index-my_idx-0003-0_20261121071333797.log.2_1-41-69"),
            Some(FileName::Log {
                file_id: "secondary-index-my_idx-0003-0",
                instant: "20261121071333797",
                version: 2,
                token: "1-41-69",
                is_cdc: false
            })
        );
        assert_eq!(
            parse_name(".files-0000_20220101000000000.log.1"),
            Some(FileName::Log {
                file_id: "files-0000",
                instant: "20220101000000000",
                version: 1,
                token: "",
                is_cdc: false
            })
        );
        // The first instant of a metadata table before Hudi 0.11.
        assert!(matches!(
            parse_name(".files-0000_0000000000000.log.1_0-0-0"),
            Some(FileName::Log { instant: "0000000000000", .. })
        ));
        assert_eq!(parse_name(".files-0000_0000000000001.log.1_0-0-0"), None);
        let group = "14ca9f7d-a44d-47a9-b7a1-c53fb3b7117a-0";
        assert_eq!(
            parse_name("14ca9f7d-a44d-47a9-b7a1-c53fb3b7117a-0_0-0-0_20261121143911695.parquet"),
            Some(FileName::Base { file_id: group, instant: "20261121143911695", extension: "parquet" })
        );
        assert_eq!(
            parse_name(".14ca9f7d-a44d-47a9-b7a1-c53fb3b7117a-0_20261121143911695.log.1_0-1-2.cdc"),
            Some(FileName::Log {
                file_id: group,
                instant: "20261121143911695",
                version: 1,
                token: "0-1-2",
                is_cdc: true
            })
        );
        for other in [
            ".hoodie_partition_metadata",
            "a.parquet",
            "..x_20220101000000000.log.1_0-1-2.crc",
            ".x_0-1-2_20220101000000000.parquet.crc",
            ".x_0-1-2_20220101000000000.parquet",
            "x.hfile",
        ] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn logs_completed_after_planning_belong_to_the_compacted_file() {
        let mut timeline = Timeline::default();
        for (instant, completion) in [
            ("20250101000000001", "20250101000000002"),
            ("20250101000000003", "20250101000000009"),
            ("20250101000000005", "20250101000000006"),
        ] {
            let action = if instant.ends_with('5') { "commit" } else { "deltacommit" };
            let done = Completed::new(action, Some(completion));
            timeline.completed.insert(instant.into(), done);
        }
        timeline.pending.insert("20250101000000010".into());
        let file =
            |instant: &str, path: &str| GroupFile { path: path.into(), len: 1, instant: instant.into() };
        let files = || {
            let mut files = GroupFiles::default();
            for (instant, path) in [("20250101000000005", "base"), ("20250101000000010", "pending base")] {
                files.bases.insert(instant.into(), file(instant, path));
            }
            for (instant, path) in [("20250101000000003", "late"), ("20250101000000001", "early")] {
                files.logs.push((instant.into(), 1, String::new(), file(instant, path)));
            }
            files
        };
        let names = |s: &Slice| s.logs.iter().map(|l| l.path.clone()).collect::<Vec<_>>();
        let by_commit = slice("g".into(), files(), &timeline, 8);
        assert_eq!(by_commit.base.as_ref().unwrap().path, "base");
        assert_eq!(names(&by_commit), ["late"]);
        // In old tables, the name has the instant of the base file.
        assert!(names(&slice("g".into(), files(), &timeline, 6)).is_empty());
        let mut no_base = files();
        no_base.bases.clear();
        assert_eq!(names(&slice("g".into(), no_base, &timeline, 8)), ["early", "late"]);
    }
}
