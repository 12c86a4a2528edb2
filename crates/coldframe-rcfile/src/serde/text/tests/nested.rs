//! Arrays, maps, structs and unions are read with their separators, escapes and missing parts.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ListArray, StringArray};

use super::{cells, decoded, hive_type, options, with_options};
use crate::serde::HiveVersion::V4_1;
use crate::serde::text::decoder;

fn strings(list: &ListArray, row: usize) -> Vec<Option<String>> {
    let values = list.value(row);
    let values: &StringArray = values.as_string();
    values.iter().map(|v| v.map(str::to_owned)).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|v| Some((*v).to_owned()).filter(|v| v != "\\N")).collect()
}

#[test]
fn a_list_is_divided_at_its_separator() {
    let array = decoded("array<string>", V4_1, &["a\x02b\x02", "", "\\N", "\x02", "\\N\x02x\x03y"]);
    let list = array.as_list::<i32>();
    assert_eq!(strings(list, 0), some(&["a", "b", ""]));
    assert_eq!(strings(list, 1), some(&[]));
    assert!(list.is_null(2) && list.null_count() == 1);
    assert_eq!(strings(list, 3), some(&["", ""]));
    assert_eq!(strings(list, 4), some(&["\\N", "x\x03y"]));
    let array = decoded("array<array<int>>", V4_1, &["1\x032\x02\x023", "\\N\x02x"]);
    let inner = array.as_list::<i32>().values().clone();
    assert_eq!(inner.len(), 5);
    assert!(inner.is_null(3) && inner.null_count() == 1);
    let ints = inner.as_list::<i32>().values().as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
    assert_eq!(ints, [Some(1), Some(2), Some(3), None]);
}

#[test]
fn an_escaped_separator_divides_nothing() {
    let escaped = options(V4_1, &[("escape.delim", "\\"), ("collection.delim", ",")]);
    let array = with_options("array<string>", &escaped, &["a\\,b,c\\\\,d\\n\\r\\x", "\\N", "\\\\N", "end\\"]);
    let list = array.as_list::<i32>();
    assert_eq!(strings(list, 0), some(&["a,b", "c\\", "d\n\rx"]));
    assert!(list.is_null(1));
    assert_eq!(list.value(2).as_string::<i32>().value(0), "\\N");
    assert_eq!(list.value(3).as_string::<i32>().value(0), "end\\");
}

#[test]
fn a_map_keeps_the_first_of_each_key_and_drops_null_keys() {
    let cell = "a\x031\x02b\x02a\x032\x02\\N\x033\x02c\x03\\N\x02\x034";
    let array = decoded("map<string,int>", V4_1, &[cell, "", "\\N", "x\x03y\x03z"]);
    let map = array.as_map();
    let keys: Vec<_> = map.keys().as_string::<i32>().iter().flatten().collect();
    assert_eq!(keys, ["a", "b", "c", "", "x"]);
    let values: Vec<_> = map.values().as_primitive::<Int32Type>().iter().collect();
    assert_eq!(values, [Some(1), None, None, Some(4), None]);
    assert_eq!(map.value_offsets(), [0, 4, 4, 4, 5]);
    assert!(map.is_null(2) && map.null_count() == 1);
    // Keys are compared as values; keys that do not parse are null.
    let array = decoded("map<int,int>", V4_1, &["1\x031\x0201\x032\x02z\x033\x022\x034"]);
    let keys: Vec<_> = array.as_map().keys().as_primitive::<Int32Type>().iter().flatten().collect();
    assert_eq!(keys, [1, 2]);
    let many: Vec<String> = (0..100).map(|i| format!("{}\x03{i}", i % 40)).collect();
    let array = decoded("map<int,int>", V4_1, &[many.join("\x02")]);
    let values: Vec<_> = array.as_map().values().as_primitive::<Int32Type>().iter().flatten().collect();
    assert_eq!(values, (0..40).collect::<Vec<_>>());
}

#[test]
fn missing_fields_of_a_struct_are_null_and_more_are_dropped() {
    let rows = ["1\x02a\x02b", "1", "", "\\N", "\x02\x02", "\\N\x02\\N"];
    let array = decoded("struct<i:int,s:string>", V4_1, &rows);
    let array = array.as_struct();
    let ints: Vec<_> = array.column(0).as_primitive::<Int32Type>().iter().collect();
    assert_eq!(ints, [Some(1), Some(1), None, None, None, None]);
    let texts: Vec<_> = array.column(1).as_string::<i32>().iter().collect();
    assert_eq!(texts, [Some("a"), None, None, None, Some(""), None]);
    assert!(array.is_null(3) && array.null_count() == 1);
    let rest = options(V4_1, &[("serialization.last.column.takes.rest", "true")]);
    let array = with_options("struct<i:int,s:string>", &rest, &rows);
    assert_eq!(array.as_struct().column(1).as_string::<i32>().value(0), "a\x02b");
}

#[test]
fn the_tag_of_a_union_selects_the_branch() {
    let rows = ["0\x027", "1\x02x\x02y", "2\x021\x032", "\\N", "9\x021", "0\x02\\N", "x", "-1\x021", "1"];
    let array = decoded("uniontype<int,string,array<int>>", V4_1, &rows);
    let union = array.as_union();
    assert_eq!(union.type_ids().as_ref(), [0, 1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(union.child(0).as_primitive::<Int32Type>().value(0), 7);
    assert_eq!(union.child(1).as_string::<i32>().value(1), "x\x02y");
    assert_eq!(union.child(2).as_list::<i32>().value(2).len(), 2);
    assert_eq!(union.child(0).null_count(), 8);
}

#[test]
fn a_truncated_column_is_null_whatever_its_cells() {
    for text in [
        "int",
        "string",
        "map<string,array<int>>",
        "struct<a:int>",
        "uniontype<int,string>",
        "interval_day_time",
    ] {
        let mut nulled = cells(&["", "1"]);
        nulled.nulled = true;
        let array = decoder(&hive_type(text), &options(V4_1, &[])).unwrap().decode(&nulled).unwrap();
        assert_eq!((array.len(), array.logical_null_count()), (2, 2), "{text}");
    }
}

#[test]
fn another_null_format_applies_at_every_level() {
    let empty = options(V4_1, &[("serialization.null.format", "")]);
    let array = with_options("array<string>", &empty, &["a\x02\x02b", ""]);
    assert_eq!(strings(array.as_list(), 0), some(&["a", "\\N", "b"]));
    assert!(array.is_null(1));
    let number = options(V4_1, &[("serialization.null.format", "-1")]);
    let array = with_options("int", &number, &["-1", "1", "-01", "\\N"]);
    let ints: Vec<_> = array.as_primitive::<Int32Type>().iter().collect();
    assert_eq!(ints, [None, Some(1), Some(-1), None]);
}
