//! Whole files and directories of each format, checked against the laws that need no intact original.

use std::path::Path;
use std::sync::Arc;

use coldframe::{ErrorKind, OpenOptions, SchemaSpec, Source, TableFile, Value};
use coldframe_testing::counted::Counted;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws;

use crate::{archive, limits};

/// Types for the columns of any RCFile: one type of each kind, flat and nested.
pub const SCHEMA: &str = "a bigint, b string, c decimal(9,2), d timestamp, e boolean, f array<map<string,int>>, \
     g struct<x:date,y:char(3)>, h uniontype<int,string>, i binary, j varchar(4), k double, l tinyint, m smallint, \
     n float, o int, p timestamp with local time zone, q interval_year_month, r interval_day_time, \
     s map<int,array<struct<t:decimal(38,10),u:uniontype<bigint,array<binary>>>>>";

/// The table, if the input opens. Panics on an unknown or invalid option, since the target would then silently test nothing.
fn open(name: &str, source: Source, options: &OpenOptions) -> Option<Arc<dyn TableFile>> {
    match coldframe::open_source(source, Some(name), options, Vec::new()) {
        Ok(file) => Some(file.table),
        Err(e) => {
            // For Kudu it is also an error if a directory has several tables and no name is given, or no table of the given
            // name.
            assert!(!matches!(e.kind(), ErrorKind::InvalidArgument(_)) || name == "kudu", "{e}");
            None
        }
    }
}

/// A source that returns errors to a reader that never ends.
fn source(bytes: Vec<u8>) -> Source {
    Source::file("memory", Arc::new(Counted::new(bytes)))
}

/// Options by name.
pub fn options<'a>(extra: impl IntoIterator<Item = (&'a str, Value)>) -> OpenOptions {
    let extra = extra.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    OpenOptions { limits: limits(), extra, ..OpenOptions::default() }
}

fn file(name: &str, bytes: &[u8], options: &OpenOptions) {
    if let Some(table) = open(name, source(bytes.to_vec()), options) {
        let len = bytes.len() as u64;
        // One split per byte would take seconds; the crates' own tests cover that.
        laws::assert_tolerant(table.as_ref(), Some(len), &[len / 16 + 1, len / 3 + 1]);
    }
}

/// Reads in nanoseconds and in microseconds; recovers the file without its tail, using its former schema.
pub fn orc(bytes: &[u8]) {
    file("orc", bytes, &options([("timestamp_unit", Value::from("us"))]));
    let plain = options([]);
    let Some(table) = open("orc", source(bytes.to_vec()), &plain) else { return };
    recover("orc", bytes, table.as_ref(), options([("recover", Value::Bool(true))]));
}

fn recover(name: &str, bytes: &[u8], table: &dyn TableFile, mut options: OpenOptions) {
    options.schema = Some(SchemaSpec::Arrow(table.schema().clone()));
    if let Some((_, cut)) = bytes.split_last() {
        file(name, cut, &options);
    }
}

/// Reads cells as bytes, as text, and as LazyBinary.
pub fn rcfile(bytes: &[u8]) {
    file("rcfile", bytes, &options([]));
    for serde in ["text", "binary"] {
        let mut options = options([("serde", Value::from(serde))]);
        options.schema = Some(SchemaSpec::Ddl(SCHEMA.to_owned()));
        file("rcfile", bytes, &options);
    }
}

/// Reads in both views, and Avro values as structs.
pub fn hfile(bytes: &[u8]) {
    for view in ["cells", "kv"] {
        file("hfile", bytes, &options([("view", Value::from(view))]));
    }
    file("hfile", bytes, &options([("decode", Value::from("avro"))]));
}

/// Reads with and without verifying checksums.
pub fn cfile(bytes: &[u8]) {
    for skip_checksums in [true, false] {
        let options = options([("ordinal", Value::Bool(true))]);
        file("cfile", bytes, &OpenOptions { skip_checksums, ..options });
    }
}

/// Reads the file with its own footer, with an arbitrary footer, and from its pages alone with the schema of
/// its footer.
pub fn redfile(bytes: &[u8]) {
    file("redfile", bytes, &options([]));
    file("redfile", bytes, &options([("recover", Value::Bool(true))]));
    if let Some(table) = open("redfile", source(bytes.to_vec()), &options([])) {
        recover("redfile", bytes, table.as_ref(), options([]));
    }
}

fn directory(bytes: &[u8], name: &str, options: &OpenOptions) {
    let folder = archive::unpack(bytes);
    if let Some(table) = open(name, folder.source(), options) {
        laws::assert_tolerant(table.as_ref(), None, &[1 << 11, 1 << 14]);
    }
}

/// Reads a Kudu data directory: without a table's name, and with the name of each table.
pub fn kudu(bytes: &[u8]) {
    for table in [None, Some("events"), Some("numbers")] {
        let extra = table.map(|name| ("table", Value::from(name)));
        directory(bytes, "kudu", &options(extra));
    }
}

/// Reads a Hudi metadata table.
pub fn hudi(bytes: &[u8]) {
    directory(bytes, "hfile", &options([]));
    directory(bytes, "hfile", &options([("decode", Value::from("avro"))]));
}

/// Reads a whole Hudi table: its timeline, its logs with records, deletes and commands.
pub fn hudi_data(bytes: &[u8]) {
    directory(bytes, "hudi", &options([]));
    directory(bytes, "hudi", &options([("hudi_reader", Value::from("1.x"))]));
    directory(bytes, "hudi", &options([("view", Value::from("incremental")), ("begin", Value::from("0"))]));
}

/// Seeds: small tables of both layouts of the timeline.
pub fn hudi_data_tables() -> Vec<Vec<u8>> {
    coldframe_testing::hudi::seeds().iter().map(archive::pack).collect()
}

/// Reads a transactional Hive table.
pub fn acid(bytes: &[u8]) {
    directory(bytes, "orc", &options([("acid", Value::Bool(true))]));
}

/// Seeds: the committed files of a format.
pub fn files_of(format: &str) -> Vec<Vec<u8>> {
    let all = fixture::manifest(&fixture::data().join(format).join("files/MANIFEST.json"));
    let files = fixture::distinct(all).into_iter().filter(|f| f.path.is_file());
    files.map(|f| f.bytes().to_vec()).filter(|b| b.len() < 40_000).collect()
}

/// Seeds: the CFiles in the Kudu directory whose blocks are files.
pub fn cfiles() -> Vec<Vec<u8>> {
    let folder = MemoryFolder::load(&fixture::data().join("kudu/files/file_blocks"));
    let files = folder.files.into_values().filter(|b| b.starts_with(b"kuducfl2") && b.len() < 20_000);
    files.map(Vec::from).collect()
}

/// Seeds: Kudu's directories, without files that only a running server reads.
pub fn kudu_directories() -> Vec<Vec<u8>> {
    ["file_blocks", "log_blocks", "replicas", "encrypted"]
        .iter()
        .map(|name| {
            let mut folder = MemoryFolder::load(&fixture::data().join("kudu/files").join(name));
            folder.files.retain(|path, _| !path.contains("wal"));
            archive::pack(&folder)
        })
        .collect()
}

/// Seeds: the table that Hive wrote.
pub fn acid_tables() -> Vec<Vec<u8>> {
    vec![archive::pack(&MemoryFolder::load(&fixture::data().join("orc/files/acid_table")))]
}

/// Seeds: the metadata table of the table that Hudi wrote, unpacked by `tar`.
pub fn hudi_tables() -> Vec<Vec<u8>> {
    let archives = std::fs::read_dir(fixture::data().join("hudi")).expect("test data of Hudi");
    let mut seeds = Vec::new();
    for path in
        archives.map(|e| e.expect("a directory").path()).filter(|p| p.extension().is_some_and(|e| e == "gz"))
    {
        let to = std::env::temp_dir().join(format!("coldframe-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&to).expect("a temporary folder");
        let done = std::process::Command::new("tar").arg("xzf").arg(&path).arg("-C").arg(&to).status();
        assert!(done.is_ok_and(|s| s.success()), "tar of {}", path.display());
        let mut roots = Vec::new();
        metadata_tables(&to, &mut roots);
        seeds.extend(roots.iter().map(|root| archive::pack(&MemoryFolder::load(root))));
        std::fs::remove_dir_all(&to).expect("a temporary folder");
    }
    seeds
}

fn metadata_tables(folder: &Path, tables: &mut Vec<std::path::PathBuf>) {
    for path in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("a folder").path()) {
        if path.is_dir() {
            if path.ends_with(".hoodie/metadata") {
                tables.push(path.clone());
            }
            metadata_tables(&path, tables);
        }
    }
}
