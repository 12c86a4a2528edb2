//! The requested columns of a schema: names, or dotted paths into structs.
//!
//! `["a.b"]` keeps the struct `a` with only the child `b`, as pyarrow.parquet does. A column whose own name
//! contains the dots takes precedence. Paths lead through lists and maps without naming their items
//! (`tags.key` for list<struct<key, ..>>).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, RecordBatch, StructArray,
};
use arrow_array::{RecordBatchOptions, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use coldframe_encoding::{Error, Result};

use crate::arrow_error;
use crate::types::views;

/// The requested columns, resolved against a file's schema.
#[derive(Clone, Debug)]
pub struct Projection {
    /// Columns to decode, in file order: the requested columns and the columns of the filter.
    pub decode: SchemaRef,
    /// Columns to return, in the requested order.
    pub output: SchemaRef,
}

impl Projection {
    /// Resolves `columns` (all columns if `None`) and the columns `also`, which only the filter needs.
    pub fn resolve(schema: &SchemaRef, columns: Option<&[String]>, also: &[&str]) -> Result<Self> {
        let (mut wanted, mut order) = (RequestedPaths::default(), Vec::new());
        let known = Names::new(schema, columns.is_some() || !also.is_empty());
        match columns {
            None => {
                order = (0..schema.fields().len()).collect();
                wanted.all(&order);
            }
            Some(names) => {
                for name in names {
                    let (index, path) = known.find(name)?;
                    if wanted.add(index, path) {
                        order.push(index);
                    }
                }
            }
        }
        let output_fields: Vec<FieldRef> = order.iter().filter_map(|i| wanted.field(schema, *i)).collect();
        for name in also {
            let (index, path) = known.find(name)?;
            wanted.add(index, path);
        }
        let decode: Vec<FieldRef> =
            (0..schema.fields().len()).filter_map(|i| wanted.field(schema, i)).collect();
        let metadata = schema.metadata().clone();
        Ok(Self {
            decode: Arc::new(Schema::new(decode)),
            output: Arc::new(Schema::new_with_metadata(output_fields, metadata)),
        })
    }

    /// The projection with views for strings and binary values, except in the columns `filtered`: after
    /// filtering, plain values do not keep the values of dropped rows in memory.
    pub(crate) fn with_views(self, filtered: &[&str]) -> Result<Self> {
        let places = outermost(&self.decode, filtered)?;
        let names: Vec<&String> = places.iter().map(|at| self.decode.field(*at).name()).collect();
        let with_views = |schema: &SchemaRef| -> SchemaRef {
            let field = |field: &FieldRef| match views::with_views(field) {
                Some(views) if !names.contains(&field.name()) => views,
                _ => field.clone(),
            };
            let fields: Fields = schema.fields().iter().map(field).collect();
            Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
        };
        Ok(Self { decode: with_views(&self.decode), output: with_views(&self.output) })
    }

    /// The output columns of a decoded batch.
    pub fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let is_at =
            |i: usize, f: &Field| batch.schema_ref().fields().get(i).is_some_and(|g| g.name() == f.name());
        // Usually the columns are already in order; searching for each by name is slow for wide tables.
        let moved = self.output.fields().iter().enumerate().any(|(i, f)| !is_at(i, f));
        let known = Names::new(batch.schema_ref(), moved);
        let columns = self
            .output
            .fields()
            .iter()
            .enumerate()
            .map(|(i, f)| {
                let at = if is_at(i, f) { Some(i) } else { known.first(f.name()) };
                let array = at.and_then(|at| batch.columns().get(at)).ok_or_else(|| {
                    Error::schema(format!("a decoded batch lacks the column `{}`", f.name()))
                })?;
                prune(array, f.data_type())
            })
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.output.clone(), columns, &options).map_err(arrow_error)
    }
}

/// The paths requested below each top-level column; an empty path requests all of the column.
#[derive(Default)]
struct RequestedPaths(BTreeMap<usize, Vec<Vec<String>>>);

impl RequestedPaths {
    fn all(&mut self, indexes: &[usize]) {
        for i in indexes {
            self.0.insert(*i, vec![Vec::new()]);
        }
    }

    /// Adds a path; returns whether its column was new.
    fn add(&mut self, index: usize, path: Vec<String>) -> bool {
        let paths = self.0.entry(index).or_default();
        paths.push(path);
        paths.len() == 1
    }

    fn field(&self, schema: &Schema, index: usize) -> Option<FieldRef> {
        let paths: Vec<&[String]> = self.0.get(&index)?.iter().map(Vec::as_slice).collect();
        schema.fields().get(index).map(|f| keep(f, &paths))
    }
}

/// The columns of a schema by name; if several columns have the same name, the first of them.
struct Names<'a> {
    schema: &'a Schema,
    places: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// Indexes the columns of `schema` by name; empty unless `needed`.
    fn new(schema: &'a Schema, needed: bool) -> Self {
        let fields: &[FieldRef] = if needed { schema.fields() } else { &[] };
        let places = fields.iter().enumerate().rev().map(|(at, field)| (field.name().as_str(), at)).collect();
        Self { schema, places }
    }

    fn first(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The index of the column that `name` refers to, and the path below it.
    fn find(&self, name: &str) -> Result<(usize, Vec<String>)> {
        if let Some(index) = self.first(name) {
            return Ok((index, Vec::new()));
        }
        for (dot, _) in name.match_indices('.') {
            let (head, rest) = (name.get(..dot).unwrap_or_default(), name.get(dot + 1..).unwrap_or_default());
            let field = self.first(head).and_then(|at| Some((at, self.schema.fields().get(at)?)));
            let Some((index, field)) = field else { continue };
            if let Some(steps) = below(field.data_type(), rest) {
                return Ok((index, steps.into_iter().map(|f| f.name().clone()).collect()));
            }
        }
        let known = self.schema.fields();
        let mut list = known.iter().take(20).map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
        if known.len() > 20 {
            list.push_str(", ...");
        }
        Err(Error::schema(format!("no column `{name}`; there are: {list}")))
    }
}

/// The struct children inside lists and maps.
fn children(data_type: &DataType) -> Option<&Fields> {
    match data_type {
        DataType::Struct(fields) => Some(fields),
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => {
            children(f.data_type())
        }
        _ => None,
    }
}

/// The fields on a dotted path below a column of this type. Names may contain dots: a child with the whole
/// rest of the path as its name is tried before a child with the first part as its name.
pub(crate) fn below<'a>(data_type: &'a DataType, path: &str) -> Option<Vec<&'a FieldRef>> {
    let fields = children(data_type)?;
    if let Some(field) = fields.iter().find(|f| f.name() == path) {
        return Some(vec![field]);
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let (head, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
        let field = fields.iter().find(|f| f.name() == head)?;
        let mut steps = vec![field];
        steps.extend(below(field.data_type(), rest)?);
        Some(steps)
    })
}

/// The fields on `path`, beginning with the column.
pub fn steps<'a>(schema: &'a Schema, path: &str) -> Result<Vec<&'a FieldRef>> {
    let (index, names) = Names::new(schema, true).find(path)?;
    let column = schema.fields().get(index).ok_or_else(|| Error::schema(format!("no column `{path}`")))?;
    let mut steps = vec![column];
    for name in names {
        let inside = steps.last().and_then(|f| children(f.data_type()));
        let field = inside.and_then(|fields| fields.iter().find(|f| *f.name() == name));
        steps.push(field.ok_or_else(|| Error::schema(format!("no column `{path}`")))?);
    }
    Ok(steps)
}

/// `field` with only the struct children that are on `paths`.
fn keep(field: &FieldRef, paths: &[&[String]]) -> FieldRef {
    if paths.iter().any(|p| p.is_empty()) {
        return field.clone();
    }
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(keep_children(fields, paths)),
        DataType::List(f) => DataType::List(keep(f, paths)),
        DataType::LargeList(f) => DataType::LargeList(keep(f, paths)),
        DataType::FixedSizeList(f, n) => DataType::FixedSizeList(keep(f, paths), *n),
        // A map needs both its key and its value, so the whole map is kept.
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

fn keep_children(fields: &Fields, paths: &[&[String]]) -> Fields {
    fields
        .iter()
        .filter_map(|f| {
            let below: Vec<&[String]> = paths
                .iter()
                .filter_map(|p| p.split_first().filter(|(n, _)| *n == f.name()).map(|(_, r)| r))
                .collect();
            (!below.is_empty()).then(|| keep(f, &below))
        })
        .collect()
}

/// `array` with only the struct children that `to` has, and in the string layouts of `to`.
pub fn prune(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let mismatch = || Error::schema(format!("expected a column of type {to}, decoded {}", array.data_type()));
    match (array.data_type(), to) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let from = array.as_struct();
            let children = fields
                .iter()
                .map(|f| prune(from.column_by_name(f.name()).ok_or_else(mismatch)?, f.data_type()))
                .collect::<Result<Vec<_>>>()?;
            let pruned =
                StructArray::try_new_with_length(fields.clone(), children, from.nulls().cloned(), from.len());
            Ok(Arc::new(pruned.map_err(arrow_error)?))
        }
        (DataType::List(_), DataType::List(f)) => {
            let from: &ListArray = array.as_list();
            let values = prune(from.values(), f.data_type())?;
            let pruned = ListArray::try_new(f.clone(), from.offsets().clone(), values, from.nulls().cloned());
            Ok(Arc::new(pruned.map_err(arrow_error)?))
        }
        (DataType::LargeList(_), DataType::LargeList(f)) => {
            let from: &LargeListArray = array.as_list();
            let values = prune(from.values(), f.data_type())?;
            let pruned =
                LargeListArray::try_new(f.clone(), from.offsets().clone(), values, from.nulls().cloned());
            Ok(Arc::new(pruned.map_err(arrow_error)?))
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(f, n)) => {
            let from = array.as_fixed_size_list();
            let values = prune(from.values(), f.data_type())?;
            let pruned = FixedSizeListArray::try_new(f.clone(), *n, values, from.nulls().cloned());
            Ok(Arc::new(pruned.map_err(arrow_error)?))
        }
        (DataType::Map(..), DataType::Map(f, sorted)) => {
            let from: &MapArray = array.as_map();
            let entries: ArrayRef = Arc::new(from.entries().clone());
            let entries = prune(&entries, f.data_type())?.as_struct().clone();
            let pruned =
                MapArray::try_new(f.clone(), from.offsets().clone(), entries, from.nulls().cloned(), *sorted);
            Ok(Arc::new(pruned.map_err(arrow_error)?))
        }
        (from, to) if views::view(from).as_ref() == Some(to) || views::view(to).as_ref() == Some(from) => {
            arrow_cast::cast(array, to).map_err(arrow_error)
        }
        _ => Err(mismatch()),
    }
}

/// A batch in the layouts of `schema`, which has the same columns. Plain values that become views are not
/// copied.
pub(crate) fn convert(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(array, field)| prune(array, field.data_type())).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}

/// The paths that select the struct fields of `wanted`, a subset of the column's type. If `wanted` has all
/// fields, or if paths would be ambiguous, the result is just the column's name.
pub fn paths_to(column: &Field, wanted: &DataType) -> Vec<String> {
    let mut paths = Vec::new();
    match leaves(column.name(), column.data_type(), wanted, &mut paths) {
        Some(true) if !column.name().contains('.') => paths,
        _ => vec![column.name().clone()],
    }
}

/// Adds the paths of the fields in `wanted` to `paths`. Returns whether `wanted` lacks a field; `None` if
/// paths would be ambiguous.
fn leaves(path: &str, own: &DataType, wanted: &DataType, paths: &mut Vec<String>) -> Option<bool> {
    match (own, wanted) {
        (DataType::Struct(own), DataType::Struct(wanted)) if !wanted.is_empty() => {
            let mut lacks = wanted.len() < own.len();
            for field in wanted {
                let own_field = own
                    .iter()
                    .find(|own_field| own_field.name() == field.name() && !own_field.name().contains('.'))?;
                let below = format!("{path}.{}", field.name());
                lacks |= leaves(&below, own_field.data_type(), field.data_type(), paths)?;
            }
            Some(lacks)
        }
        (
            DataType::List(own) | DataType::LargeList(own),
            DataType::List(item) | DataType::LargeList(item),
        ) => leaves(path, own.data_type(), item.data_type(), paths),
        _ => {
            paths.push(path.to_owned());
            Some(false)
        }
    }
}

/// The indexes of the top-level columns that contain `paths`, each once, in the schema's order.
pub(crate) fn outermost(schema: &Schema, paths: &[&str]) -> Result<Vec<usize>> {
    let names = Names::new(schema, true);
    let mut places = paths.iter().map(|path| Ok(names.find(path)?.0)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The column at `path` in `batch`. A struct's child is also null where an enclosing struct is null.
pub fn column(batch: &RecordBatch, path: &str) -> Result<ArrayRef> {
    let schema = batch.schema();
    let (index, below) = Names::new(&schema, true).find(path)?;
    let mut array = batch.columns().get(index).cloned().unwrap_or_else(|| new_empty_array(&DataType::Null));
    for name in below {
        let outer = array.as_struct_opt().ok_or_else(|| {
            Error::unsupported(format!("a filter on `{path}`, which is inside a list or map"))
        })?;
        let child =
            outer.column_by_name(&name).ok_or_else(|| Error::schema(format!("no column `{path}`")))?;
        let nulls = NullBuffer::union(outer.nulls(), child.nulls());
        let data = child.to_data().into_builder().nulls(nulls).build().map_err(arrow_error)?;
        array = arrow_array::make_array(data);
    }
    Ok(array)
}

/// Which rows have a value at `path` in `batch`, of any type; `None` if all rows have a value. A row has no
/// value if an enclosing struct is null, or if its value in a union is null.
pub(crate) fn validity(batch: &RecordBatch, path: &str) -> Result<Option<NullBuffer>> {
    let schema = batch.schema();
    let (index, below) = Names::new(&schema, true).find(path)?;
    let lacking = || Error::schema(format!("no column `{path}`"));
    let mut array = batch.columns().get(index).ok_or_else(lacking)?;
    let mut nulls = array.logical_nulls();
    for name in below {
        let outer = array.as_struct_opt().ok_or_else(|| {
            Error::unsupported(format!("a filter on `{path}`, which is inside a list or map"))
        })?;
        array = outer.column_by_name(&name).ok_or_else(lacking)?;
        nulls = NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref());
    }
    Ok(nulls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int32Array, StringArray};

    fn batch() -> RecordBatch {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
        let inner =
            Fields::from(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)]);
        let nulls = Some(vec![false, true].into());
        let s: ArrayRef = Arc::new(StructArray::new(inner, vec![a.clone(), b.clone()], nulls));
        RecordBatch::try_from_iter_with_nullable([("id", a, true), ("s", s, true), ("s.b", b, true)]).unwrap()
    }

    /// Selects all columns of a wide table by name, in another order. Without a linear algorithm this takes
    /// minutes.
    #[test]
    fn a_hundred_thousand_names_are_resolved_quickly() {
        let fields: Vec<Field> =
            (0..100_000).map(|i| Field::new(format!("c{i}"), DataType::Int32, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let names: Vec<String> = (0..100_000).rev().map(|i| format!("c{i}")).collect();
        let all = Projection::resolve(&schema, Some(&names), &["c7"]).unwrap();
        assert_eq!((all.output.fields().len(), all.output.field(0).name().as_str()), (100_000, "c99999"));
        let out = all.project(&RecordBatch::new_empty(all.decode.clone())).unwrap();
        assert_eq!(out.schema_ref(), &all.output);
    }

    #[test]
    fn paths_prune_structs_and_column_names_with_dots_win() {
        let batch = batch();
        let names = |p: &Projection| {
            (p.decode.fields().len(), p.output.fields().iter().map(|f| f.to_string()).collect::<Vec<_>>())
        };
        let pruned = Projection::resolve(&batch.schema(), Some(&["s.a".into()]), &["id"]).unwrap();
        assert_eq!(names(&pruned).0, 2);
        let out = pruned.project(&batch).unwrap();
        assert_eq!(out.num_columns(), 1);
        assert_eq!(out.column(0).as_struct().num_columns(), 1);
        let own = Projection::resolve(&batch.schema(), Some(&["s.b".into(), "id".into()]), &[]).unwrap();
        assert_eq!(own.project(&batch).unwrap().column(0).data_type(), &DataType::Utf8);
        let none = Projection::resolve(&batch.schema(), Some(&[]), &[]).unwrap();
        assert_eq!(none.project(&batch).unwrap().num_rows(), 2);
        let e = Projection::resolve(&batch.schema(), Some(&["s.c".into()]), &[]).unwrap_err();
        assert_eq!(e.to_string(), "no column `s.c`; there are: id, s, s.b");
    }

    #[test]
    fn paths_name_the_wanted_fields() {
        let fields = |names: &[&str]| -> Fields {
            names.iter().map(|name| Field::new(*name, DataType::Int32, true)).collect()
        };
        let of = |names: &[&str]| DataType::Struct(fields(names));
        let list = |of: DataType| DataType::List(Arc::new(Field::new("element", of, true)));
        let nested = |inner: DataType, more: &[&str]| {
            let mut all: Vec<Field> = vec![Field::new("i", inner, true)];
            all.extend(more.iter().map(|name| Field::new(*name, DataType::Utf8, true)));
            DataType::Struct(all.into())
        };
        let column = Field::new("s", nested(list(of(&["a", "b"])), &["x", "y.z"]), true);
        for (wanted, expected) in [
            (nested(list(of(&["b"])), &["x"]), &["s.i.b", "s.x"][..]),
            (nested(list(of(&["b", "a"])), &[]), &["s.i.b", "s.i.a"]),
            (column.data_type().clone(), &["s"]),
            (nested(list(of(&["c"])), &["x"]), &["s"]),
            (nested(list(of(&["a"])), &["y.z"]), &["s"]),
            (DataType::Utf8, &["s"]),
        ] {
            assert_eq!(paths_to(&column, &wanted), expected, "{wanted}");
        }
    }

    #[test]
    fn a_child_takes_the_nulls_of_its_struct() {
        let array = column(&batch(), "s.a").unwrap();
        assert!(array.is_null(0) && array.is_valid(1));
    }
}
