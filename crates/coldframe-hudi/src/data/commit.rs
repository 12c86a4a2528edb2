//! What a commit recorded: the files that it wrote, the file groups that it replaced, and the table's schema.
//!
//! Hudi 0.x writes JSON, 1.x an Avro container; both have the same fields.

use std::collections::BTreeMap;

use coldframe_core::{Error, Limits, Result};
use serde_json::{Map, Value as Json};

use crate::avro::container;
use crate::avro::datum::Datum;
use crate::avro::schema::{Schema, Type, TypeId};

/// A file that a commit wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The partition's folder.
    pub partition: String,
    /// The file group.
    pub file_id: String,
    /// The path below the table.
    pub path: String,
    /// Whether it states that records were written or deleted.
    pub has_records: bool,
}

/// What a commit recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The files that the commit wrote.
    pub written: Vec<Written>,
    /// The file groups whose rows no longer count, by partition.
    pub replaced: Vec<(String, String)>,
    /// The non-empty entries of the commit's extra metadata.
    pub extra: BTreeMap<String, String>,
}

impl Commit {
    /// The commit in an instant's JSON.
    pub(crate) fn new(json: &Json) -> Self {
        let mut commit = Self::default();
        for (partition, stats) in entries(json, "partitionToWriteStats") {
            for stat in stats.as_array().into_iter().flatten() {
                let text = |key| stat.get(key).and_then(Json::as_str).map(str::to_owned);
                if let (Some(file_id), Some(path)) = (text("fileId"), text("path")) {
                    let count = |key| stat.get(key).and_then(Json::as_i64).unwrap_or(0);
                    let has_records = count("numWrites") > 0 || count("numDeletes") > 0;
                    let partition = partition.clone();
                    commit.written.push(Written { partition, file_id, path, has_records });
                }
            }
        }
        for (partition, ids) in entries(json, "partitionToReplaceFileIds") {
            let ids = ids.as_array().into_iter().flatten().filter_map(Json::as_str);
            commit.replaced.extend(ids.map(|id| (partition.clone(), id.to_owned())));
        }
        for (key, value) in entries(json, "extraMetadata") {
            if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
                commit.extra.insert(key.clone(), text.to_owned());
            }
        }
        commit
    }
}

fn entries<'a>(json: &'a Json, key: &str) -> impl Iterator<Item = (&'a String, &'a Json)> {
    json.get(key).and_then(Json::as_object).into_iter().flatten()
}

/// The content of a timeline's file, which is JSON or an Avro container; `None` if it is empty.
pub(crate) fn json(bytes: &[u8], limits: &Limits) -> Result<Option<Json>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if !bytes.starts_with(container::MAGIC) {
        return parse(bytes, limits).map(Some);
    }
    let mut first = None;
    container::read(bytes, limits, |schema, datum| {
        if first.is_none() {
            first = Some(of_datum(schema, schema.root(), datum));
        }
    })?;
    Ok(first)
}

/// Parses JSON. A value of two bytes takes several dozen bytes in memory, so the values are counted first.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Json> {
    let values = bytes.iter().filter(|b| matches!(b, b'[' | b'{' | b',' | b':')).count();
    let size = values.saturating_mul(size_of::<(String, Json)>()).saturating_add(bytes.len());
    limits.decoded("JSON of an instant", size as u64, bytes.len() as u64)?;
    serde_json::from_slice(bytes)
        .map_err(|e| Error::corrupt(format!("expected JSON or an Avro container, found {e}")))
}

/// A datum as JSON: bytes become text, since only fields that are never read have bytes.
fn of_datum(schema: &Schema, id: TypeId, datum: &Datum<'_>) -> Json {
    match (datum, schema.get(id)) {
        (Datum::Union(branch, inner), Type::Union(branches)) => {
            of_datum(schema, branches.get(*branch).copied().unwrap_or_default(), inner)
        }
        (Datum::Record(values), Type::Record { fields, .. }) => {
            let pairs = fields.iter().zip(values);
            Json::Object(pairs.map(|(f, v)| (f.name.clone(), of_datum(schema, f.of, v))).collect())
        }
        (Datum::Array(items), Type::Array(of)) => {
            Json::Array(items.iter().map(|v| of_datum(schema, *of, v)).collect())
        }
        (Datum::Map(items), Type::Map(of)) => {
            let pairs = items.iter().map(|(k, v)| ((*k).to_owned(), of_datum(schema, *of, v)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
        (Datum::Boolean(v), _) => Json::Bool(*v),
        (Datum::Long(v), _) => Json::from(*v),
        (Datum::Float(v), _) => Json::from(*v),
        (Datum::Double(v), _) => Json::from(*v),
        (Datum::String(v), _) => Json::from(*v),
        (Datum::Bytes(v) | Datum::Fixed(v), _) => Json::from(String::from_utf8_lossy(v)),
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_commit_are_read() {
        let text = br#"{"partitionToWriteStats":{"a":[{"fileId":"f","path":"a/f_1_2.parquet","prevCommit":null,"numWrites":2}],"b":[]},
            "extraMetadata":{"schema":"","latest_schema":"x"},"partitionToReplaceFileIds":{"a":["g","h"]}}"#;
        let commit = Commit::new(&json(text, &Limits::default()).unwrap().unwrap());
        let (partition, file_id, path) = ("a".into(), "f".into(), "a/f_1_2.parquet".into());
        let written = Written { partition, file_id, path, has_records: true };
        assert_eq!(commit.written, [written]);
        assert_eq!(commit.replaced, [("a".into(), "g".into()), ("a".into(), "h".into())]);
        assert_eq!(commit.extra.into_iter().collect::<Vec<_>>(), [("latest_schema".into(), "x".into())]);
        assert_eq!(json(b"", &Limits::default()).unwrap(), None);
        assert!(json(b"{", &Limits::default()).unwrap_err().is_damage());
    }
}
