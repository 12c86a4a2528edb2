//! Arrays of any layout become plain; unsupported columns are refused by name.

use arrow_array::builder::{StringDictionaryBuilder, StringViewBuilder};
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{Int32Array, ListArray, NullArray, RunArray, StringArray, TimestampNanosecondArray};

use super::*;

fn written(columns: Vec<(&str, ArrayRef)>) -> Vec<RecordBatch> {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let intake = Intake::new(&batch.schema()).unwrap();
    intake.pieces(&batch).collect::<Result<_>>().unwrap()
}

#[test]
fn layouts_become_plain_also_in_slices() {
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    let mut views = StringViewBuilder::new();
    for text in [Some("a"), None, Some("a text that is longer than twelve bytes"), Some("a")] {
        dictionary.append_option(text);
        views.append_option(text);
    }
    let dictionary: ArrayRef = Arc::new(dictionary.finish());
    let plain: ArrayRef = Arc::new(StringArray::from(vec![
        Some("a"),
        None,
        Some("a text that is longer than twelve bytes"),
        Some("a"),
    ]));
    let runs =
        RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 4]), &Int32Array::from(vec![7, 8])).unwrap();
    let item = Arc::new(Field::new("item", dictionary.data_type().clone(), true));
    let offsets = OffsetBuffer::new(vec![0, 1, 1, 3, 4].into());
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, dictionary.clone(), None));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("dictionary", dictionary, true),
        ("views", Arc::new(views.finish()) as ArrayRef, true),
        ("runs", Arc::new(runs) as ArrayRef, true),
        ("lists", lists, true),
        ("nulls", Arc::new(NullArray::new(4)) as ArrayRef, true),
    ])
    .unwrap();
    let intake = Intake::new(&batch.schema()).unwrap();
    for (start, length) in [(0, 4), (1, 2), (3, 1), (2, 0)] {
        let pieces: Vec<_> = intake.pieces(&batch.slice(start, length)).collect::<Result<_>>().unwrap();
        let [piece] = pieces.as_slice() else { panic!("{}", pieces.len()) };
        assert_eq!(piece.column(0), &plain.slice(start, length));
        assert_eq!(piece.column(1), &plain.slice(start, length));
        let expected: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 8, 8]));
        assert_eq!(piece.column(2), &expected.slice(start, length));
        for (row, values) in (start..start + length).zip(piece.column(3).as_list::<i32>().iter()) {
            let (first, last) = [(0, 1), (1, 1), (1, 3), (3, 4)][row];
            assert_eq!(&values.unwrap(), &plain.slice(first, last - first));
        }
    }
}

#[test]
fn dictionaries_of_long_values_are_decoded_in_pieces() {
    let long = "x".repeat(1 << 20);
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    for _ in 0..700 {
        dictionary.append_value(&long);
    }
    let dictionary: ArrayRef = Arc::new(dictionary.finish());
    let batch = RecordBatch::try_from_iter([("d", dictionary)]).unwrap();
    let intake = Intake::new(&batch.schema()).unwrap();
    let mut rows = 0;
    for piece in intake.pieces(&batch) {
        let piece = piece.unwrap();
        assert!(plain_bytes(piece.column(0)) <= PIECE_BYTES);
        rows += piece.num_rows();
    }
    assert_eq!(rows, 700);
}

#[test]
fn a_dictionary_of_timestamps_becomes_plain() {
    let values: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![5, 6]));
    let keys = Int32Array::from(vec![Some(1), None, Some(0)]);
    let array: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
    let pieces = written(vec![("t", array)]);
    let values_written = pieces.first().unwrap().column(0).as_primitive::<TimestampNanosecondType>().clone();
    assert_eq!(values_written.iter().collect::<Vec<_>>(), [Some(6), None, Some(5)]);
}

#[test]
fn extension_types_become_their_storage_and_other_metadata_stays() {
    let metadata = [("ARROW:extension:name", "arrow.uuid"), ("kept", "yes")];
    let metadata = metadata.map(|(k, v)| (k.to_owned(), v.to_owned()));
    let inner = Field::new("u", DataType::FixedSizeBinary(16), true)
        .with_metadata(std::collections::HashMap::from(metadata));
    let outer = Field::new("s", DataType::Struct(vec![inner].into()), true);
    let intake = Intake::new(&Schema::new(vec![outer])).unwrap();
    let DataType::Struct(fields) = intake.schema().field(0).data_type().clone() else { panic!() };
    let keys: Vec<&String> = fields.first().unwrap().metadata().keys().collect();
    assert_eq!(keys, ["kept"]);
}

#[test]
fn unsupported_columns_are_refused_by_name() {
    let mut field = Arc::new(Field::new("x", DataType::Int32, true));
    for _ in 0..MAX_DEPTH {
        field = Arc::new(Field::new("deep", DataType::List(field), true));
    }
    let e = Intake::new(&Schema::new(vec![field])).unwrap_err();
    assert!(!e.is_damage());
    assert_eq!(e.to_string(), "column `deep`: types nested deeper than 64, which readers refuse");
    let child: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let struct_of = |nulls: Option<NullBuffer>| {
        StructArray::new(vec![Field::new("a", DataType::Int32, true)].into(), vec![child.clone()], nulls)
    };
    let strict = DataType::Struct(vec![Field::new("a", DataType::Int32, false)].into());
    let check = |array: StructArray| {
        let array: ArrayRef = Arc::new(array);
        check_nulls(&array, &Field::new("s", strict.clone(), true), None)
    };
    check(struct_of(Some(vec![true, false].into()))).unwrap();
    let e = check(struct_of(None)).unwrap_err();
    assert!(e.to_string().contains("`a`, which is declared not nullable, found a null in row 1"), "{e}");
}
