//! The partition `files`: one record for each partition of the data table, with a map of the files in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema};
use coldframe_core::{Op, Predicate, Result, arrow_error};

use super::{column, field, typed};
use crate::decode::KEY;
use crate::slice::{self, FileName};
use crate::table::MetadataTable;
use crate::timeline::Timeline;

/// The key of the record of a table's root, for a table that is not partitioned.
const UNPARTITIONED: &str = ".";
/// The key of the record that lists the partitions.
const ALL_PARTITIONS: &str = "__all_partitions__";
/// The column with the map of files.
const FILES: &str = "filesystemMetadata";

/// A file of the data table.
struct DataFile {
    /// The partition of the data table; empty for a table that is not partitioned.
    partition: String,
    name: String,
    bytes: i64,
    is_log: bool,
    file_id: String,
    /// The instant in the file's name; empty if the name has an unknown form.
    instant: String,
}

impl DataFile {
    fn new(partition: &str, name: &str, bytes: i64) -> Self {
        let (is_log, file_id, instant) = match slice::parse_name(name) {
            Some(FileName::Base { file_id, instant, .. }) => (false, file_id, instant),
            Some(FileName::Log { file_id, instant, .. }) => (true, file_id, instant),
            None => (false, name.split('.').next().unwrap_or(name), ""),
        };
        let (file_id, instant) = (file_id.to_owned(), instant.to_owned());
        Self { partition: partition.to_owned(), name: name.to_owned(), bytes, is_log, file_id, instant }
    }

    fn group(&self) -> (&str, &str) {
        (&self.partition, &self.file_id)
    }

    /// The path, relative to the table's directory.
    fn path(&self) -> String {
        match self.partition.as_str() {
            "" => self.name.clone(),
            partition => format!("{partition}/{}", self.name),
        }
    }
}

impl MetadataTable {
    /// The files of the data table, by partition and name, of one partition or of all: `partition`, `name`, `path` below
    /// the table's directory, `size`, `kind` (`base` or `log`), `file_id`, `instant`.
    ///
    /// The files are the files that a reader of the table sees or, with `all_versions`, all files that have
    /// not been cleaned yet. This is only for the partition `files`.
    pub fn data_files(&self, partition: Option<&str>, all_versions: bool) -> Result<RecordBatch> {
        let key = partition.map(|name| if name.is_empty() { UNPARTITIONED } else { name });
        let filter = key.map(|key| {
            let value: ArrayRef = Arc::new(StringArray::from(vec![key]));
            Predicate::compare(KEY, Op::Eq, value)
        });
        let mut files = Vec::new();
        for batch in self.rows(&[KEY, FILES], filter)? {
            add_files(&batch, &mut files)?;
        }
        if !all_versions {
            let unknown = Timeline::default();
            let (timeline, version) = self.data_timeline().unwrap_or((&unknown, 0));
            files = live(files, &self.replaced()?, timeline, version);
        }
        batch_of(&files)
    }
}

/// Selects the newest base file of each group and the logs that belong to it, except for groups that were
/// replaced.
fn live(
    files: Vec<DataFile>,
    replaced: &BTreeMap<String, Vec<String>>,
    timeline: &Timeline,
    version: u32,
) -> Vec<DataFile> {
    let replaced =
        replaced.iter().flat_map(|(partition, ids)| ids.iter().map(move |id| (&**partition, &**id)));
    let replaced: BTreeSet<(&str, &str)> = replaced.collect();
    let mut newest: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_log) {
        let known = newest.entry(file.group()).or_default();
        *known = (*known).max(&file.instant);
    }
    let is_live = |file: &DataFile| {
        let base = newest.get(&file.group()).copied();
        match file.is_log {
            true => slice::belongs(&file.instant, base, timeline, version),
            false => base == Some(file.instant.as_str()),
        }
    };
    let live: Vec<bool> =
        files.iter().map(|file| !replaced.contains(&file.group()) && is_live(file)).collect();
    files.into_iter().zip(live).filter_map(|(file, live)| live.then_some(file)).collect()
}

/// Adds the files of a batch of records, without deleted files.
fn add_files(batch: &RecordBatch, files: &mut Vec<DataFile>) -> Result<()> {
    let (keys, maps) = (column::<StringArray>(batch, KEY)?, column::<MapArray>(batch, FILES)?);
    for (row, key) in keys.iter().enumerate() {
        let key = key.unwrap_or_default();
        if key == ALL_PARTITIONS || maps.is_null(row) {
            continue;
        }
        let partition = if key == UNPARTITIONED { "" } else { key };
        let entries = maps.value(row);
        let names = typed::<StringArray>(entries.columns().first(), "key")?;
        let infos = typed::<StructArray>(entries.columns().get(1), "value")?;
        let sizes = field::<Int64Array>(infos, "size")?;
        let deleted = field::<BooleanArray>(infos, "isDeleted")?;
        let begin = files.len();
        for (i, name) in names.iter().enumerate() {
            if !deleted.value(i) {
                files.push(DataFile::new(partition, name.unwrap_or_default(), sizes.value(i)));
            }
        }
        if let Some(of_partition) = files.get_mut(begin..) {
            of_partition.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    Ok(())
}

fn batch_of(files: &[DataFile]) -> Result<RecordBatch> {
    fn texts<'f>(texts: impl Iterator<Item = &'f str>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(texts))
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("partition", texts(files.iter().map(|file| file.partition.as_str()))),
        ("name", texts(files.iter().map(|file| file.name.as_str()))),
        ("path", Arc::new(StringArray::from_iter_values(files.iter().map(DataFile::path)))),
        ("size", Arc::new(Int64Array::from_iter_values(files.iter().map(|file| file.bytes)))),
        ("kind", texts(files.iter().map(|file| if file.is_log { "log" } else { "base" }))),
        ("file_id", texts(files.iter().map(|file| file.file_id.as_str()))),
        ("instant", texts(files.iter().map(|file| file.instant.as_str()))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, DataType::clone(array.data_type()), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(arrow_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Completed;

    /// The names of the live files among `names`, all in one partition.
    fn live_names(names: &[&str], replaced: &[&str], timeline: &Timeline, version: u32) -> Vec<String> {
        let files = names.iter().map(|name| DataFile::new("p", name, 1)).collect();
        let replaced = replaced.iter().map(|id| (*id).to_owned()).collect();
        let live = live(files, &BTreeMap::from([("p".to_owned(), replaced)]), timeline, version);
        live.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn the_newest_base_file_and_the_logs_of_later_commits_are_live() {
        let base = |instant: &str| format!("g_1-2-3_{instant}.parquet");
        let log = |instant: &str| format!(".g_{instant}.log.1_1-2-3");
        let (old, new) = (base("20250101000000001"), base("20250101000000004"));
        // `across` is a log of a commit that began before the compaction and was completed after it.
        let (across, before) = (log("20250101000000003"), log("20250101000000002"));
        let names = [&*old, &new, &across, &before, "h_1-2-3_20250101000000001.parquet"];
        let mut timeline = Timeline::default();
        for (instant, done) in [("2", "3"), ("3", "9"), ("4", "5")] {
            let [instant, done] = [instant, done].map(|digit| format!("2025010100000000{digit}"));
            timeline.completed.insert(instant, Completed::new("deltacommit", Some(&done)));
        }
        assert_eq!(live_names(&names, &["h"], &timeline, 8), [&*new, &across]);
        // In old tables, the name of a log has the instant of its base file.
        let own = log("20250101000000004");
        let names = [&*old, &new, &across, &own];
        assert_eq!(live_names(&names, &[], &timeline, 6), [&*new, &own]);
        assert_eq!(live_names(&["other.parquet"], &[], &timeline, 8), ["other.parquet"]);
    }
}
