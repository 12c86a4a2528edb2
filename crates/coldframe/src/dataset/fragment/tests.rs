//! A fragment converts a file's rows to the table's columns, and pushes filters down as far as possible.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int32Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use coldframe_core::predicate::parse;

use super::*;

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> =
        fields.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect();
    Schema::new(fields).into()
}

/// The columns id bigint, name string, at date, and p bigint, a partition column with the value 7.
fn fragment() -> Fragment {
    let table = schema(&[
        ("id", DataType::Int64),
        ("name", DataType::Utf8),
        ("at", DataType::Date32),
        ("p", DataType::Int64),
    ]);
    let constants = vec![("p".to_owned(), Arc::new(Int64Array::from(vec![7])) as ArrayRef)];
    Fragment { constants, ..Fragment::new(table) }
}

fn file() -> SchemaRef {
    schema(&[("NAME", DataType::Utf8), ("id", DataType::Int32)])
}

fn batch() -> RecordBatch {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    RecordBatch::try_new(file(), vec![names, ids]).unwrap()
}

fn scan(fragment: &Fragment, columns: Option<&[&str]>, filter: Option<&str>) -> Scan {
    let predicate = filter.map(|text| parse::condition(text).unwrap().bind(&fragment.schema).unwrap());
    let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    Scan { columns, predicate, limit: Some(2), ..Scan::default() }
}

fn file_batch(reading: &Reading) -> RecordBatch {
    let at = |name: &String| batch().schema().fields().iter().position(|field| field.name() == name).unwrap();
    let places: Vec<usize> = reading.scan.columns.as_ref().unwrap().iter().map(at).collect();
    batch().project(&places).unwrap()
}

#[test]
fn batches_have_the_columns_of_the_table() {
    let fragment = fragment();
    let reading = fragment.reading(&file(), &scan(&fragment, None, None), "f").unwrap().unwrap();
    assert_eq!(reading.scan.columns, Some(vec!["id".to_owned(), "NAME".to_owned()]));
    assert_eq!(reading.scan.limit, Some(2));
    let made = reading.adaptation.adapt(&file_batch(&reading)).unwrap();
    assert_eq!(made.schema_ref(), &fragment.schema);
    assert_eq!(
        made.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(1), None, Some(3)]
    );
    assert_eq!(made.column(2).null_count(), 3);
    assert_eq!(made.column(3).as_primitive::<Int64Type>().values(), &[7, 7, 7]);
    // Without columns, batches still have row counts.
    let counting = fragment.reading(&file(), &scan(&fragment, Some(&[]), None), "f").unwrap().unwrap();
    assert_eq!(counting.adaptation.adapt(&file_batch(&counting)).unwrap().num_rows(), 3);
    let e = fragment.reading(&file(), &scan(&fragment, Some(&["x"]), None), "f").unwrap_err();
    assert_eq!(e.to_string(), "no column 'x'; the columns are 'id', 'name', 'at', 'p'");
}

#[test]
fn filters_are_pushed_down() {
    let fragment = fragment();
    let pushed = |filter: &str| {
        let reading = fragment.reading(&file(), &scan(&fragment, Some(&["p"]), Some(filter)), "f").unwrap();
        reading.map(|reading| (reading.scan.predicate.is_some(), reading.adaptation.filters()))
    };
    assert_eq!(pushed("id > 1 and name = 'c'"), Some((true, false)));
    assert_eq!(pushed("id > 1 and p = 7"), Some((true, false)));
    assert_eq!(pushed("id > 1 and p = 8"), None);
    assert_eq!(pushed("at is null"), Some((false, false)));
    assert_eq!(pushed("at > date '2014-01-01'"), None);
    assert!(fragment.may_match(None).unwrap());
    let p8 = scan(&fragment, None, Some("p = 8")).predicate;
    assert!(!fragment.may_match(p8.as_ref()).unwrap());
}

#[test]
fn filters_that_a_file_cannot_evaluate_stay_residual() {
    // The table has text where this file has numbers.
    let table = schema(&[("id", DataType::Utf8), ("name", DataType::Utf8)]);
    let fragment = Fragment::new(table);
    let like = scan(&fragment, Some(&["name"]), Some("id like '3%'"));
    let reading = fragment.reading(&file(), &like, "f").unwrap().unwrap();
    assert!(reading.adaptation.filters() && reading.scan.predicate.is_none() && reading.scan.limit.is_none());
    let e = reading.adaptation.adapt(&file_batch(&reading)).unwrap_err().to_string();
    assert!(
        e.starts_with(
            "f: column 'id' is int32 in this file, and not every value fits the dataset's string: "
        ),
        "{e}"
    );
}

#[test]
fn residual_filters_apply_to_adapted_rows() {
    let mut adaptation = {
        let fragment = fragment();
        fragment.reading(&file(), &scan(&fragment, Some(&["name"]), None), "f").unwrap().unwrap().adaptation
    };
    adaptation.decoded = schema(&[("name", DataType::Utf8), ("p", DataType::Int64)]);
    adaptation.columns.push(Column::Same(Arc::new(Int64Array::from(vec![7]))));
    let filter = parse::condition("p = 7 and name > 'a'").unwrap().bind(&adaptation.decoded).unwrap();
    adaptation.residual = Some(filter);
    let names = batch().project(&[0]).unwrap();
    let made = adaptation.adapt(&names).unwrap();
    assert_eq!((made.num_rows(), made.num_columns()), (2, 1));
}

#[test]
fn defaults_fill_columns_that_a_file_lacks() {
    let day: ArrayRef = Arc::new(arrow_array::Date32Array::from(vec![3]));
    let fragment = Fragment {
        defaults: vec![("at".to_owned(), day), ("id".to_owned(), Arc::new(Int64Array::from(vec![9])))],
        ..fragment()
    };
    let reading = fragment.reading(&file(), &scan(&fragment, None, Some("at = date '1970-01-04'")), "f");
    let reading = reading.unwrap().unwrap();
    assert!(reading.scan.predicate.is_none() && !reading.adaptation.filters());
    let made = reading.adaptation.adapt(&file_batch(&reading)).unwrap();
    assert_eq!(made.column(2).null_count(), 0);
    assert_eq!(made.column(0).as_primitive::<Int64Type>().value(2), 3);
}

#[test]
fn a_complete_table_rejects_other_columns() {
    let fragment = Fragment { complete: true, ..fragment() };
    let more = schema(&[("ID", DataType::Int32), ("z", DataType::Int32)]);
    let e = fragment.reading(&more, &scan(&fragment, None, None), "f").unwrap_err().to_string();
    assert!(e.starts_with("f: columns ['z'] are not among those of the first file"), "{e}");
    assert!(fragment.reading(&file(), &scan(&fragment, None, None), "f").is_ok());
}

#[test]
fn text_is_cut_and_padded_as_its_table_declares() {
    use crate::dataset::table_def::{ColumnDef, Conversion};

    let declared = |kind: &str| {
        let column = ColumnDef {
            field: Arc::new(Field::new("name", DataType::Utf8, true)),
            declared: Some(kind.to_owned()),
        };
        let conversion = Conversion::Hive(Default::default());
        let stated = Stated { table: Arc::new(vec![column]), conversion, ..Stated::default() };
        Fragment { stated: Arc::new(stated), ..fragment() }
    };
    let read = |kind: &str, filter: Option<&str>| {
        let fragment = declared(kind);
        let reading = fragment.reading(&file(), &scan(&fragment, None, filter), "f").unwrap().unwrap();
        // Another row would pass in the file than in the table.
        assert_eq!(reading.adaptation.filters(), filter.is_some() && kind != "string");
        assert_eq!(reading.adaptation.keeps_extremes(), kind == "string");
        let made = reading.adaptation.adapt(&file_batch(&reading)).unwrap();
        let names = made.column_by_name("name").unwrap().as_string::<i32>();
        names.iter().map(|name| name.unwrap_or("null").to_owned()).collect::<Vec<_>>()
    };
    let all = read("string", None);
    assert_eq!(read("varchar(1)", None), all);
    assert_eq!(read("string", Some("name = 'a'")).len(), 3);
    assert_eq!(read("varchar(1)", Some("name = 'a'")).len(), 1);
    assert_eq!(read("varchar(0)", None), all.iter().map(|_| String::new()).collect::<Vec<_>>());
    assert_eq!(read("char(2)", None), all.iter().map(|name| format!("{name} ")).collect::<Vec<_>>());
    let refused = declared("array<int>");
    let scan = scan(&refused, None, None);
    let e = refused.reading(&file(), &scan, "f").unwrap_err().to_string();
    assert!(e.contains("column `name`") && e.contains("does not convert string to array<int>"), "{e}");
}

#[test]
fn deletes_are_not_ignored() {
    let deletes = Deletes { positions: Some(Arc::new([1].into_iter().collect())), keys: Vec::new() };
    let fragment = Fragment { deletes: Some(Arc::new(deletes)), ..fragment() };
    let e = fragment.reading(&file(), &scan(&fragment, None, None), "f").unwrap_err().to_string();
    assert!(e.contains("deleted rows"), "{e}");
}
