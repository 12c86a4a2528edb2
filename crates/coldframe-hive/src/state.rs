//! Which directories of a Hive ACID table hold its current rows.
//!
//! ```text
//! base_W[_vT]/                    all rows up to write id W (by a compaction, or an overwrite)
//! delta_A_B[_S][_vT]/             rows inserted by the writes A to B; S: one statement of a transaction
//! delete_delta_A_B[_S][_vT]/      identities of rows that these writes deleted
//!   bucket_N[_attempt]            with the columns operation .. row     bucket_N_flush_length: how much of it is valid
//!   NNNNNN_M[_copy_K]             plain rows (LOAD DATA)
//! NNNNNN_M[_copy_K], */..         plain rows from before the table was transactional: only without a base
//! ```
//!
//! The rules are the rules of Hive's `AcidUtils.getAcidState`. The newest base is read. Then deltas are read
//! in the order of their first write, wider deltas first, if they have writes beyond those covered so far.
//! All statements of a transaction with several statements are read, unless a delta without a statement,
//! which is from a compaction, covers them. A delete delta is read if the insert delta of the same name is
//! read. The files do not show which writes a metastore knows as open or aborted: if there is no list of
//! [`WriteIds`], every write counts as committed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder, files_below};
use coldframe_core::{Error, ReadAt, Result};

use crate::names::{Delta, is_part, name, number, parse_base, parse_delta};
use crate::write_ids::WriteIds;

/// The file in which a directory states how it was made, before Hive 4:
/// `{"thisFileVersion":"0","dataFormat":"compacted"}`.
const MARK: &str = "_metadata_acid";
/// The file that states the version of a directory's files.
const ACID_VERSION: &str = "_orc_acid_version";
const COMPACTED: &[u8] = b"\"compacted\"";
/// The largest size accepted for such a file.
const MAX_MARK: u64 = 1 << 16;

/// The deepest nesting of directories with original files.
const MAX_DEPTH: usize = 8;

/// A file of the table's current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    /// The path, relative to the table's directory.
    pub(crate) path: String,
    /// What the file holds.
    pub(crate) role: Role,
    /// The length of the file in bytes.
    pub(crate) len: u64,
    /// The write id of plain rows; 0 for rows older than the first write.
    pub(crate) write_id: i64,
    /// The last write of the file's rows or events.
    pub(crate) last_write: i64,
    /// The statement of the write.
    pub(crate) statement: i32,
    /// The bucket in the file's name.
    pub(crate) bucket: i32,
    /// The valid length of the file, if a side file states it.
    pub(crate) valid_len: Option<u64>,
}

impl DataFile {
    /// Whether rows of other files could wrongly be returned if the file's events are lost. If the table
    /// stores updates as deletes and inserts (`splits_updates`), only delete files affect other rows. Events
    /// in a base affect only rows of that base, which are lost together with it.
    pub(crate) fn can_uncover(&self, splits_updates: bool) -> bool {
        (self.role == Role::Deletes || !splits_updates) && !self.is_in_base()
    }

    /// Whether the file is in a base, which has the rows of all writes up to its own.
    pub(crate) fn is_in_base(&self) -> bool {
        self.path.split_once('/').is_some_and(|(folder, _)| parse_base(folder).is_some())
    }
}

/// The role of a file in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Rows.
    Rows,
    /// Identities of deleted rows.
    Deletes,
}

/// The write, the visibility and the path of a base.
type Base = (i64, i64, String);

/// Whether a compaction has made the base of some files, or a delta of them: then files that are gone may be in it.
pub(crate) fn has_compaction(folder: &dyn Folder, files: &[DataFile]) -> Result<bool> {
    let parts: BTreeSet<&str> = files.iter().filter_map(|file| Some(file.path.split_once('/')?.0)).collect();
    let is_of_compaction = |part: &&str| match parse_base(part) {
        Some((_, visible)) => Ok(visible > 0 || is_compacted(folder, part)?),
        None => Ok(parse_delta(part).is_some_and(|delta| delta.compacted)),
    };
    parts.iter().map(is_of_compaction).find(|made| !matches!(made, Ok(false))).unwrap_or(Ok(false))
}

/// Whether a directory looks like an ACID table: it has a base or a delta.
pub(crate) fn is_acid(folder: &dyn Folder) -> Result<bool> {
    let mut entries = folder.list("")?.into_iter().filter(|e| e.is_folder);
    Ok(entries.any(|e| is_part(&e.path)))
}

/// The files with the table's current rows and deletes. Files with rows are in the order of their writes.
pub(crate) fn current_files(folder: &dyn Folder, ids: Option<&WriteIds>) -> Result<Vec<DataFile>> {
    let top: Vec<Entry> = folder.list("")?.into_iter().filter(is_visible).collect();
    let base = newest_base(folder, &top, ids)?;
    let deltas = top.iter().filter(|e| e.is_folder).filter_map(|e| parse_delta(&e.path)).collect();
    let deltas = current_deltas(deltas, base.as_ref(), ids);
    let mut files = Vec::new();
    match &base {
        Some((write, _, path)) => {
            add_bucket_files(folder, path, Role::Rows, (*write, *write, 0), false, &mut files)?
        }
        None => {
            let mut plain = Vec::new();
            for entry in &top {
                let known = parse_base(&entry.path).is_some() || parse_delta(&entry.path).is_some();
                match (entry.is_folder, known) {
                    (true, false) => add_original_files(folder, &entry.path, 0, &mut plain)?,
                    (true, true) => {}
                    (false, _) => plain.push(entry.clone()),
                }
            }
            // Row numbers of original files continue from file to file, in path order.
            plain.sort_by(|a, b| a.path.cmp(&b.path));
            files.extend(plain.into_iter().filter(|e| e.len > 0).filter_map(original));
        }
    }
    for delta in deltas {
        let role = if delta.deletes { Role::Deletes } else { Role::Rows };
        let side_files = !delta.deletes && delta.min != delta.max && !delta.compacted;
        let write = (delta.min, delta.max, delta.statement.max(0));
        add_bucket_files(folder, &delta.path, role, write, side_files, &mut files)?;
    }
    Ok(files)
}

/// The last write of the base that is read; `None` if there is no base.
pub(crate) fn base_write(folder: &dyn Folder, ids: Option<&WriteIds>) -> Result<Option<i64>> {
    let top: Vec<Entry> = folder.list("")?.into_iter().filter(is_visible).collect();
    Ok(newest_base(folder, &top, ids)?.map(|(write, ..)| write))
}

/// The newest base with visible writes only.
fn newest_base(folder: &dyn Folder, top: &[Entry], ids: Option<&WriteIds>) -> Result<Option<Base>> {
    let (mut base, mut oldest): (Option<Base>, Option<Base>) = (None, None);
    for entry in top.iter().filter(|e| e.is_folder) {
        let Some((write, visible)) = parse_base(&entry.path) else { continue };
        let candidate = (write, visible, entry.path.clone());
        if oldest.as_ref().is_none_or(|known| *known > candidate) {
            oldest = Some(candidate.clone());
        }
        if base.as_ref().is_some_and(|best| *best > candidate) {
            continue;
        }
        let counts = match ids {
            None => true,
            Some(ids) => ids.has_base(write, visible > 0 || is_compacted(folder, &entry.path)?),
        };
        if counts {
            base = Some(candidate);
        }
    }
    if let Some((_, visible, path)) = oldest.filter(|_| base.is_none()) {
        check_history(folder, &path, visible)?;
    }
    Ok(base)
}

/// How many directories have writes that are not visible yet, but may become visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncounted {
    /// Directories with writes after the last write of the list.
    pub(crate) later: u64,
    /// Directories with open writes.
    pub(crate) open: u64,
}

/// Counts the directories with writes that are not visible because `ids` lists them as open or ends before
/// them. Aborted writes are not counted, since they never become visible.
pub(crate) fn uncounted(folder: &dyn Folder, ids: &WriteIds) -> Result<Uncounted> {
    let mut uncounted = Uncounted::default();
    for entry in folder.list("")?.iter().filter(|e| e.is_folder && is_visible(e)) {
        if let Some((write, _)) = parse_base(&entry.path) {
            // A base up to the lowest open write is read even if it ends after the last write of the list.
            uncounted.later += u64::from(ids.is_later(write) && !ids.has_base(write, true));
        } else if let Some(Delta { min, max, .. }) = parse_delta(&entry.path) {
            uncounted.later += u64::from(ids.is_later(max));
            uncounted.open += u64::from(ids.has_open(min, max));
        }
    }
    Ok(uncounted)
}

/// The files that no state of the table reads, and that Hive did not write: rows that nobody reads.
pub(crate) fn unclaimed(folder: &dyn Folder) -> Result<Vec<Entry>> {
    let current: HashSet<String> = current_files(folder, None)?.into_iter().map(|file| file.path).collect();
    files_below(folder, &|path| {
        let (above, file) = path.rsplit_once('/').unwrap_or(("", path));
        if file.starts_with('.') && file.ends_with(".crc") {
            return true;
        }
        // The files of a base or delta, and original files, which a base replaces.
        let is_place = above.is_empty() || is_part(above) && !above.contains('/') || is_union(above);
        let is_own =
            is_bucket(file) || ((above.is_empty() || is_part(above)) && matches!(file, MARK | ACID_VERSION));
        current.contains(path) || (is_place && is_own)
    })
}

/// Whether a folder has the original files of a branch of UNION ALL.
fn is_union(path: &str) -> bool {
    path.strip_prefix("HIVE_UNION_SUBDIR_")
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether Hive gives files this name: `bucket_00002[_0][_flush_length]`, `000002_0[_copy_1]`.
fn is_bucket(file: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let file = file.strip_suffix("_flush_length").unwrap_or(file);
    match file.strip_prefix("bucket_") {
        Some(rest) => rest.split('_').all(is_number),
        None => file.contains('_') && file.split('_').filter(|part| *part != "copy").all(is_number),
    }
}

/// Fails if a compaction has merged visible with invisible writes, since the merged files may be gone. Hive:
/// `ACID_NOT_ENOUGH_HISTORY`.
fn check_history(folder: &dyn Folder, oldest: &str, visible: i64) -> Result<()> {
    if visible == 0 && !is_compacted(folder, oldest)? {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "rows as of writes that a compaction has merged with later ones into `{oldest}`: list newer writes \
         in `acid_valid_write_ids`"
    )))
}

/// A hash of the files of a state: splits refer to files by their index in the state. The hash ignores the
/// length of a file that is still being written.
pub(crate) fn fingerprint(files: &[DataFile]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let len = if file.valid_len.is_some() { 0 } else { file.len };
        (&file.path, file.role, len).hash(&mut hasher);
    }
    hasher.finish()
}

fn is_visible(entry: &Entry) -> bool {
    !name(&entry.path).starts_with(['_', '.'])
}

/// Whether a compaction made a base, according to the marker file that Hive wrote before version 4.
fn is_compacted(folder: &dyn Folder, base: &str) -> Result<bool> {
    let at = format!("{base}/{MARK}");
    if !folder.list(base)?.iter().any(|e| e.path == at && e.len <= MAX_MARK) {
        return Ok(false);
    }
    let file = folder.open(&at)?;
    let text = file.read(0..file.len())?;
    Ok(text.windows(COMPACTED.len()).any(|part| part == COMPACTED))
}

fn current_deltas(mut all: Vec<Delta>, base: Option<&Base>, ids: Option<&WriteIds>) -> Vec<Delta> {
    let counts = |least: i64, most: i64| ids.is_none_or(|ids| ids.has_any(least, most));
    all.retain(|d| counts(d.min, d.max));
    all.sort_by(|a, b| {
        let key = |d: &Delta| (d.min, Reverse(d.max), d.statement);
        key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
    });
    let mut covered = base.map_or(0, |(write, ..)| *write);
    let mut last_statement = -1;
    let mut kept: Vec<Delta> = Vec::new();
    for next in all {
        let same_as_last =
            kept.last().is_some_and(|p| (p.min, p.max, p.statement) == (next.min, next.max, next.statement));
        if next.max > covered {
            if !counts(covered.saturating_add(1), next.max) {
                continue;
            }
            (covered, last_statement) = (next.max, next.statement);
            kept.push(next);
        } else if (next.max == covered && last_statement >= 0) || same_as_last {
            kept.push(next);
        }
    }
    kept
}

/// The files of a base or delta.
fn add_bucket_files(
    folder: &dyn Folder,
    path: &str,
    role: Role,
    (write_id, last_write, statement): (i64, i64, i32),
    side_files: bool,
    files: &mut Vec<DataFile>,
) -> Result<()> {
    let mut entries = Vec::new();
    add_original_files(folder, path, 0, &mut entries)?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let side =
        |path: &str| side_files.then(|| entries.iter().find(|e| e.path == format!("{path}_flush_length")))?;
    for entry in &entries {
        if entry.path.ends_with("_flush_length") {
            continue;
        }
        let Some(bucket) = bucket_of(name(&entry.path)) else { continue };
        let valid_len = match side(&entry.path) {
            None => None,
            Some(side) => Some(flushed(folder.open(&side.path)?)?),
        };
        if entry.len == 0 && (valid_len == Some(0) || !is_of_acid_writer(name(&entry.path))) {
            continue;
        }
        let (path, len) = (entry.path.clone(), entry.len);
        files.push(DataFile { path, role, len, write_id, last_write, statement, bucket, valid_len });
    }
    Ok(())
}

/// Whether Hive's writer of ACID files gave this name. It closes each file with a footer, or deletes it, also one without
/// rows, so that an empty one is damaged. Files of other names (LOAD DATA, insert-only tables) may be empty.
fn is_of_acid_writer(file: &str) -> bool {
    file.starts_with("bucket_")
}

/// The last complete length in a side file, to which each flush appends a length in big-endian form.
fn flushed(side: Arc<dyn ReadAt>) -> Result<u64> {
    let whole = side.len() / 8 * 8;
    let Some(start) = whole.checked_sub(8) else { return Ok(0) };
    let bytes = side.read(start..whole)?;
    let length = <[u8; 8]>::try_from(bytes.as_ref())
        .map(u64::from_be_bytes)
        .map_err(|_| Error::corrupt(format!("expected a length of 8 bytes, found {}", bytes.len())))?;
    Ok(length)
}

/// All visible files below `path`.
fn add_original_files(folder: &dyn Folder, path: &str, depth: usize, into: &mut Vec<Entry>) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::corrupt(format!(
            "expected at most {MAX_DEPTH} directories above a file of `{path}`"
        )));
    }
    for entry in folder.list(path)?.into_iter().filter(is_visible) {
        if entry.is_folder {
            add_original_files(folder, &entry.path, depth + 1, into)?;
        } else {
            into.push(entry);
        }
    }
    Ok(())
}

fn original(Entry { path, len, .. }: Entry) -> Option<DataFile> {
    let (role, bucket) = (Role::Rows, bucket_of(name(&path))?);
    Some(DataFile { path, role, len, write_id: 0, last_write: 0, statement: 0, bucket, valid_len: None })
}

/// The bucket in `bucket_00002[_0]` or `000002_0[_copy_1]`. Files with other names were not written by Hive;
/// if such a file has rows, they count as bucket 0.
fn bucket_of(name: &str) -> Option<i32> {
    if let Some(rest) = name.strip_prefix("bucket_") {
        return number(rest.split('_').next()?);
    }
    let digits = name.split('_').next().unwrap_or_default();
    Some(number(digits).filter(|_| !digits.is_empty()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_testing::folder::MemoryFolder;

    fn folder(paths: &[&str]) -> MemoryFolder {
        paths.iter().fold(MemoryFolder::default(), |folder, path| folder.with(path, &b"ORC"[..]))
    }

    fn current(paths: &[&str]) -> Vec<String> {
        current_files(&folder(paths), None).unwrap().into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn the_newest_base_and_later_deltas_are_read() {
        let paths = [
            "000000_0",
            "base_0000005/bucket_00000",
            "base_0000010/bucket_00000",
            "base_0000010/_orc_acid_version",
            "delta_0000006_0000006_0000/bucket_00000_0",
            "delta_0000011_0000011_0000/bucket_00000_0",
            "delete_delta_0000011_0000011_0000/bucket_00000_0",
            "delta_0000009_0000012/bucket_00001",
        ];
        // The delta from 9 ends after the base, so all deltas that end at 12 or before are obsolete.
        assert_eq!(current(&paths), ["base_0000010/bucket_00000", "delta_0000009_0000012/bucket_00001"]);
        let without = &paths[..7];
        assert_eq!(
            current(without),
            [
                "base_0000010/bucket_00000",
                "delete_delta_0000011_0000011_0000/bucket_00000_0",
                "delta_0000011_0000011_0000/bucket_00000_0"
            ]
        );
    }

    #[test]
    fn compactions_leave_their_names_or_a_mark() {
        let has = |folder: MemoryFolder| {
            let files = current_files(&folder, None).unwrap();
            has_compaction(&folder, &files).unwrap()
        };
        assert!(has(folder(&["base_0000005_v0000012/bucket_00000"])));
        assert!(has(folder(&["delta_0000001_0000004_v0000009/bucket_00000"])));
        let mark = &br#"{"thisFileVersion":"0","dataFormat":"compacted"}"#[..];
        assert!(has(folder(&["base_0000005/bucket_00000"]).with("base_0000005/_metadata_acid", mark)));
        assert!(!has(folder(&["base_0000005/bucket_00000", "delta_0000006_0000006_0000/bucket_00000"])));
        assert!(!has(folder(&["delta_0000001_0000010/bucket_00000", "000000_0"])));
    }

    /// Examples from Hive's tests: a wider delta makes narrower ones obsolete, and a delta without a
    /// statement makes deltas with a statement obsolete.
    #[test]
    fn overlapping_deltas_make_others_obsolete() {
        assert_eq!(
            current(&[
                "delta_5_20/bucket_0",
                "delta_5_10/bucket_0",
                "delta_11_20/bucket_0",
                "delta_51_60/bucket_0"
            ]),
            ["delta_5_20/bucket_0", "delta_51_60/bucket_0"]
        );
        assert_eq!(
            current(&["delta_3_3_0/bucket_0", "delta_3_3_1/bucket_0", "delta_4_4_0/bucket_0"]),
            ["delta_3_3_0/bucket_0", "delta_3_3_1/bucket_0", "delta_4_4_0/bucket_0"]
        );
        assert_eq!(current(&["delta_3_3_0/bucket_0", "delta_3_3/bucket_0"]), ["delta_3_3/bucket_0"]);
        assert_eq!(
            current(&[
                "delta_30_30/bucket_0",
                "delete_delta_40_40/bucket_0",
                "delta_50_50/bucket_0",
                "delta_30_50_v7/bucket_0",
                "delete_delta_30_50_v7/bucket_0"
            ]),
            ["delete_delta_30_50_v7/bucket_0", "delta_30_50_v7/bucket_0"]
        );
        assert_eq!(current(&["base_5/bucket_0", "base_5_v9/bucket_0"]), ["base_5_v9/bucket_0"]);
    }

    #[test]
    fn directories_of_invisible_writes_are_ignored() {
        let paths = [
            "base_5_v20/bucket_0",
            "base_8/bucket_0",
            "delta_6_6_0/bucket_0",
            "delta_7_7_0/bucket_0",
            "delta_9_9_0/bucket_0",
            "delete_delta_9_9_0/bucket_0",
            "delta_6_10/bucket_0",
        ];
        let files = |list: &str| -> Vec<String> {
            let current = current_files(&folder(&paths), Some(&list.parse().unwrap()));
            current.unwrap().into_iter().map(|f| f.path).collect()
        };
        // Overwrite 8 is aborted, 7 is open, nothing above 9 is known. The wide delta has the rows of 6 and
        // 9.
        assert_eq!(files("t:9:7:7:8"), ["base_5_v20/bucket_0", "delta_6_10/bucket_0"]);
        assert_eq!(files("t:8:9223372036854775807::"), ["base_8/bucket_0"]);
        // A base up to the lowest open write may be read, a base beyond it may not be read.
        assert_eq!(files("t:7:5:5:6"), ["base_5_v20/bucket_0", "delta_6_10/bucket_0"]);
        // Hive also fails in this case, because the deltas that were compacted may no longer exist.
        let e = current_files(&folder(&paths), Some(&"t:7:4:4:6".parse().unwrap())).unwrap_err().to_string();
        assert!(e.contains("into `base_5_v20`"), "{e}");
        // Before Hive 4 a marker file states that a base was compacted.
        let marked = folder(&["base_9/bucket_0", "delta_8_8_0/bucket_0"])
            .with("base_9/_metadata_acid", &br#"{"thisFileVersion":"0","dataFormat":"compacted"}"#[..]);
        let list: WriteIds = "t:9:7:7:".parse().unwrap();
        assert!(current_files(&marked, Some(&list)).unwrap_err().to_string().contains("into `base_9`"));
        // The base of an INSERT OVERWRITE is no compaction: if its write is not visible, the base is skipped,
        // and the older deltas still exist.
        let overwritten = folder(&["base_9/bucket_0", "delta_8_8_0/bucket_0"]);
        let files = current_files(&overwritten, Some(&"t:9:7:7:9".parse().unwrap())).unwrap();
        assert_eq!(files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["delta_8_8_0/bucket_0"]);
    }

    #[test]
    fn a_fingerprint_depends_on_the_files_that_are_read() {
        let state = |paths: &[&str], list: &str| {
            let ids = list.parse().unwrap();
            fingerprint(&current_files(&folder(paths), Some(&ids)).unwrap())
        };
        let (all, two) = ("t:9:9223372036854775807::", "t:2:9223372036854775807::");
        let before = ["delta_1_1/bucket_0", "delta_2_2/bucket_0"];
        let written = [before[0], before[1], "delta_3_3/bucket_0"];
        let compacted = [before[0], before[1], "base_2_v7/bucket_0"];
        assert_eq!(state(&before, two), state(&written, two));
        assert_ne!(state(&before, all), state(&written, all));
        assert_ne!(state(&before, two), state(&compacted, two));
    }

    #[test]
    fn without_a_base_original_files_are_read() {
        let files = folder(&[
            "000001_0",
            "000000_0",
            "000000_0_copy_1",
            "HIVE_UNION_SUBDIR_1/000000_0",
            "_tmp/000000_0",
            ".x",
            "delta_1_1/000002_0",
        ]);
        assert!(is_acid(&files).unwrap());
        let all = current_files(&files, None).unwrap();
        let got: Vec<_> = all.iter().map(|f| (f.path.as_str(), f.bucket, f.write_id)).collect();
        assert_eq!(
            got,
            [
                ("000000_0", 0, 0),
                ("000000_0_copy_1", 0, 0),
                ("000001_0", 1, 0),
                ("HIVE_UNION_SUBDIR_1/000000_0", 0, 0),
                ("delta_1_1/000002_0", 2, 1)
            ]
        );
        assert!(!is_acid(&folder(&["000000_0", "delta_x/bucket_0"])).unwrap());
    }

    #[test]
    fn files_that_no_state_reads_are_unclaimed() {
        let own = [
            "_orc_acid_version",
            "000000_0",
            "HIVE_UNION_SUBDIR_1/000000_0_copy_2",
            "base_5/bucket_00000",
            "base_5/_orc_acid_version",
            "base_5/.bucket_00000.crc",
            "base_5/part-0.orc",
            "delta_1_1/bucket_00000_0",
            "delta_6_9/bucket_00000",
            "delta_6_9/bucket_00000_flush_length",
            "delete_delta_7_7_0/bucket_00001",
        ];
        assert_eq!(unclaimed(&folder(&own)).unwrap(), []);
        let foreign = [
            ".hive-staging/000000_0",
            "_backup/000000_0",
            "base_5/old/bucket_00000",
            "delta_1_1/part-0.orc",
            "export/000000_0",
            "export/part-0.orc",
            "part-0.orc",
        ];
        let both = folder(&[own.as_slice(), &foreign].concat()).with("_SUCCESS", &b""[..]);
        let left: Vec<String> = unclaimed(&both).unwrap().into_iter().map(|e| e.path).collect();
        let read = "base_5/old/bucket_00000";
        assert_eq!(left, foreign.iter().filter(|path| **path != read).copied().collect::<Vec<_>>());
        // Without a base, original files of any name are read.
        let plain = folder(&["delta_6_6_0/bucket_00000", "export/part-0.orc"]);
        assert_eq!(unclaimed(&plain).unwrap(), []);
    }

    #[test]
    fn only_plain_files_may_be_empty() {
        let mut files = folder(&["base_1/bucket_00001", "delta_4_9/bucket_00001_flush_length"]);
        files.files.insert("delta_4_9/bucket_00001_flush_length".into(), 0u64.to_be_bytes().to_vec().into());
        let empty = [
            "base_1/000000_0",
            "base_1/bucket_00000",
            "delta_2_2/000000_0",
            "delta_2_2/bucket_00000_0",
            "delta_4_9/bucket_00001",
            "delete_delta_3_3/bucket_00000",
        ];
        let files = empty.iter().fold(files, |files, path| files.with(path, &b""[..]));
        let all = current_files(&files, None).unwrap();
        let got: Vec<(&str, u64)> = all.iter().map(|file| (file.path.as_str(), file.len)).collect();
        let [lost, kept] = [("base_1/bucket_00000", 0), ("base_1/bucket_00001", 3)];
        assert_eq!(got, [lost, kept, ("delta_2_2/bucket_00000_0", 0), ("delete_delta_3_3/bucket_00000", 0)]);
    }

    #[test]
    fn streamed_deltas_are_valid_up_to_the_last_flush() {
        let mut files = folder(&["delta_1_10/bucket_00000", "delta_1_10/bucket_00000_flush_length"]);
        let lengths = [7u64.to_be_bytes().as_slice(), &3u64.to_be_bytes(), &[1, 2]].concat();
        files.files.insert("delta_1_10/bucket_00000_flush_length".into(), lengths.into());
        let all = current_files(&files, None).unwrap();
        assert_eq!((all.len(), all[0].valid_len), (1, Some(3)));
    }
}
