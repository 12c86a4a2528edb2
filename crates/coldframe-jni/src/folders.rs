//! The files of a Hive metastore's table: the files in the folders of its partitions, wherever the folders
//! are.
//!
//! ```text
//! [{"path": "hdfs://nn/wh/t/dt=2014-01-01", "values": ["dt", "2014-01-01"]}, ..]      as io.coldframe.spark.HiveTable writes them
//! ```
//! With `"whole": true` a folder is one table: a transactional table or a partition of such a table.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use coldframe::dataset::discovery::discover;
use coldframe::dataset::storage::os_path;
use coldframe::dataset::{FileEntry, Given, Opening};
use coldframe::load::path;
use coldframe::{Error, Result};
use serde_json::Value as Json;

/// The files of all folders, with the values of their partitions.
pub fn files(folders: &Json, opening: &Opening) -> Result<Vec<Given>> {
    let wrong = || Error::invalid(format!("expected folders, found {folders}"));
    let mut all = Vec::new();
    for folder in folders.as_array().ok_or_else(wrong)? {
        let text = |value: &Json| value.as_str().map(str::to_owned).ok_or_else(wrong);
        let path = path(folder.get("path").and_then(Json::as_str).ok_or_else(wrong)?);
        let values = folder.get("values").and_then(Json::as_array).ok_or_else(wrong)?;
        let values = values.iter().map(text).collect::<Result<Vec<_>>>()?;
        let pairs =
            values.chunks_exact(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
        let pairs: Vec<_> = pairs.collect();
        if is_whole(folder) {
            all.push(Given::Entry(FileEntry { path, pairs, known: None, listed: false, rows: None }));
            continue;
        }
        for entry in discover(opening.storage.as_ref(), &os_path(&path), false)? {
            check_in(&entry, &path)?;
            // The files are not marked as `listed`, so that a file of another kind is an error, as with
            // Spark's reader, and is not left out.
            all.push(Given::Entry(FileEntry { pairs: pairs.clone(), listed: false, ..entry }));
        }
    }
    Ok(all)
}

/// Whether a folder is one table. For a list of folders, whether the first folder is one table.
pub fn is_whole(folder: &Json) -> bool {
    let first = folder.as_array().and_then(|all| all.first()).unwrap_or(folder);
    first.get("whole").and_then(Json::as_bool).unwrap_or(false)
}

/// Checks that a file is directly in its folder: Hive's readers in Spark read no sub-folders.
fn check_in(entry: &FileEntry, folder: &str) -> Result<()> {
    let behind_host = folder
        .split_once("://")
        .map_or(folder, |(_, rest)| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default());
    let parent = entry.path.rsplit_once('/').map(|(parent, _)| parent).unwrap_or_default();
    if parent.ends_with(behind_host.trim_end_matches('/')) {
        return Ok(());
    }
    Err(Error::unsupported(
        "a file in a sub-folder of a partition; Hive's readers in Spark read no sub-folders",
    )
    .in_file(entry.path.as_str()))
}

/// The names of the partition columns.
pub fn keys(folders: &Json) -> Vec<String> {
    let first = folders.as_array().and_then(|all| all.first());
    let values = first.and_then(|folder| folder.get("values")).and_then(Json::as_array);
    let names = values.into_iter().flatten().step_by(2).filter_map(Json::as_str);
    names.map(str::to_lowercase).collect()
}

/// The types of partition columns, with names in lower case, as a metastore has them.
pub fn partition_types(columns: &Schema) -> SchemaRef {
    let fields =
        columns.fields().iter().map(|field| field.as_ref().clone().with_name(field.name().to_lowercase()));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_directly_in_their_folder() {
        let file = |path: &str| FileEntry { path: path.to_owned(), ..FileEntry::default() };
        for (path, folder) in [
            ("/wh/t/0", "/wh/t"),
            ("/wh/t/0", "/wh/t/"),
            ("/wh/t/0", "file:///wh/t"),
            ("hdfs://nn:8020/wh/t/dt=1/0", "hdfs://nn:8020/wh/t/dt=1"),
        ] {
            check_in(&file(path), folder).unwrap();
        }
        for (path, folder) in [("/wh/t/more/0", "/wh/t"), ("hdfs://nn/wh/t/dt=1/0", "hdfs://nn/wh/t")] {
            assert!(check_in(&file(path), folder).is_err(), "{path}");
        }
    }
}
