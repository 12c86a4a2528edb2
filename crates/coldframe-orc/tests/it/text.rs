//! Reads text that is not UTF-8, such as Latin-1 from Hive: only these values are lost; if the column is
//! declared as binary, no value is lost.

use crate::support;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use bytes::Bytes;
use coldframe_core::{
    Change, DamageLog, OnError, OpenOptions, Scan, ScanReader, SchemaSpec, TableFile, Value,
};
use coldframe_testing::rows;
use support::{open, written};

/// Number of rows; values with the mark become invalid UTF-8.
const ROWS: i64 = 900;
const MARKED: [i64; 4] = [3, 250, 251, 899];
const MARK: &[u8] = b"caf#";
const LATIN: &[u8] = b"caf\xe9";

fn word(row: i64) -> String {
    if MARKED.contains(&row) { "un caf#".to_owned() } else { format!("w{}", row % 9) }
}

fn table() -> RecordBatch {
    let ids: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let dictionary_texts: ArrayRef =
        Arc::new((0..ROWS).map(|i| (i % 7 > 0).then(|| word(i))).collect::<StringArray>());
    let texts: ArrayRef =
        Arc::new((0..ROWS).map(|i| Some(format!("{i} {}", word(i)))).collect::<StringArray>());
    let (mut lists, mut keys) = (
        ListBuilder::new(StringBuilder::new()),
        MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()),
    );
    for i in 0..ROWS {
        lists.append_value((0..i % 3).map(|n| Some(format!("{n}"))).chain([Some(word(i))]));
        keys.keys().append_value(format!("{i}{}", word(i)));
        keys.values().append_value("v");
        keys.append(true).unwrap();
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let keys: ArrayRef = Arc::new(keys.finish());
    let inside: ArrayRef = Arc::new(StructArray::try_from(vec![("text", texts.clone())]).unwrap());
    let columns = [
        ("id", ids),
        ("word", dictionary_texts),
        ("text", texts),
        ("list", lists),
        ("map", keys),
        ("in", inside),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

/// A file of several stripes and row groups, with text in dictionaries and stored directly, whose marked
/// values are Latin-1.
fn latin() -> Bytes {
    let options = [
        ("codec", Value::from("none")),
        ("stripe_rows", Value::Int(300)),
        ("row_index_stride", Value::Int(100)),
    ];
    let mut bytes = written(&table(), &options).to_vec();
    let places: Vec<usize> = marks(&bytes);
    assert!(places.len() > MARKED.len());
    for at in places {
        bytes[at..at + LATIN.len()].copy_from_slice(LATIN);
    }
    bytes.into()
}

fn marks(bytes: &[u8]) -> Vec<usize> {
    bytes.windows(MARK.len()).enumerate().filter(|(_, w)| *w == MARK).map(|(at, _)| at).collect()
}

fn file(options: &OpenOptions) -> Arc<dyn TableFile> {
    open("latin", latin(), options).unwrap().file
}

fn dictionaries() -> OpenOptions {
    let mut options = OpenOptions::default();
    options.extra.insert("dictionary".into(), Value::Bool(true));
    options
}

fn only(column: &str, on_error: OnError) -> Scan {
    let columns = ["id", column].map(|name| name.to_owned());
    Scan { columns: Some(columns.to_vec()), on_error, ..Scan::default() }
}

const COLUMNS: [&str; 5] = ["word", "text", "list", "map", "in"];

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("id").unwrap().as_primitive::<arrow_array::types::Int64Type>().values().to_vec()
}

#[test]
fn an_error_names_column_row_and_solution() {
    for options in [OpenOptions::default(), dictionaries()] {
        for column in COLUMNS {
            let got = rows::scan(file(&options).as_ref(), &only(column, OnError::Raise), None).unwrap();
            let e = got.error.unwrap().to_string();
            assert!(e.contains("row 3;") && e.contains(column) && e.contains("binary"), "{column}: {e}");
        }
    }
}

#[test]
fn skip_loses_only_the_rows_of_malformed_values() {
    for options in [OpenOptions::default(), dictionaries()] {
        for column in COLUMNS {
            let got = rows::scan(file(&options).as_ref(), &only(column, OnError::Skip), None).unwrap();
            let want: Vec<i64> = (0..ROWS).filter(|i| !MARKED.contains(i)).collect();
            assert_eq!(ids(&got.batch), want, "{column}: {:?}", got.damage);
            let lost: Vec<_> = got.damage.iter().map(|d| d.rows_lost).collect();
            assert_eq!(lost, [Some(1); 4], "{column}");
            assert!(got.damage[1].reason.contains("row 250;"), "{}", got.damage[1].reason);
        }
        // A row is lost once, even if several columns lose it.
        let got = rows::read(file(&options).as_ref(), OnError::Skip).unwrap();
        let lost: u64 = got.damage.iter().map(|d| d.rows_lost.unwrap()).sum();
        assert_eq!((got.batch.num_rows(), lost), (896, 4));
        assert_eq!(got.damage.len(), MARKED.len() * COLUMNS.len());
    }
}

#[test]
fn null_loses_only_the_malformed_values() {
    let (whole, marked) = (table(), |row: usize| MARKED.contains(&i64::try_from(row).unwrap()));
    for column in COLUMNS {
        let got =
            rows::scan(file(&OpenOptions::default()).as_ref(), &only(column, OnError::Null), None).unwrap();
        assert_eq!(got.batch.num_rows(), whole.num_rows(), "{column}");
        assert_eq!(got.damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(0); 4], "{column}");
        let (actual, want) = (&got.batch.column(1).clone(), whole.column_by_name(column).unwrap());
        for row in 0..whole.num_rows() {
            if !marked(row) {
                let text = |array: &ArrayRef| {
                    rows::as_text(&RecordBatch::try_from_iter([("x", array.slice(row, 1))]).unwrap())
                };
                assert_eq!(text(actual), text(want), "{column}: {row}");
                continue;
            }
            match column {
                "list" => {
                    let (actual, want) =
                        (actual.as_list::<i32>().value(row), want.as_list::<i32>().value(row));
                    assert_eq!((actual.len(), actual.null_count()), (want.len(), 1), "{row}");
                }
                "in" => assert!(actual.is_valid(row) && actual.as_struct().column(0).is_null(row), "{row}"),
                // A map whose key is malformed becomes null.
                _ => assert!(actual.is_null(row), "{column}: {row}"),
            }
        }
    }
}

#[test]
fn malformed_values_are_counted() {
    for on_error in [OnError::Skip, OnError::Null] {
        let (file, log) = (file(&OpenOptions::default()), DamageLog::default());
        let scan = Scan { on_error, ..Scan::default() };
        for split in file.splits(u64::MAX).unwrap() {
            let mut reader = ScanReader::try_new(file.as_ref(), &scan, &split, log.clone()).unwrap();
            while reader.next_batch().unwrap().is_some() {}
        }
        assert_eq!(log.changes().count(Change::Text), (COLUMNS.len() * MARKED.len()) as u64);
    }
}

/// Any batch size gives the same values: those before and after a malformed value remain.
#[test]
fn the_batch_size_does_not_change_the_values() {
    let whole = rows::read(file(&OpenOptions::default()).as_ref(), OnError::Skip).unwrap();
    for batch_rows in [1, 7, 100, 450] {
        let scan = Scan { on_error: OnError::Skip, batch_rows, ..Scan::default() };
        let got = rows::scan(file(&OpenOptions::default()).as_ref(), &scan, None).unwrap();
        assert_eq!((got.batch, got.damage), (whole.batch.clone(), whole.damage.clone()), "{batch_rows}");
    }
}

#[test]
fn text_declared_as_binary_is_read_unchanged() {
    let schema =
        "word binary, text binary, list array<binary>, map map<binary,string>, `in` struct<text:binary>";
    let options = OpenOptions { schema: Some(SchemaSpec::Ddl(schema.to_owned())), ..OpenOptions::default() };
    let got = rows::read(file(&options).as_ref(), OnError::Raise).unwrap();
    assert!(got.error.is_none(), "{:?}", got.error);
    assert_eq!(got.batch.num_rows(), table().num_rows());
    let bytes = |text: &str| {
        text.replace('#', "\u{1}").into_bytes().into_iter().map(|b| if b == 1 { 0xe9 } else { b })
    };
    for row in [0usize, 1, 3, 250, 500, 899] {
        let i = i64::try_from(row).unwrap();
        let text: Vec<u8> = bytes(&format!("{i} {}", word(i))).collect();
        assert_eq!(got.batch.column_by_name("text").unwrap().as_binary::<i32>().value(row), text);
        assert_eq!(
            got.batch.column_by_name("in").unwrap().as_struct().column(0).as_binary::<i32>().value(row),
            text
        );
        let word: Option<Vec<u8>> = (i % 7 > 0).then(|| bytes(&word(i)).collect());
        let words = got.batch.column_by_name("word").unwrap().as_binary::<i32>();
        assert_eq!(words.is_valid(row).then(|| words.value(row).to_vec()), word, "{row}");
    }
}

#[test]
fn only_text_may_be_declared_as_binary() {
    for (schema, expected) in [
        ("id binary", "expected bigint, as the file has it, found binary"),
        ("id string", "expected bigint, as the file has it, found string"),
        (
            "nobody binary",
            "expected one of the file's columns (id, word, text, list, map, in), found `nobody`",
        ),
        ("list array<int>", "expected string, as the file has it, found int"),
    ] {
        let options =
            OpenOptions { schema: Some(SchemaSpec::Ddl(schema.to_owned())), ..OpenOptions::default() };
        let e = open("latin", latin(), &options).map(|_| ()).unwrap_err().to_string();
        assert!(e.contains(expected), "{schema}: {e}");
    }
}

/// A table's schema may have more columns than a file, and other types: if types differ, the file's type is
/// used.
#[test]
fn a_file_takes_binary_from_its_tables_schema() {
    let of_table = |schema: &str| {
        let mut options = OpenOptions { schema: Some(SchemaSpec::Ddl(schema.into())), ..Default::default() };
        options.extra.insert("schema_of".into(), Value::from("table"));
        options
    };
    let schema = "later int, ID string, Word binary, list array<binary>, in struct<more:int,text:binary>";
    let table = file(&of_table(schema));
    let kinds: Vec<String> = table.schema().fields().iter().map(|f| f.data_type().to_string()).collect();
    assert_eq!(kinds[..3], ["Int64", "Binary", "Utf8"], "{kinds:?}");
    assert!(kinds[3].contains("Binary") && kinds[5].contains("Binary"), "{kinds:?}");
    let got = rows::scan(table.as_ref(), &only("word", OnError::Raise), None).unwrap();
    assert_eq!(got.batch.column(1).as_binary::<i32>().value(3), b"un caf\xe9");
    // For a single file, the same schema is a mistake.
    let mut options = of_table(schema);
    options.extra.insert("schema_of".into(), Value::from("file"));
    assert!(open("latin", latin(), &options).is_err());
}
