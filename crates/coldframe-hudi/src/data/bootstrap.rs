//! Bootstrapped tables: their first base files hold only the meta columns, and the rows lie in files of the source.
//!
//! ```text
//! .hoodie/.aux/.bootstrap/.fileids/*.hfile     part=<partition>;fileid=<file id>  ->  Avro container: bootstrapFileStatus.path.uri
//! ```
//!
//! Row n of a base file of the instant 00000000000001 belongs to row n of the file of the source.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Fields, Schema as ArrowSchema};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{BatchIter, DecodeUnit, Error, ReadAt, Result, Unit, arrow_error};
use coldframe_hfile::CellReader;
use serde_json::Value as Json;

use crate::data::commit;

/// The instant of base files whose rows lie in the source.
pub(crate) const INSTANT: &str = "00000000000001";
const INDEX: &str = ".hoodie/.aux/.bootstrap/.fileids";

/// The files of the source, by partition and file group.
pub(crate) type Sources = BTreeMap<(String, String), String>;

/// Reads the index of file groups; empty if there is no index.
pub(crate) fn sources(folder: &dyn Folder, options: &coldframe_hfile::Options) -> Result<Sources> {
    let listed = match folder.list(INDEX) {
        Err(e) if e.is_not_found() => return Ok(Sources::new()),
        listed => listed?,
    };
    let mut sources = Sources::new();
    for entry in listed.iter().filter(|e| !e.is_folder && e.path.ends_with(".hfile")) {
        let read = |sources: &mut Sources| -> Result<()> {
            let raw = Arc::new(coldframe_hfile::open(folder.open(&entry.path)?, options)?);
            raw.check()?;
            let mut cells = CellReader::new(raw);
            while let Some(cell) = cells.next()? {
                let key = String::from_utf8_lossy(cell.row).into_owned();
                let parts = key.strip_prefix("part=").and_then(|rest| rest.rsplit_once(";fileid="));
                let (partition, file_id) = parts.ok_or_else(|| {
                    Error::corrupt(format!("expected a file group as a key, found {key:?}"))
                })?;
                let json = commit::json(cell.value, &options.limits)?.unwrap_or(Json::Null);
                let uri = json.pointer("/bootstrapFileStatus/path/uri").and_then(Json::as_str);
                let uri = uri
                    .ok_or_else(|| Error::corrupt("expected the path of a file of the source, found none"))?;
                sources.insert((partition.to_owned(), file_id.to_owned()), uri.to_owned());
            }
            Ok(())
        };
        read(&mut sources).map_err(|e| e.in_file(entry.path.clone()))?;
    }
    Ok(sources)
}

/// Opens a file of the source. `base`: where the source was; `now`: where the source is, if the user says so.
pub(crate) fn open_source(uri: &str, base: Option<&str>, now: Option<&str>) -> Result<Arc<dyn ReadAt>> {
    let plain = |path: &str| {
        let path = path.strip_prefix("file:").map_or(path, |rest| {
            // file:/path, file:///path
            rest.strip_prefix("//").unwrap_or(rest)
        });
        path.trim_end_matches('/').to_owned()
    };
    let path = match (now, base.map(plain)) {
        (Some(now), Some(base)) => {
            let own = plain(uri);
            let below = own.strip_prefix(&base).map(|rest| rest.trim_start_matches('/').to_owned());
            let below = below.ok_or_else(|| {
                Error::unsupported(format!("a file of a bootstrap's source that is not below {base}: {own}"))
            })?;
            format!("{}/{below}", now.trim_end_matches('/'))
        }
        _ => plain(uri),
    };
    let source = coldframe_store::open(path.as_ref(), &BTreeMap::new(), None).map_err(|e| {
        e.in_file(path.clone()).within("source of a bootstrapped table (option `bootstrap_base`)")
    })?;
    Ok(source.bytes()?.clone())
}

/// One unit of the rows of both files.
pub(crate) fn zipped(skeleton: Vec<Unit>, source: Vec<Unit>) -> Unit {
    let fetch = skeleton.iter().chain(&source).flat_map(|unit| unit.fetch.iter().cloned()).collect();
    let bytes = 0..skeleton.iter().map(|unit| unit.bytes.end).max().unwrap_or(0);
    let rows = skeleton.iter().try_fold(0_u64, |sum, unit| sum.checked_add(unit.rows?));
    let structure = "bootstrapped rows".to_owned();
    Unit { fetch, bytes, rows, structure, decode: Box::new(Zipped { skeleton, source }) }
}

struct Zipped {
    skeleton: Vec<Unit>,
    source: Vec<Unit>,
}

impl DecodeUnit for Zipped {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut bytes = bytes.into_iter();
        let mut decoded = |units: Vec<Unit>| -> Result<VecDeque<RecordBatch>> {
            let mut batches = VecDeque::new();
            for unit in units {
                let own = bytes.by_ref().take(unit.fetch.len()).collect();
                for batch in unit.decode.decode(own)? {
                    batches.push_back(batch?);
                }
            }
            Ok(batches)
        };
        let (skeleton, source) = (decoded(self.skeleton)?, decoded(self.source)?);
        let count =
            |batches: &VecDeque<RecordBatch>| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        if count(&skeleton) != count(&source) {
            return Err(Error::corrupt(format!(
                "expected as many rows in the source of a bootstrap as in its base file, {}, found {}",
                count(&skeleton),
                count(&source)
            )));
        }
        let Some(first) = skeleton.front() else { return Ok(Box::new(std::iter::empty())) };
        let schema = first.schema();
        let meta = concat_batches(&schema, &skeleton).map_err(arrow_error)?;
        let mut at = 0;
        Ok(Box::new(source.into_iter().map(move |batch| {
            let own = meta.slice(at, batch.num_rows());
            at += batch.num_rows();
            joined(&own, &batch)
        })))
    }
}

/// The columns of both batches.
fn joined(meta: &RecordBatch, rows: &RecordBatch) -> Result<RecordBatch> {
    let is_new = |name: &str| meta.column_by_name(name).is_none();
    let schema = rows.schema();
    let own = schema.fields().iter().zip(rows.columns()).filter(|(f, _)| is_new(f.name()));
    let own: Vec<_> = own.map(|(f, c)| (f.clone(), c.clone())).collect();
    let schema = meta.schema();
    let fields = schema.fields().iter().cloned().chain(own.iter().map(|(f, _)| f.clone()));
    let fields: Fields = fields.collect();
    let columns = meta.columns().iter().cloned().chain(own.into_iter().map(|(_, c)| c)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)
        .map_err(arrow_error)
}
