//! The records of the Dremel paper give the levels in the paper. Also tested: values under nulls, lists of lists.

use std::sync::Arc;

use arrow_array::{BinaryArray, Int64Array, ListArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields, Schema};
use coldframe_encoding::Limits;

use super::*;

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().map(|v| v.map(str::as_bytes)).collect::<BinaryArray>())
}

fn group(fields: Vec<(&str, bool, ArrayRef)>, nulls: Option<Vec<bool>>) -> ArrayRef {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        fields.into_iter().map(|(name, null, a)| (Field::new(name, a.data_type().clone(), null), a)).unzip();
    Arc::new(StructArray::new(Fields::from(fields), arrays, nulls.map(NullBuffer::from)))
}

fn list(lengths: &[usize], items: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new("element", items.data_type().clone(), false));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths.iter().copied()), items, None))
}

/// Figure 2 of the paper: the schema `Document` and the records r1 and r2.
fn documents() -> RecordBatch {
    let links = group(
        vec![
            ("Backward", false, list(&[0, 2], Arc::new(Int64Array::from(vec![10, 30])))),
            ("Forward", false, list(&[3, 1], Arc::new(Int64Array::from(vec![20, 40, 60, 80])))),
        ],
        Some(vec![true, true]),
    );
    let languages = group(
        vec![
            ("Code", false, strings(&[Some("en-us"), Some("en"), Some("en-gb")])),
            ("Country", true, strings(&[Some("us"), None, Some("gb")])),
        ],
        None,
    );
    let names = group(
        vec![
            ("Language", false, list(&[2, 0, 1, 0], languages)),
            ("Url", true, strings(&[Some("http://A"), Some("http://B"), None, Some("http://C")])),
        ],
        None,
    );
    RecordBatch::try_from_iter_with_nullable([
        ("DocId", Arc::new(Int64Array::from(vec![10, 20])) as ArrayRef, false),
        ("Links", links, true),
        ("Name", list(&[3, 1], names), false),
    ])
    .unwrap()
}

fn leaves(batch: &RecordBatch) -> Vec<(String, Leaf<'_>)> {
    let schema = schema::Schema::from_arrow("schema", &batch.schema(), &Limits::default()).unwrap();
    let columns = schema.fields.iter().zip(batch.columns());
    let leaves = columns.flat_map(|(node, array)| shred(&Node::of(node), array, 0).unwrap());
    schema.leaves.iter().map(schema::Leaf::name).zip(leaves).collect()
}

/// Figure 3 of the paper: the values, each with its repetition and definition level.
#[test]
fn the_document_of_the_paper_gives_its_levels() {
    let batch = documents();
    type Entries = Vec<(u8, u8, &'static str)>;
    let expected: [(&str, usize, Entries); 6] = [
        ("DocId", 0, vec![(0, 0, "10"), (0, 0, "20")]),
        ("Links.Backward", 2, vec![(0, 1, ""), (0, 2, "10"), (1, 2, "30")]),
        ("Links.Forward", 2, vec![(0, 2, "20"), (1, 2, "40"), (1, 2, "60"), (0, 2, "80")]),
        (
            "Name.Language.Code",
            2,
            vec![(0, 2, "en-us"), (2, 2, "en"), (1, 1, ""), (1, 2, "en-gb"), (0, 1, "")],
        ),
        ("Name.Language.Country", 3, vec![(0, 3, "us"), (2, 2, ""), (1, 1, ""), (1, 3, "gb"), (0, 1, "")]),
        ("Name.Url", 2, vec![(0, 2, "http://A"), (1, 2, "http://B"), (1, 1, ""), (0, 2, "http://C")]),
    ];
    let shredded = leaves(&batch);
    assert_eq!(shredded.len(), expected.len());
    for ((name, leaf), (path, max, entries)) in shredded.into_iter().zip(expected) {
        assert_eq!(name, path);
        assert_eq!(leaf.entries, entries.len());
        let level = |levels: &Option<Vec<u8>>, i: usize| levels.as_ref().map_or(0, |l| l[i]);
        let mut values = 0;
        for (i, (repetition, definition, text)) in entries.into_iter().enumerate() {
            assert_eq!(
                (level(&leaf.repetition, i), level(&leaf.definition, i)),
                (repetition, definition),
                "{path} {i}"
            );
            if usize::from(definition) == max {
                let value = &leaf.values.bytes()[leaf.values.end(values)..leaf.values.end(values + 1)];
                match leaf.values {
                    Dense::Bytes { .. } => assert_eq!(&value[4..], text.as_bytes()),
                    _ => assert_eq!(
                        i64::from_le_bytes(value.try_into().unwrap()),
                        text.parse::<i64>().unwrap()
                    ),
                }
                values += 1;
            } else {
                assert_eq!(text, "");
            }
        }
        assert_eq!(leaf.values.len(), values);
    }
}

/// In Arrow a null list may have items, and the child of a null struct may be valid. Such values must not be
/// written.
#[test]
fn values_under_a_null_are_not_written() {
    let items: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]));
    let item = Arc::new(Field::new("item", DataType::Int64, false));
    let lists = ListArray::new(
        item,
        OffsetBuffer::from_lengths([2, 1, 2]),
        items,
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(8), None]));
    let group = group(vec![("n", true, numbers)], Some(vec![false, true, true]));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("l", Arc::new(lists) as ArrayRef, true),
        ("g", group, true),
    ])
    .unwrap();
    let bytes = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    // For a slice, the values before it in the array must be ignored.
    for (from, definition, repetition, values, numbers) in [
        (0, vec![2, 2, 0, 2, 2], vec![0, 1, 0, 0, 1], bytes(&[1, 2, 4, 5]), (vec![0, 2, 1], bytes(&[8]))),
        (1, vec![0, 2, 2], vec![0, 0, 1], bytes(&[4, 5]), (vec![2, 1], bytes(&[8]))),
        (2, vec![2, 2], vec![0, 1], bytes(&[4, 5]), (vec![1], bytes(&[]))),
    ] {
        let batch = batch.slice(from, 3 - from);
        let shredded = leaves(&batch);
        assert_eq!(shredded[0].1.definition.as_deref(), Some(&definition[..]));
        assert_eq!(shredded[0].1.repetition.as_deref(), Some(&repetition[..]));
        assert_eq!(shredded[0].1.values.bytes(), values);
        assert_eq!(shredded[1].1.definition, Some(numbers.0));
        assert_eq!(shredded[1].1.values.bytes(), numbers.1);
    }
}

#[test]
fn nulls_in_columns_that_are_not_nullable_are_refused() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let e = shred(&Node::Leaf, &array, 7).unwrap_err();
    assert_eq!(
        e.to_string(),
        "expected no nulls in a field that is not nullable, found one in row 8 of the batch"
    );
    let valid = array.slice(0, 1);
    assert_eq!(shred(&Node::Leaf, &valid, 0).unwrap()[0].values.bytes(), 1i64.to_le_bytes());
    let e = shred(&Node::Group(vec![Node::Leaf]), &valid, 0).unwrap_err();
    assert_eq!(e.to_string(), "expected a struct, found Int64");
}

#[test]
fn lists_of_lists_are_marked_groups() {
    let schema = Schema::new(vec![Field::new_list(
        "a",
        Field::new_list("item", Field::new("item", DataType::Int32, true), true),
        true,
    )]);
    let schema = schema::Schema::from_arrow("schema", &schema, &Limits::default()).unwrap();
    let optional = |node| Node::Optional(Box::new(node));
    let repeated = |node| Node::Repeated(Box::new(node));
    assert_eq!(Node::of(&schema.fields[0]), optional(repeated(optional(repeated(optional(Node::Leaf))))));
}
