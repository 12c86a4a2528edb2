//! What a metastore says becomes a definition of a table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_cast::display::array_value_to_string;
use coldframe_core::{OpenOptions, Result, SchemaSpec, Value};

use super::*;
use crate::dataset::storage::{Storage as _, Stores};
use crate::dataset::{Columns, ColumnsBy, TableDef};

const ORC: &str = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat";
const RC: &str = "org.apache.hadoop.hive.ql.io.RCFileInputFormat";

fn columns(of: &[(&str, &str)]) -> Vec<Column> {
    of.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: (*kind).to_owned() }).collect()
}

fn properties_of(of: &[(&str, &str)]) -> Properties {
    of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn storage(format: &str, of: &[(&str, &str)]) -> Storage {
    Storage { columns: columns(of), input_format: Some(format.to_owned()), ..Storage::default() }
}

fn partition(root: &Path, folder: &str, values: &[&str], storage: Storage) -> Partition {
    let location = root.join(folder);
    fs::create_dir_all(&location).unwrap();
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    let location = location.to_str().unwrap().to_owned();
    Partition { values, storage, parameters: Properties::new(), location }
}

fn defined(definition: &Definition, partitions: Vec<Partition>) -> Result<TableDef> {
    let options = OpenOptions::default();
    let storage = |_: &str| Ok(Arc::new(Stores::default()) as Arc<dyn crate::dataset::Storage>);
    table_def(definition, partitions, &Access { options: &options, storage: &storage })
}

/// The values of the files' constants.
fn values_of(table: &TableDef) -> Vec<String> {
    let mut all = Vec::new();
    for group in &table.groups {
        for file in &group.files {
            let constants = file.constants_in(&group.constants).unwrap();
            let shown = constants.iter().map(|(_, value)| array_value_to_string(value, 0).unwrap());
            all.push(shown.collect::<Vec<_>>().join("/"));
        }
    }
    all
}

#[test]
fn partitions_that_are_read_in_the_same_way_form_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let of_table = storage(ORC, &[("id", "bigint"), ("name", "varchar(3)")]);
    let serde = |storage: Storage| Storage { serde: Some("x.ColumnarSerDe".to_owned()), ..storage };
    let old = serde(storage(RC, &[("key", "int")]));
    let partitions = vec![
        partition(dir.path(), "a", &["1"], old.clone()),
        partition(dir.path(), "b", &["abc"], of_table.clone()),
        partition(dir.path(), "c", &["3"], old),
    ];
    for file in ["a/0", "b/0", "b/_hidden", "c/0", "c/1"] {
        fs::write(dir.path().join(file), b"x").unwrap();
    }
    fs::write(dir.path().join("b/empty"), b"").unwrap();
    let definition = Definition {
        name: "db.t".to_owned(),
        storage: of_table,
        keys: columns(&[("p", "int")]),
        parameters: properties_of(&[("field.delim", "|"), ("numRows", "7")]),
        ..Definition::default()
    };
    let table = defined(&definition, partitions).unwrap();
    let Columns::Stated(stated) = &table.columns else { panic!("{:?}", table.columns) };
    assert_eq!(stated[1].declared.as_deref(), Some("varchar(3)"));
    assert_eq!(table.schema().unwrap().fields().len(), 3);
    let [rc, orc] = table.groups.as_slice() else { panic!("{} groups", table.groups.len()) };
    assert_eq!((&rc.matching, &orc.matching), (&ColumnsBy::Position, &ColumnsBy::Hive));
    assert_eq!((rc.files.len(), orc.files.len()), (3, 1));
    assert_eq!(values_of(&table), ["1", "3", "3", ""]);
    assert_eq!(rc.own[0].declared.as_deref(), Some("int"));
    let options = &rc.opening.options;
    assert!(matches!(&options.schema, Some(SchemaSpec::Ddl(text)) if text == "`key` int"));
    assert_eq!(options.extra["serde"], Value::Str("x.ColumnarSerDe".to_owned()));
    assert_eq!(options.extra["serde_properties"], Value::map([("field.delim", Value::Str("|".to_owned()))]));
    assert!(orc.opening.options.schema.is_none() && orc.opening.options.extra.is_empty());
}

#[test]
fn folders_are_the_partitions_if_no_partitions_are_registered() {
    let dir = tempfile::tempdir().unwrap();
    let whole = partition(dir.path(), "t", &[], storage(ORC, &[("id", "bigint")]));
    for file in
        ["dt=2014-1-2/r=a%2Fb/more/0", "dt=2014-1-2/r=a%2Fb/1", "dt=x/r=c/0", "dt=2014-01-01/0", "r=a/dt=1/0"]
    {
        let path = dir.path().join("t").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"x").unwrap();
    }
    let definition = Definition {
        keys: columns(&[("dt", "date"), ("r", "string")]),
        by_folders: true,
        storage: whole.storage.clone(),
        ..Definition::default()
    };
    let table = defined(&definition, vec![whole]).unwrap();
    assert_eq!(values_of(&table), ["2014-01-02/a/b", "2014-01-02/a/b", "/c"]);
    assert_eq!(table.groups[0].constants.num_rows(), 2);
}

#[test]
fn what_is_not_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let text = storage("org.apache.hadoop.mapred.TextInputFormat", &[("id", "bigint")]);
    let definition =
        Definition { name: "db.t".to_owned(), keys: columns(&[("p", "int")]), ..Definition::default() };
    let e = defined(&definition, vec![partition(dir.path(), "a", &["1"], text)]).unwrap_err().to_string();
    assert!(e.contains("db.t p=1: files of TextInputFormat"), "{e}");
    let orc = storage(ORC, &[("id", "bigint")]);
    let mut missing = partition(dir.path(), "b", &["1"], orc.clone());
    fs::remove_dir(dir.path().join("b")).unwrap();
    assert!(defined(&definition, vec![missing.clone()]).unwrap_err().is_not_found());
    missing.location = String::new();
    assert!(
        defined(&definition, vec![missing]).unwrap_err().to_string().contains("db.t p=1: it has no location")
    );
    let two = partition(dir.path(), "c", &["1", "2"], orc.clone());
    assert!(
        defined(&definition, vec![two]).unwrap_err().to_string().contains("expected 1 values of a partition")
    );
    let odd = Definition { storage: storage(ORC, &[("id", "blob")]), ..definition.clone() };
    let e = defined(&odd, Vec::new()).unwrap_err().to_string();
    assert!(e.contains("column `id`: ") && e.contains("blob"), "{e}");
    let empty = defined(&definition, vec![partition(dir.path(), "d", &["1"], orc)]).unwrap();
    assert!(empty.is_empty());
}

#[test]
fn a_partition_inherits_and_overrides_properties() {
    let of_table = Storage {
        serde_properties: properties_of(&[("field.delim", "a"), ("mapkey.delim", "a")]),
        ..Storage::default()
    };
    let definition = Definition {
        storage: of_table.clone(),
        parameters: properties_of(&[("field.delim", "b"), ("numRows", "1")]),
        ..Definition::default()
    };
    let own = Storage { serde_properties: properties_of(&[("collection.delim", "c")]), ..Storage::default() };
    let partition = Partition {
        storage: own,
        parameters: properties_of(&[("collection.delim", "d"), ("timestamp.formats", "e")]),
        ..Partition::default()
    };
    let of_table = properties_of(&[("field.delim", "b"), ("mapkey.delim", "a")]);
    assert_eq!(definition.serde_properties(&partition), of_table);
    let keyed = Definition { keys: columns(&[("p", "int")]), ..definition };
    let more = properties_of(&[("collection.delim", "d"), ("timestamp.formats", "e")]);
    assert_eq!(
        keyed.serde_properties(&partition),
        of_table.into_iter().chain(more).collect::<BTreeMap<_, _>>()
    );
}

#[test]
fn definitions_of_hudi_tables_say_which_view_they_show() {
    const PLAIN: &str = "org.apache.hudi.hadoop.HoodieParquetInputFormat";
    const WITH_LOGS: &str = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat";
    let none = Properties::new();
    let of_spark = properties_of(&[("spark.sql.sources.provider", "HUDI")]);
    let optimized = properties_of(&[("hoodie.query.as.ro.table", "true")]);
    let merged = properties_of(&[("hoodie.query.as.ro.table", "false")]);
    let view = properties::hudi_view;
    assert_eq!(view(Some(RC), &none, &optimized), None);
    assert_eq!(view(None, &properties_of(&[("spark.sql.sources.provider", "orc")]), &none), None);
    assert_eq!(view(Some(PLAIN), &none, &none), Some("read_optimized"));
    assert_eq!(view(Some("com.uber.hoodie.hadoop.HoodieInputFormat"), &none, &none), Some("read_optimized"));
    assert_eq!(view(Some(WITH_LOGS), &none, &none), Some("snapshot"));
    assert_eq!(view(Some(PLAIN), &of_spark, &merged), Some("snapshot"));
    assert_eq!(view(Some(WITH_LOGS), &of_spark, &optimized), Some("read_optimized"));
    assert_eq!(view(Some("x.OrcInputFormat"), &of_spark, &none), Some("snapshot"));
    assert_eq!(view(None, &of_spark, &none), Some("snapshot"));
    assert_eq!(properties::declared_format(Some(WITH_LOGS), &none), "hudi");
}

#[test]
fn properties_say_where_files_are_and_what_they_are() {
    let none = Properties::new();
    let of_spark = properties_of(&[("spark.sql.sources.provider", "ORC")]);
    let path = properties_of(&[("path", "/real")]);
    let of = properties::location_of_files;
    assert_eq!(of("MANAGED_TABLE", Some("/l"), &none, &path), Some("/l"));
    assert_eq!(of("MANAGED_TABLE", Some("/l"), &of_spark, &path), Some("/real"));
    assert_eq!(of("MANAGED_TABLE", Some("/l"), &of_spark, &none), Some("/l"));
    assert_eq!(of("VIRTUAL_VIEW", Some("/l"), &none, &none), None);
    assert_eq!(of("", Some("/l"), &properties_of(&[("storage_handler", "x.H")]), &none), None);
    assert!(properties::are_registered(&none) && !properties::are_registered(&of_spark));
    assert_eq!(properties::declared_format(Some(RC), &none), "rcfile");
    assert_eq!(properties::declared_format(Some("x.TextInputFormat"), &none), "TextInputFormat");
    assert_eq!(properties::declared_format(Some(RC), &of_spark), "orc");
    assert_eq!(properties::declared_format(None, &none), "");
    assert!(Stores::default().is_of_this_machine(std::ffi::OsStr::new("/l")));
}
