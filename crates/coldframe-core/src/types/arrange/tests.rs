//! Arrangement of columns: order, names, missing fields.

use arrow_array::types::Int64Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::*;

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

fn structs(fields: &[(&str, ArrayRef)], nulls: Option<Vec<bool>>) -> StructArray {
    let columns = fields.iter().map(|(_, column)| column.clone()).collect();
    let fields: Fields =
        fields.iter().map(|(name, column)| field(name, column.data_type().clone())).collect();
    StructArray::new(fields, columns, nulls.map(NullBuffer::from))
}

/// The structs {a: 1, b: "x"}, null, {a: 3, b: null}.
fn narrow() -> StructArray {
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3)]));
    let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("y"), None]));
    structs(&[("a", a), ("b", b)], Some(vec![true, false, true]))
}

/// The same structs with one more field, and with the fields in another order.
fn wide() -> StructArray {
    let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("y"), None]));
    let c: ArrayRef = Arc::new(Date32Array::from(vec![None::<i32>; 3]));
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3)]));
    structs(&[("B", b), ("c", c), ("A", a)], Some(vec![true, false, true]))
}

/// `kind` with bigint in place of int; `with_fields` must not change types.
fn wider(kind: &DataType) -> DataType {
    match kind {
        DataType::Int32 => DataType::Int64,
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|f| field(f.name(), wider(f.data_type()))).collect())
        }
        other => other.clone(),
    }
}

#[track_caller]
fn check_with_fields(array: &ArrayRef, target: &DataType, expected: &ArrayRef) {
    let rows = array.len();
    for (start, length) in [(0, rows), (1, rows - 1), (rows - 1, 1), (0, 0)] {
        let array_made = with_fields(&array.slice(start, length), target).unwrap();
        array_made.to_data().validate_full().unwrap();
        assert_eq!(&array_made, &expected.slice(start, length));
    }
}

#[test]
fn missing_fields_are_null() {
    let target = wider(wide().data_type());
    check_with_fields(&(Arc::new(narrow()) as ArrayRef), &target, &(Arc::new(wide()) as ArrayRef));
}

#[test]
fn missing_fields_in_lists_and_maps_are_null() {
    let nulls = || Some(NullBuffer::from(vec![true, false, true]));
    let offsets = || OffsetBuffer::<i32>::new(vec![0, 1, 1, 3].into());
    let list = |values: StructArray| -> ArrayRef {
        let item = Arc::new(field("item", values.data_type().clone()));
        Arc::new(ListArray::new(item, offsets(), Arc::new(values), nulls()))
    };
    let map = |values: StructArray| -> ArrayRef {
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["k", "l", "m"]));
        let fields = Fields::from(vec![
            Field::new("key", DataType::Utf8, false),
            field("value", values.data_type().clone()),
        ]);
        let entries = Arc::new(Field::new("entries", DataType::Struct(fields.clone()), false));
        let pairs = StructArray::new(fields, vec![keys, Arc::new(values)], None);
        Arc::new(MapArray::new(entries, offsets(), pairs, nulls(), false))
    };
    check_with_fields(&list(narrow()), list(wide()).data_type(), &list(wide()));
    check_with_fields(&map(narrow()), map(wide()).data_type(), &map(wide()));
}

#[test]
fn defaults_fill_missing_fields_of_structs() {
    let wanted = structs(
        &[
            ("a", Arc::new(Int32Array::from(vec![1]))),
            ("d", Arc::new(Int32Array::from(vec![1]))),
            ("s", Arc::new(structs(&[("d", Arc::new(Int32Array::from(vec![1])))], None))),
        ],
        None,
    );
    let list = DataType::List(Arc::new(field("item", wanted.data_type().clone())));
    let item = Arc::new(field("item", narrow().data_type().clone()));
    let offsets = OffsetBuffer::<i32>::new(vec![0, 1, 3].into());
    let array: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(narrow()), None));
    let seven: ArrayRef = Arc::new(Int32Array::from(vec![7]));
    let default = |field: &Field| (field.name() == "d").then(|| seven.clone());
    let made = with_defaults(&array.slice(1, 1), &list, &default).unwrap();
    made.to_data().validate_full().unwrap();
    let structs_made = made.as_list::<i32>().value(0);
    let structs_made = structs_made.as_struct();
    assert_eq!((structs_made.len(), structs_made.is_null(0), structs_made.is_null(1)), (2, true, false));
    assert_eq!(structs_made.column(1).as_primitive::<arrow_array::types::Int32Type>().value(1), 7);
    // A missing struct becomes null: defaults are only for fields of structs that exist.
    assert_eq!(structs_made.column(2).null_count(), 2);
}

#[test]
fn arrays_of_another_kind_are_unchanged() {
    let array: ArrayRef = Arc::new(narrow());
    for target in [DataType::Int64, array.data_type().clone()] {
        assert!(Arc::ptr_eq(&with_fields(&array, &target).unwrap(), &array));
    }
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]));
    let other = DataType::List(Arc::new(field("element", DataType::Float64)));
    assert!(Arc::ptr_eq(&with_fields(&lists, &other).unwrap(), &lists));
}

#[test]
fn fields_that_differ_in_case_only_are_refused() {
    let child: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let twice: ArrayRef = Arc::new(structs(&[("a", child.clone()), ("A", child)], None));
    let error = with_fields(&twice, narrow().data_type()).unwrap_err().to_string();
    assert!(error.contains("has fields whose names are equal but for case"), "{error}");
    assert!(Arc::ptr_eq(&with_fields(&twice, twice.data_type()).unwrap(), &twice));
}

fn arrangement(target: &[(&str, DataType)]) -> Arrangement {
    let fields: Fields = target.iter().map(|(name, kind)| field(name, kind.clone())).collect();
    Arrangement { target: Arc::new(Schema::new(fields)), names: None, constants: BTreeMap::new() }
}

fn rows(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::from(structs(columns, None))
}

#[test]
fn columns_are_in_the_tables_order_with_their_own_types() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let batch = rows(&[
        ("NAME", texts.clone()),
        ("Id", numbers.clone()),
        ("id", texts.clone()),
        ("dropped", numbers.clone()),
    ]);
    let table = [
        ("ID", DataType::Int64),
        ("Id", DataType::Int64),
        ("name", DataType::Utf8),
        ("at", DataType::Date32),
    ];
    let arranged = arrangement(&table).arrange(&batch).unwrap();
    // An exact match takes precedence; otherwise the last name that differs only in upper and lower case is
    // used.
    let nulls: ArrayRef = Arc::new(Date32Array::from(vec![None::<i32>; 2]));
    assert_eq!(arranged, rows(&[("ID", texts.clone()), ("Id", numbers), ("name", texts), ("at", nulls)]));
}

#[test]
fn new_names_apply_only_if_their_number_matches() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let batch = rows(&[("_col0", numbers.clone()), ("_col1", texts.clone())]);
    let mut arrangement = arrangement(&[("name", DataType::Utf8), ("É", DataType::Int32)]);
    arrangement.names = Some(vec!["é".into(), "name".into()]);
    assert_eq!(arrangement.arrange(&batch).unwrap(), rows(&[("name", texts), ("É", numbers)]));
    arrangement.names = Some(vec!["é".into()]);
    assert!(arrangement.arrange(&batch).unwrap().columns().iter().all(|column| column.null_count() == 2));
}

#[test]
fn constants_are_repeated() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let mut arrangement =
        arrangement(&[("region", DataType::Utf8), ("day", DataType::Date32), ("id", DataType::Int32)]);
    let region: ArrayRef = Arc::new(StringArray::from(vec!["us", "eu"]).slice(1, 1));
    arrangement.constants.insert("region".into(), region.clone());
    arrangement.constants.insert("day".into(), Arc::new(NullArray::new(1)));
    let arranged =
        arrangement.arrange(&rows(&[("id", numbers.clone()), ("region", numbers.clone())])).unwrap();
    let regions: ArrayRef = Arc::new(StringArray::from(vec!["eu", "eu"]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![None::<i32>; 2]));
    assert_eq!(arranged, rows(&[("region", regions), ("day", days), ("id", numbers.clone())]));
    arrangement.constants.insert("region".into(), region.slice(0, 0));
    let error = arrangement.arrange(&rows(&[("id", numbers)])).unwrap_err().to_string();
    assert!(error.contains("constant region: expected one value, found 0"), "{error}");
}

#[test]
fn a_table_without_columns_is_refused() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let error = arrangement(&[]).arrange(&rows(&[("id", numbers)])).unwrap_err().to_string();
    assert!(error.contains("a table without columns"), "{error}");
}
