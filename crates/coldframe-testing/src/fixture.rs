//! The test files and their manifests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use coldframe_core::{OpenOptions, SchemaSpec, Source, Value};
use serde_json::Value as Json;

/// One entry of a manifest.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The path of the file.
    pub path: PathBuf,
    /// The manifest's entry.
    pub entry: Json,
}

impl Fixture {
    /// The file's name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Bytes {
        fs::read(&self.path).unwrap_or_else(|e| panic!("{}: {e}", self.path.display())).into()
    }

    /// The options with which the file is opened: the options under `open` in the entry.
    pub fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::default();
        for (name, value) in self.entry.get("open").and_then(Json::as_object).into_iter().flatten() {
            match name.as_str() {
                "schema" => options.schema = Some(SchemaSpec::Ddl(value.as_str().unwrap().to_owned())),
                _ => {
                    options.extra.insert(name.clone(), to_value(value));
                }
            }
        }
        options
    }

    /// A number of the entry.
    pub fn number(&self, key: &str) -> u64 {
        self.entry[key].as_u64().unwrap_or_else(|| panic!("{}: no number {key}", self.name()))
    }
}

/// `bytes` as an open file.
pub fn source(bytes: impl Into<Bytes>) -> Source {
    Source::file("memory", std::sync::Arc::new(bytes.into()))
}

fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap()), Value::Int),
        Json::String(s) => Value::Str(s.clone()),
        Json::Array(all) => Value::List(all.iter().map(to_value).collect()),
        Json::Object(all) => Value::Map(all.iter().map(|(k, v)| (k.clone(), to_value(v))).collect()),
    }
}

/// The committed test data.
pub fn data() -> PathBuf {
    root().join("tests/data")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of a format in a larger corpus: under `COLDFRAME_CORPUS`, or in a folder `corpus` of a
/// directory beside the checkout. Tests that use it are skipped if it does not exist.
pub fn larger_corpus(format: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("COLDFRAME_CORPUS") {
        Some(given) => Some(PathBuf::from(given).join(format)),
        None => fs::read_dir(root().parent()?)
            .ok()?
            .flatten()
            .map(|e| e.path().join("corpus").join(format))
            .find(|p| p.is_dir()),
    };
    folder.filter(|p| p.join("MANIFEST.json").is_file())
}

/// A JSON file.
pub fn json(path: &Path) -> Json {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The entries of a manifest, one for each way of reading a file.
pub fn manifest(path: &Path) -> Vec<Fixture> {
    let folder = path.parent().unwrap();
    let all = json(path);
    all.as_array()
        .unwrap()
        .iter()
        .map(|entry| Fixture { path: folder.join(entry["file"].as_str().unwrap()), entry: entry.clone() })
        .collect()
}

/// The entries of the committed files of `format`, and of the larger corpus if it exists.
pub fn files(format: &str) -> Vec<Fixture> {
    let mut all = manifest(&data().join(format).join("files/MANIFEST.json"));
    if let Some(folder) = larger_corpus(format) {
        all.extend(manifest(&folder.join("MANIFEST.json")));
    }
    assert!(!all.is_empty(), "no {format} fixtures");
    all
}

/// The first entry of each file.
pub fn distinct(fixtures: Vec<Fixture>) -> Vec<Fixture> {
    let mut seen = BTreeMap::new();
    for fixture in fixtures {
        seen.entry(fixture.path.clone()).or_insert(fixture);
    }
    seen.into_values().collect()
}
