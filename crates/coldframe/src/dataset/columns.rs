//! Matches the columns of a file with the columns of a table.
//!
//! ```text
//! by name       table id, name      file NAME, id          as Spark: case-insensitive if unambiguous
//! by position   table id, name      file _col0, _col1      as Hive, for files whose columns have no names of their own
//! by field id   table id #1, nm #2  file name #2, id #1    as Iceberg: columns keep their ids when they are renamed
//!               table nm #2 [name]  file name              no ids in the file: the names that each column may have
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use coldframe_core::{Result, arrow_error};

/// How the columns of files are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnsBy {
    /// By name; ignoring upper and lower case if that is unambiguous.
    #[default]
    Name,
    /// By position. Only the table's columns that come from files are counted.
    Position,
    /// By the field ids in the metadata under this key, such as `PARQUET:field_id`; this includes fields of
    /// structs. A file without ids is matched by the names under [`NAMES`] of the table's fields; a field
    /// with [`IN_FILES`] is matched only by the name under `IN_FILES`.
    Id(String),
    /// Like Hive's readers: by name, ignoring case; or by position, if all of the file's columns have the
    /// names `_col0`, `_col1` .. that Hive wrote before 2.0.
    Hive,
}

/// The metadata key under which a table's field lists its possible names in files without ids, separated by
/// [`BETWEEN_NAMES`].
pub const NAMES: &str = "coldframe.names";
/// The metadata key for the name that a table's field has in all files. The key is for columns that the
/// file's reader generates.
pub const IN_FILES: &str = "coldframe.in_files";
/// A field within a column has a default value under a name of its own: this prefix, followed by the field's
/// id, which is unique.
pub const WITHIN: char = '\u{2}';
/// Separates the names under [`NAMES`]: no format allows this character in a name.
pub const BETWEEN_NAMES: char = '\0';

impl ColumnsBy {
    /// For each of the table's columns, the index of the file's column; `None` if the file lacks it.
    /// `of_files`: for each column, whether it comes from the files or is constant in each file.
    pub fn places(
        &self,
        table: &Schema,
        file: &Schema,
        of_files: impl Fn(&Field) -> bool,
    ) -> Vec<Option<usize>> {
        match self {
            Self::Name => {
                let names = Names::new(file);
                table.fields().iter().map(|field| names.place(field.name())).collect()
            }
            Self::Hive if !are_numbered(file) => Self::Name.places(table, file, of_files),
            Self::Position | Self::Hive => {
                let mut at = 0..file.fields().len();
                table.fields().iter().map(|field| if of_files(field) { at.next() } else { None }).collect()
            }
            Self::Id(key) => {
                let file = identified(file.fields(), table.fields(), key);
                let fields = file.iter().enumerate();
                let ids: HashMap<&String, usize> =
                    fields.rev().filter_map(|(at, field)| Some((field.metadata().get(key)?, at))).collect();
                let place = |field: &FieldRef| match field.metadata().get(IN_FILES) {
                    Some(name) => file.iter().position(|own| own.name() == name),
                    None => ids.get(field.metadata().get(key)?).copied(),
                };
                table.fields().iter().map(place).collect()
            }
        }
    }

    /// The name of the default value of a field within a column.
    pub(super) fn default_within(&self, field: &Field) -> Option<String> {
        match self {
            Self::Id(key) => field.metadata().get(key).map(|id| format!("{WITHIN}{id}")),
            Self::Name | Self::Position | Self::Hive => None,
        }
    }

    /// A file's column with the table's names for its nested fields; names can differ only if ids are
    /// matched. An integer becomes a time of day if the table's column is a time of day, since Iceberg writes
    /// times to ORC as integers.
    pub fn renamed(&self, array: &ArrayRef, own: &Field, table: &Field) -> Result<ArrayRef> {
        let Self::Id(key) = self else { return Ok(array.clone()) };
        let known = if has_id(own, key) { own.data_type().clone() } else { with_ids(own, table, key) };
        let wanted = kind(&known, table.data_type(), key);
        if wanted == *array.data_type() { Ok(array.clone()) } else { retyped(array, &wanted) }
    }
}

/// Whether all columns of a file have the names that Hive wrote before 2.0: `_col` and a number, of any order.
fn are_numbered(file: &Schema) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    file.fields().iter().all(|field| field.name().strip_prefix("_col").is_some_and(is_number))
}

/// The columns of a file by name.
struct Names<'a> {
    exact: HashMap<&'a str, usize>,
    /// The index of a column by its name in lower case; `None` if several columns differ only in case.
    folded: HashMap<String, Option<usize>>,
}

impl<'a> Names<'a> {
    fn new(file: &'a Schema) -> Self {
        let (mut exact, mut folded) = (HashMap::new(), HashMap::new());
        for (at, field) in file.fields().iter().enumerate() {
            exact.entry(field.name().as_str()).or_insert(at);
            folded.entry(field.name().to_lowercase()).and_modify(|index| *index = None).or_insert(Some(at));
        }
        Self { exact, folded }
    }

    fn place(&self, name: &str) -> Option<usize> {
        let folded = || self.folded.get(&name.to_lowercase()).copied().flatten();
        self.exact.get(name).copied().or_else(folded)
    }
}

/// Whether a field or a nested field has an id.
fn has_id(field: &Field, key: &str) -> bool {
    let inside = |fields: &Fields| fields.iter().any(|field| has_id(field, key));
    field.metadata().contains_key(key)
        || match field.data_type() {
            DataType::Struct(fields) => inside(fields),
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => has_id(item, key),
            _ => false,
        }
}

/// A file's fields with ids: the file's own ids or, if it has no ids, the ids of the table's fields of the
/// same names.
fn identified<'a>(file: &'a Fields, table: &Fields, key: &str) -> Cow<'a, Fields> {
    if file.iter().any(|field| has_id(field, key)) {
        return Cow::Borrowed(file);
    }
    Cow::Owned(named(file, table, key))
}

/// Fields with the ids of the table's fields of the same names.
fn named(file: &Fields, table: &Fields, key: &str) -> Fields {
    let is_name = |wanted: &Field, name: &str| {
        let names = wanted.metadata().get(NAMES);
        names.is_some_and(|names| names.split(BETWEEN_NAMES).any(|known| known == name))
    };
    let of = |field: &FieldRef| {
        let Some(wanted) = table.iter().find(|wanted| is_name(wanted, field.name())) else {
            return field.clone();
        };
        let mut metadata = field.metadata().clone();
        metadata.extend(wanted.metadata().get(key).map(|id| (key.to_owned(), id.clone())));
        let known = with_ids(field, wanted, key);
        FieldRef::new(field.as_ref().clone().with_data_type(known).with_metadata(metadata))
    };
    file.iter().map(of).collect()
}

/// The type of a file's field, in which nested fields without ids get the ids of the table's nested fields.
fn with_ids(field: &Field, table: &Field, key: &str) -> DataType {
    let item = |own: &FieldRef, wanted: &FieldRef| {
        FieldRef::new(own.as_ref().clone().with_data_type(with_ids(own, wanted, key)))
    };
    match (field.data_type(), table.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => DataType::Struct(named(own, wanted, key)),
        (DataType::List(own), DataType::List(wanted)) => DataType::List(item(own, wanted)),
        (DataType::LargeList(own), DataType::LargeList(wanted)) => DataType::LargeList(item(own, wanted)),
        (DataType::Map(own, sorted), DataType::Map(wanted, _)) => {
            let (DataType::Struct(pair), DataType::Struct(others)) = (own.data_type(), wanted.data_type())
            else {
                return field.data_type().clone();
            };
            let pair: Fields = pair.iter().zip(others).map(|(own, other)| item(own, other)).collect();
            let entries = own.as_ref().clone().with_data_type(DataType::Struct(pair));
            DataType::Map(FieldRef::new(entries), *sorted)
        }
        (own, _) => own.clone(),
    }
}

/// The type of a file's field, with the names of the table's nested fields. A field whose id is not in the
/// table gets a name that the table does not use.
fn kind(own: &DataType, table: &DataType, key: &str) -> DataType {
    let child = |own: &FieldRef, table: &FieldRef| {
        let kind = kind(own.data_type(), table.data_type(), key);
        FieldRef::new(own.as_ref().clone().with_data_type(kind))
    };
    match (own, table) {
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            let id = |field: &FieldRef| field.metadata().get(key).cloned();
            let of = |field: &FieldRef| {
                let same = wanted.iter().find(|wanted| id(wanted).is_some() && id(wanted) == id(field));
                match same {
                    Some(wanted) => {
                        let named = child(field, wanted);
                        FieldRef::new(named.as_ref().clone().with_name(wanted.name()))
                    }
                    None => FieldRef::new(field.as_ref().clone().with_name(format!("\0{}", field.name()))),
                }
            };
            DataType::Struct(fields.iter().map(of).collect())
        }
        (DataType::List(own), DataType::List(table)) => DataType::List(child(own, table)),
        (DataType::LargeList(own), DataType::LargeList(table)) => DataType::LargeList(child(own, table)),
        (DataType::Map(own, sorted), DataType::Map(table, _)) => {
            let entries = match (own.data_type(), table.data_type()) {
                (DataType::Struct(pair), DataType::Struct(others)) => {
                    let pair: Fields =
                        pair.iter().zip(others).map(|(own, other)| child(own, other)).collect();
                    FieldRef::new(own.as_ref().clone().with_data_type(DataType::Struct(pair)))
                }
                _ => own.clone(),
            };
            DataType::Map(entries, *sorted)
        }
        (DataType::Int64, DataType::Time64(_)) => table.clone(),
        _ => own.clone(),
    }
}

/// The same values in a type that differs only in field names, or in the unit of its integers.
fn retyped(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let children: Vec<&FieldRef> = match wanted {
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => vec![item],
        DataType::Time64(_) if array.data_type() == &DataType::Int64 => vec![],
        _ => return Ok(array.clone()),
    };
    let data = array.to_data();
    let mut below = Vec::with_capacity(children.len());
    for (child, field) in data.child_data().iter().zip(children) {
        below.push(retyped(&make_array(child.clone()), field.data_type())?.to_data());
    }
    let made = data.into_builder().data_type(wanted.clone()).child_data(below).build();
    Ok(make_array(made.map_err(arrow_error)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::{Int32Array, StructArray};

    use super::*;

    fn schema(names: &[&str]) -> Schema {
        Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int32, true)).collect::<Vec<_>>())
    }

    fn with_id(name: &str, kind: DataType, id: u32) -> Field {
        let metadata = HashMap::from([("id".to_owned(), id.to_string())]);
        Field::new(name, kind, true).with_metadata(metadata)
    }

    #[test]
    fn names_match_case_insensitively_if_unambiguous() {
        let places =
            |table: &[&str], file: &[&str]| ColumnsBy::Name.places(&schema(table), &schema(file), |_| true);
        assert_eq!(places(&["id", "name", "x"], &["NAME", "id"]), [Some(1), Some(0), None]);
        assert_eq!(places(&["a", "A", "aa"], &["A", "a", "AA", "Aa"]), [Some(1), Some(0), None]);
    }

    #[test]
    fn positions_count_only_columns_of_files() {
        let table = schema(&["id", "dt", "name", "more"]);
        let file = schema(&["_col0", "_col1"]);
        let places = ColumnsBy::Position.places(&table, &file, |field| field.name() != "dt");
        assert_eq!(places, [Some(0), None, Some(1), None]);
    }

    #[test]
    fn hive_counts_columns_whose_names_are_numbers() {
        let places =
            |file: &[&str]| ColumnsBy::Hive.places(&schema(&["id", "name"]), &schema(file), |_| true);
        assert_eq!(places(&["NAME", "id"]), [Some(1), Some(0)]);
        assert_eq!(places(&["_col7", "_col1"]), [Some(0), Some(1)]);
        assert_eq!(places(&["_col0", "name"]), [None, Some(1)]);
        assert_eq!(places(&["_col"]), [None, None]);
    }

    #[test]
    fn ids_also_match_fields_within_structs() {
        let inside = |names: [(&str, u32); 2]| -> Fields {
            names.into_iter().map(|(name, id)| with_id(name, DataType::Int32, id)).collect()
        };
        let (own, wanted) = (inside([("a", 3), ("gone", 9)]), inside([("b", 3), ("gone", 4)]));
        let file = Schema::new(vec![
            with_id("y", DataType::Struct(own.clone()), 2),
            with_id("x", DataType::Int32, 1),
        ]);
        let table =
            Schema::new(vec![with_id("x2", DataType::Int32, 1), with_id("y2", DataType::Struct(wanted), 2)]);
        let by = ColumnsBy::Id("id".to_owned());
        assert_eq!(by.places(&table, &file, |_| true), [Some(1), Some(0)]);
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let array: ArrayRef = Arc::new(StructArray::new(own, vec![ints.clone(), ints], None));
        let renamed = by.renamed(&array, file.field(0), table.field(1)).unwrap();
        assert_eq!(renamed.as_struct().column_names(), ["b", "\0gone"]);
    }

    #[test]
    fn names_match_if_a_file_has_no_ids() {
        let with_names = |name: &str, kind: DataType, id: u32, names: &str| {
            let mut metadata = with_id(name, kind.clone(), id).metadata().clone();
            metadata.insert(NAMES.to_owned(), names.to_owned());
            Field::new(name, kind, true).with_metadata(metadata)
        };
        let inside =
            vec![with_names("b2", DataType::Int32, 4, "b"), with_names("c", DataType::Int32, 5, "x")];
        let table = Schema::new(vec![
            with_names("id2", DataType::Int32, 1, "key\0id"),
            with_names("s2", DataType::Struct(inside.into()), 2, "s"),
            with_id("id", DataType::Int32, 3), // added after the files were written, or not mapped
        ]);
        let own: Fields =
            vec![Field::new("c", DataType::Int32, true), Field::new("b", DataType::Int32, true)].into();
        let file = Schema::new(vec![
            Field::new("s", DataType::Struct(own.clone()), true),
            Field::new("id", DataType::Int32, true),
        ]);
        let by = ColumnsBy::Id("id".to_owned());
        assert_eq!(by.places(&table, &file, |_| true), [Some(1), Some(0), None]);
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let array: ArrayRef = Arc::new(StructArray::new(own, vec![ints.clone(), ints], None));
        let renamed = by.renamed(&array, file.field(0), table.field(1)).unwrap();
        assert_eq!(renamed.as_struct().column_names(), ["\0c", "b2"]);
        // If a file has a single id anywhere, names are ignored.
        let file = Schema::new(vec![file.field(1).clone(), with_id("other", DataType::Int32, 9)]);
        assert_eq!(by.places(&table, &file, |_| true), [None, None, None]);
    }

    #[test]
    fn generated_columns_match_by_their_name_in_files() {
        let metadata = HashMap::from([(IN_FILES.to_owned(), "row".to_owned())]);
        let table = Schema::new(vec![
            Field::new("_pos", DataType::Int64, false).with_metadata(metadata),
            with_id("x", DataType::Int32, 1),
        ]);
        let row = Field::new("row", DataType::Int64, false);
        let by = ColumnsBy::Id("id".to_owned());
        let file = Schema::new(vec![with_id("_pos", DataType::Int32, 1), row]);
        assert_eq!(by.places(&table, &file, |_| true), [Some(1), Some(0)]);
        assert_eq!(by.places(&table, &Schema::empty(), |_| true), [None, None]);
    }

    #[test]
    fn a_time_of_day_may_be_stored_as_an_integer() {
        let by = ColumnsBy::Id("id".to_owned());
        let time = DataType::Time64(arrow_schema::TimeUnit::Microsecond);
        let array: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![Some(1), None]));
        let made =
            by.renamed(&array, &with_id("t", DataType::Int64, 1), &with_id("t", time.clone(), 1)).unwrap();
        assert_eq!((made.data_type(), made.null_count()), (&time, 1));
    }
}
