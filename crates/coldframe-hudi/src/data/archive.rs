//! The archive of layout 2: when instants that the timeline no longer lists were completed.
//!
//! ```text
//! .hoodie/timeline/history/_version_           the number of the manifest that counts
//! .hoodie/timeline/history/manifest_<n>        JSON: files: fileName, fileLen
//! .hoodie/timeline/history/<min>_<max>_<level>.parquet     instantTime, completionTime, action, metadata, plan
//! ```
//!
//! Only the completion times are needed: a log whose commit began before a compaction and was completed after it belongs to
//! the base file of the compaction.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Limits, Result};
use serde_json::Value as Json;

use crate::data::commit;
use crate::data::parquet_file::ParquetFile;
use crate::data::properties::Properties;

/// Rows of a batch of an archive.
const ROWS: usize = 4096;

/// The completion times of archived instants; empty if there is no archive.
pub(crate) fn completions(
    folder: &dyn Folder,
    properties: &Properties,
    limits: &Limits,
) -> Result<BTreeMap<String, String>> {
    let timeline = properties.get("hoodie.timeline.path").unwrap_or("timeline");
    let history = properties.get("hoodie.timeline.history.path").unwrap_or("history");
    let at = format!(".hoodie/{timeline}/{history}");
    let Some(version) = read(folder, &format!("{at}/_version_"), limits)? else {
        return Ok(BTreeMap::new());
    };
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let manifest = format!("{at}/manifest_{version}");
    let Some(text) = read(folder, &manifest, limits)? else {
        return Err(Error::corrupt(format!("expected the manifest {manifest} of the archive, found none")));
    };
    let json = commit::parse(&text, limits).map_err(|e| e.in_file(manifest))?;
    let mut all = BTreeMap::new();
    for file in json.get("files").and_then(Json::as_array).into_iter().flatten() {
        let Some(name) = file.get("fileName").and_then(Json::as_str) else { continue };
        let path = format!("{at}/{name}");
        add(folder, &path, &mut all, limits).map_err(|e| e.in_file(path.clone()))?;
    }
    Ok(all)
}

fn read(folder: &dyn Folder, path: &str, limits: &Limits) -> Result<Option<Vec<u8>>> {
    match folder.open(path) {
        Ok(file) => {
            limits.metadata("archive of a timeline", file.len())?;
            Ok(Some(file.read(0..file.len())?.to_vec()))
        }
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Adds the completion times in a file.
fn add(folder: &dyn Folder, path: &str, all: &mut BTreeMap<String, String>, limits: &Limits) -> Result<()> {
    let file = ParquetFile::open(folder.open(path)?, limits)?;
    let columns = ["instantTime", "completionTime"].map(str::to_owned);
    for unit in file.units(&columns, &(0..u64::MAX), ROWS)? {
        let bytes = unit.fetch.iter().map(|fetch| fetch.source.read(fetch.range.clone()));
        for batch in unit.decode.decode(bytes.collect::<Result<_>>()?)? {
            let batch = batch?;
            let texts = |name: &str| {
                let column = batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
                column.ok_or_else(|| {
                    Error::corrupt(format!("expected a column `{name}` of text in an archive"))
                })
            };
            let (instants, ends) = (texts("instantTime")?, texts("completionTime")?);
            for (instant, end) in instants.iter().zip(ends) {
                if let (Some(instant), Some(end)) = (instant, end) {
                    all.insert(instant.to_owned(), end.to_owned());
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_table_without_archive_has_no_completion_times() {
        let folder: Arc<dyn Folder> = Arc::new(coldframe_store::LocalFolder::new("/nowhere"));
        let all = completions(folder.as_ref(), &Properties::default(), &Limits::default()).unwrap();
        assert!(all.is_empty());
    }
}
