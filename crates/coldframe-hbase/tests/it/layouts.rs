//! Views and dictionaries have the same rows as plain columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{BinaryArray, RecordBatch};
use arrow_schema::DataType;
use coldframe_core::options::Strings;
use coldframe_core::{DamageLog, Format, Op, OpenOptions, Predicate, Scan, ScanReader, TableFile, Value};
use coldframe_hbase::{HBaseFormat, HBaseTable};
use coldframe_hfile::RowQuery;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::{fixture, rows};

fn open(more: &[(&str, Value)]) -> Arc<dyn TableFile> {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let fixed = [("table", Value::from("shop:orders")), ("as_of", Value::Int(1_700_000_000_000))];
    let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone()));
    let options = OpenOptions { extra: all.collect::<BTreeMap<_, _>>(), ..OpenOptions::default() };
    HBaseFormat.open(&folder.source(), &options).unwrap()
}

fn batches(table: &dyn TableFile, scan: &Scan) -> Vec<RecordBatch> {
    let splits = table.splits(u64::MAX).unwrap();
    let of_split = |split| ScanReader::try_new(table, scan, split, DamageLog::default()).unwrap();
    splits.iter().flat_map(of_split).map(Result::unwrap).collect()
}

fn text(batches: &[RecordBatch]) -> Vec<String> {
    batches.iter().flat_map(rows::as_text).collect()
}

#[test]
fn views_and_dictionaries_have_the_same_rows() {
    for view in ["latest", "versions", "raw"] {
        let view = ("view", Value::from(view));
        let (plain, keyed) =
            (open(std::slice::from_ref(&view)), open(&[view, ("dictionary", Value::Bool(true))]));
        for batch_rows in [3, 65536] {
            let scan = Scan { batch_rows, ..Scan::default() };
            let views = Scan { strings: Some(Strings::View), ..scan.clone() };
            let expected = text(&batches(plain.as_ref(), &scan));
            assert!(!expected.is_empty());
            for (table, scan) in [(&plain, &views), (&keyed, &scan), (&keyed, &views)] {
                assert_eq!(text(&batches(table.as_ref(), scan)), expected);
            }
        }
    }
}

#[test]
fn families_and_qualifiers_are_returned_as_dictionaries() {
    let table = open(&[("dictionary", Value::Bool(true))]);
    let scan = Scan { strings: Some(Strings::View), ..Scan::default() };
    for batch in batches(table.as_ref(), &scan) {
        let types: Vec<&DataType> = batch.schema_ref().fields().iter().map(|f| f.data_type()).collect();
        let binary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary));
        assert_eq!(types[..3], [&DataType::BinaryView, &binary, &binary]);
        assert_eq!(types[5], &DataType::BinaryView);
        let families = batch.column(1).as_dictionary::<Int32Type>();
        assert!(families.values().len() < batch.num_rows());
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
}

#[test]
fn filters_and_look_ups_work_with_dictionaries() {
    let (plain, keyed) = (open(&[]), open(&[("dictionary", Value::Bool(true))]));
    let family = Predicate::compare("family", Op::Eq, Arc::new(BinaryArray::from_iter_values([b"g"])));
    let scan = Scan { predicate: Some(family), ..Scan::default() };
    let expected = batches(plain.as_ref(), &scan);
    assert_eq!(text(&batches(keyed.as_ref(), &scan)), text(&expected));
    let row = expected[0].column(0).as_binary::<i32>().value(0).to_vec();
    let query =
        RowQuery { columns: vec!["g".to_owned(), "f:note".to_owned()], reverse: true, ..RowQuery::default() };
    let [plain, keyed] = [&plain, &keyed].map(|table| {
        let table = table.as_any().downcast_ref::<HBaseTable>().unwrap();
        let scanned: Vec<RecordBatch> = table.scan_rows(&query).unwrap().map(Result::unwrap).collect();
        (text(&table.get(&row).unwrap()), text(&scanned))
    });
    assert_eq!(keyed, plain);
    assert!(!plain.0.is_empty() && !plain.1.is_empty());
}

#[test]
fn wide_tables_reject_dictionaries() {
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/orders"));
    let extra = [("view", Value::from("pivot")), ("dictionary", Value::Bool(true))];
    let extra = extra.map(|(name, value)| (name.to_owned(), value)).into();
    let e = HBaseFormat.open(&folder.source(), &OpenOptions { extra, ..OpenOptions::default() }).unwrap_err();
    assert_eq!(e.to_string(), "option `dictionary`: it is not for view=\"pivot\"");
}
