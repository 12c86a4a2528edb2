//! The files of a table of a Hive metastore: those in the folders of its partitions, wherever these are.
//!
//! ```text
//! [{"path": "hdfs://nn/wh/t/dt=2014-01-01", "values": ["dt", "2014-01-01"]}, ..]      as io.coldframe.spark.HiveTable writes them
//! ```
//!
//! With `"whole": true` a folder is one table: that of a transactional table, or a partition of it.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use coldframe::dataset::discovery::discover;
use coldframe::dataset::storage::os_path;
use coldframe::dataset::{Found, Given, Opening};
use coldframe::load::path;
use coldframe::{Error, Result};
use serde_json::Value as Json;

/// The files of all folders, with the values of their partitions.
pub fn files(said: &Json, opening: &Opening) -> Result<Vec<Given>> {
    let wrong = || Error::invalid(format!("expected folders, found {said}"));
    let mut all = Vec::new();
    for folder in said.as_array().ok_or_else(wrong)? {
        let text = |one: &Json| one.as_str().map(str::to_owned).ok_or_else(wrong);
        let path = path(folder.get("path").and_then(Json::as_str).ok_or_else(wrong)?);
        let values = folder.get("values").and_then(Json::as_array).ok_or_else(wrong)?;
        let values = values.iter().map(text).collect::<Result<Vec<_>>>()?;
        let pairs =
            values.chunks_exact(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
        let pairs: Vec<_> = pairs.collect();
        if is_whole(folder) {
            all.push(Given::Found(Found { path, pairs, known: None, listed: false }));
            continue;
        }
        for found in discover(opening.storage.as_ref(), &os_path(&path), false)? {
            demand_in(&found, &path)?;
            // A file of another kind is an error, as with Spark's reader, and not left out.
            all.push(Given::Found(Found { pairs: pairs.clone(), listed: false, ..found }));
        }
    }
    Ok(all)
}

/// Whether a folder, or each of a list, is one table.
pub fn is_whole(said: &Json) -> bool {
    let one = said.as_array().and_then(|all| all.first()).unwrap_or(said);
    one.get("whole").and_then(Json::as_bool).unwrap_or(false)
}

/// Hive's readers in Spark take no files below sub-folders.
fn demand_in(found: &Found, folder: &str) -> Result<()> {
    let behind_host = folder
        .split_once("://")
        .map_or(folder, |(_, rest)| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default());
    let parent = found.path.rsplit_once('/').map(|(parent, _)| parent).unwrap_or_default();
    if parent.ends_with(behind_host.trim_end_matches('/')) {
        return Ok(());
    }
    Err(Error::unsupported("files below a sub-folder of a partition").in_file(found.path.as_str()))
}

/// The types of partition columns: a metastore's names are in lower case.
pub fn partition_types(columns: &Schema) -> SchemaRef {
    let fields =
        columns.fields().iter().map(|field| field.as_ref().clone().with_name(field.name().to_lowercase()));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_in_their_folder() {
        let file = |path: &str| Found { path: path.to_owned(), ..Found::default() };
        for (path, folder) in [
            ("/wh/t/0", "/wh/t"),
            ("/wh/t/0", "/wh/t/"),
            ("/wh/t/0", "file:///wh/t"),
            ("hdfs://nn:8020/wh/t/dt=1/0", "hdfs://nn:8020/wh/t/dt=1"),
        ] {
            demand_in(&file(path), folder).unwrap();
        }
        for (path, folder) in [("/wh/t/more/0", "/wh/t"), ("hdfs://nn/wh/t/dt=1/0", "hdfs://nn/wh/t")] {
            assert!(demand_in(&file(path), folder).is_err(), "{path}");
        }
    }
}
