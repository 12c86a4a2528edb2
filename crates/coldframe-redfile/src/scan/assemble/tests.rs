//! The levels in the Dremel paper become its records; slots for values under a null; timestamps at the limits
//! of Arrow's range.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use coldframe_core::Limits;

use super::*;
use crate::layout::metadata::{Children, SchemaElement, Type};
use crate::pages::levels::Levels;
use crate::schema::{Schema, TypeOptions};

fn element(name: &str, physical: Option<Type>, repetition: Repetition, children: i32) -> SchemaElement {
    SchemaElement {
        physical_type: physical,
        repetition: Some(repetition),
        name: name.to_owned(),
        children: if physical.is_some() { Children::None } else { Children::Count(children) },
        converted_type: None,
    }
}

fn schema(elements: &[SchemaElement]) -> Schema {
    Schema::from_elements(elements, TypeOptions::default(), &Limits::default(), 0).unwrap()
}

fn longs(levels: &[(u8, u8)], values: &[i64]) -> LeafData {
    let mut buffer = MutableBuffer::new(0);
    buffer.extend_from_slice(values);
    of(levels, Values::Fixed(buffer))
}

fn texts(levels: &[(u8, u8)], values: &[&str]) -> LeafData {
    let (mut offsets, mut data) = (vec![0], Vec::new());
    for value in values {
        data.extend_from_slice(value.as_bytes());
        offsets.push(i32::try_from(data.len()).unwrap());
    }
    of(levels, Values::Arrays { offsets, data })
}

fn of(levels: &[(u8, u8)], values: Values) -> LeafData {
    let (repetition, definition) = levels.iter().copied().unzip();
    let max_repetition = levels.iter().map(|(r, _)| *r).max().unwrap_or(0);
    LeafData {
        entries: levels.len(),
        max_repetition,
        levels: Levels { definition, repetition },
        values,
        spread: false,
    }
}

use Repetition::{Optional, Repeated, Required};

/// The two records of figure 2 of the Dremel paper, in the columns of its figure 3.
#[test]
fn the_document_of_the_paper_is_assembled() {
    let schema = schema(&[
        element("Document", None, Required, 3),
        element("DocId", Some(Type::Int64), Required, 0),
        element("Links", None, Optional, 2),
        element("Backward", Some(Type::Int64), Repeated, 0),
        element("Forward", Some(Type::Int64), Repeated, 0),
        element("Name", None, Repeated, 2),
        element("Language", None, Repeated, 2),
        element("Code", Some(Type::ByteArray), Required, 0),
        element("Country", Some(Type::ByteArray), Optional, 0),
        element("Url", Some(Type::ByteArray), Optional, 0),
    ]);
    let doc_id = LeafData {
        entries: 2,
        max_repetition: 0,
        levels: Levels::default(),
        values: longs(&[], &[10, 20]).values,
        spread: false,
    };
    let mut leaves = Leaves::from([
        (0, doc_id),
        (1, longs(&[(0, 1), (0, 2), (1, 2)], &[10, 30])),
        (2, longs(&[(0, 2), (1, 2), (1, 2), (0, 2)], &[20, 40, 60, 80])),
        (3, texts(&[(0, 2), (2, 2), (1, 1), (1, 2), (0, 1)], &["en-us", "en", "en-gb"])),
        (4, texts(&[(0, 3), (2, 2), (1, 1), (1, 3), (0, 1)], &["us", "gb"])),
        (5, texts(&[(0, 2), (1, 2), (1, 1), (0, 2)], &["http://A", "http://B", "http://C"])),
    ]);
    let columns: Vec<ArrayRef> = schema.fields.iter().map(|f| column(f, &mut leaves, 2).unwrap()).collect();
    let batch = RecordBatch::try_new(schema.arrow.clone(), columns).unwrap();
    assert!(leaves.is_empty());
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values().as_ref(), [10, 20]);
    let links = batch.column(1).as_struct();
    assert_eq!(links.null_count(), 0);
    let of = |list: &ListArray, i| list.value(i).as_primitive::<Int64Type>().values().to_vec();
    let backward: &ListArray = links.column(0).as_list();
    assert_eq!((of(backward, 0), of(backward, 1)), (vec![], vec![10, 30]));
    let forward: &ListArray = links.column(1).as_list();
    assert_eq!((of(forward, 0), of(forward, 1)), (vec![20, 40, 60], vec![80]));
    let names: &ListArray = batch.column(2).as_list();
    assert_eq!(names.offsets().as_ref(), [0, 3, 4]);
    let name = names.values().as_struct();
    let languages: &ListArray = name.column(0).as_list();
    assert_eq!(languages.offsets().as_ref(), [0, 2, 2, 3, 3]);
    let language = languages.values().as_struct();
    let bytes = |a: &ArrayRef| -> Vec<Option<String>> {
        a.as_binary::<i32>().iter().map(|v| v.map(|v| String::from_utf8(v.to_vec()).unwrap())).collect()
    };
    let some = |s: &str| Some(s.to_owned());
    assert_eq!(bytes(language.column(0)), [some("en-us"), some("en"), some("en-gb")]);
    assert_eq!(bytes(language.column(1)), [some("us"), None, some("gb")]);
    assert_eq!(bytes(name.column(1)), [some("http://A"), some("http://B"), None, some("http://C")]);
}

#[test]
fn a_required_leaf_of_a_null_group_has_a_slot_without_a_value() {
    let schema = schema(&[
        element("m", None, Required, 1),
        element("g", None, Optional, 2),
        element("x", Some(Type::Int64), Required, 0),
        element("s", Some(Type::ByteArray), Required, 0),
    ]);
    let flat = |mut data: LeafData| {
        data.levels.repetition.clear();
        data
    };
    let levels = [(0, 1), (0, 0), (0, 1)];
    let good = || [(0, flat(longs(&levels, &[7, 9]))), (1, flat(texts(&levels, &["a", "b"])))];
    let array = column(&schema.fields[0], &mut Leaves::from(good()), 3).unwrap();
    let group = array.as_struct();
    assert_eq!((group.null_count(), group.column(0).null_count()), (1, 0));
    assert_eq!(group.column(0).as_primitive::<Int64Type>().values().as_ref(), [7, 0, 9]);
    assert_eq!(group.column(1).as_binary::<i32>().value_offsets(), [0, 1, 1, 2]);
    let mut apart = Leaves::from(good());
    apart.insert(1, flat(texts(&[(0, 1), (0, 1), (0, 0)], &["a", "b"])));
    let e = column(&schema.fields[0], &mut apart, 3).unwrap_err();
    assert_eq!(
        e.to_string(),
        "column `g`: expected the leaves of `g` to agree on it, found that they differ"
    );
    let mut few = Leaves::from(good());
    few.insert(1, flat(texts(&levels, &["a"])));
    let e = column(&schema.fields[0], &mut few, 3).unwrap_err();
    assert_eq!(e.to_string(), "column `g`: expected 2 values, found 1");
}

#[test]
fn at_least_agrees_with_a_loop() {
    let levels: Vec<u8> = (0..200u32).map(|i| (i * 7 % 5).to_le_bytes()[0]).collect();
    for n in [0, 1, 8, 63, 64, 65, 200] {
        let bits = at_least(&levels[..n], 3);
        assert_eq!(bits.iter().collect::<Vec<_>>(), levels[..n].iter().map(|l| *l >= 3).collect::<Vec<_>>());
    }
}

#[test]
fn int96_is_nanoseconds_then_a_julian_day() {
    let mut value = [0; 12];
    value[..8].copy_from_slice(&5i64.to_le_bytes());
    value[8..].copy_from_slice(&2_440_589i32.to_le_bytes());
    let nanos = DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, None);
    let array = int96(&value, &nanos, None, 1, None).unwrap();
    let instant = array.as_primitive::<types::TimestampNanosecondType>().value(0);
    assert_eq!(instant, 86_400_000_000_005);
    assert!(int96(&[0x7f; 12], &nanos, None, 1, None).is_err());
    assert!(int96(&[0; 12], &nanos, None, 1, None).is_err());
    assert_eq!(int96(&value, &DataType::FixedSizeBinary(12), None, 1, None).unwrap().len(), 1);
}

#[test]
fn the_first_and_last_instants_are_read() {
    let stored = |instant: i128| -> [u8; 12] {
        const DAY: i128 = 86_400_000_000_000;
        let day = i32::try_from(instant.div_euclid(DAY) + 2_440_588).unwrap();
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&i64::try_from(instant.rem_euclid(DAY)).unwrap().to_le_bytes());
        bytes[8..].copy_from_slice(&day.to_le_bytes());
        bytes
    };
    for value in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX] {
        assert_eq!(instant(&stored(value.into())).unwrap(), value);
    }
    for beyond in [i128::from(i64::MIN) - 1, i128::from(i64::MAX) + 1] {
        assert!(instant(&stored(beyond)).is_err());
    }
}
