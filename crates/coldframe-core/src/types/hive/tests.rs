//! Hive's conversions of values, one kind of target at a time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use coldframe_encoding::Limits;

use super::*;
use crate::types::ddl::parse_type;

fn rules(reader: Reader) -> Rules {
    Rules { reader, ..Rules::default() }
}

fn plan(own: &DataType, table: &DataType, declared: &str, reader: Reader) -> Result<Conversion> {
    let (own, table) = (Field::new("c", own.clone(), true), Field::new("c", table.clone(), true));
    let declared = parse_type(declared, &Limits::default()).unwrap();
    let table = Typed { field: &table, declared: Some(&declared) };
    Conversion::new(Typed { field: &own, declared: None }, table, rules(reader))
}

#[test]
fn numbers_that_do_not_fit_are_null_in_orc_and_wrap_in_rows() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(300), None]));
    let read =
        |reader| plan(&DataType::Int64, &DataType::Int8, "tinyint", reader).unwrap().convert(&array).unwrap();
    let texts = |array: &ArrayRef| {
        let array = array.as_primitive::<arrow_array::types::Int8Type>();
        array.iter().collect::<Vec<_>>()
    };
    assert_eq!(texts(&read(Reader::Orc)), [Some(7), None, None]);
    assert_eq!(texts(&read(Reader::Rows)), [Some(7), Some(44), None]);
}

#[test]
fn filters_reach_the_file_only_if_no_value_and_no_order_changes() {
    use DataType::*;
    for (own, table, declared, keeps) in [
        (Int32, Int64, "bigint", true),
        (Int64, Int32, "int", false),
        (Float32, Float64, "double", true),
        (Float64, Utf8, "string", false),
        (Decimal128(5, 2), Decimal128(9, 3), "decimal(9,3)", true),
        (Decimal128(5, 2), Decimal128(5, 3), "decimal(5,3)", false),
        (Utf8, Utf8, "varchar(3)", false),
        (Utf8, Utf8, "string", true),
        (Date32, Utf8, "string", false),
    ] {
        let plan = plan(&own, &table, declared, Reader::Orc).unwrap();
        assert_eq!(plan.keeps_filters(), keeps, "{own} {declared}");
    }
}

#[test]
fn what_hive_refuses_is_an_error_that_names_the_types() {
    let error = |own: &DataType, table: &DataType, declared: &str| {
        plan(own, table, declared, Reader::Orc).unwrap_err().to_string()
    };
    assert_eq!(
        error(&DataType::Int64, &DataType::Date32, "date"),
        "Hive's reader of ORC does not convert bigint to date"
    );
    let list = DataType::new_list(DataType::Int32, true);
    assert!(error(&list, &DataType::Utf8, "string").contains("array<int> to string"));
    assert!(error(&DataType::Int32, &list, "array<int>").contains("int to array<int>"));
}

#[test]
fn fields_of_structs_match_by_name_in_any_case() {
    let own = StructArray::new(
        vec![Field::new("B", DataType::Int32, true), Field::new("a", DataType::Utf8, true)].into(),
        vec![
            Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef,
            Arc::new(StringArray::from(vec!["7", "x"])) as ArrayRef,
        ],
        Some(NullBuffer::from(vec![true, false])),
    );
    let table = DataType::Struct(
        vec![
            Field::new("a", DataType::Int64, true),
            Field::new("more", DataType::Utf8, true),
            Field::new("b", DataType::Int32, true),
        ]
        .into(),
    );
    let plan = plan(own.data_type(), &table, "struct<a:bigint,more:string,b:int>", Reader::Orc).unwrap();
    let own: ArrayRef = Arc::new(own);
    let made = plan.convert(&own).unwrap();
    assert_eq!(made.data_type(), &table);
    let made = made.as_struct();
    assert!(made.is_null(1));
    assert_eq!(made.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(7), None]);
    assert_eq!(made.column(1).null_count(), 2);
    assert_eq!(made.column(2).as_primitive::<Int32Type>().value(0), 1);
}

#[test]
fn elements_of_lists_are_converted() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let own: ArrayRef =
        Arc::new(ListArray::new(field, OffsetBuffer::new(vec![0, 2, 3].into()), values, None));
    let table = DataType::new_list(DataType::Utf8, true);
    let plan = plan(own.data_type(), &table, "array<char(2)>", Reader::Orc).unwrap();
    let made = plan.convert(&own.slice(1, 1)).unwrap();
    assert_eq!(made.as_list::<i32>().values().as_string::<i32>().value(0), "3 ");
}
