//! One file as a part of a table: its columns are converted to the table's types; the table's other columns are constant in
//! its rows.
//!
//! ```text
//! filter ──given the constants──▶ no row: the file is not opened
//!                               ├▶ what the file can evaluate goes into its scan, and prunes there
//!                               └▶ the rest is evaluated on what the file gives
//! batch  ──named, with constants, cast──▶ batch of the table's columns
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow_schema::{Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use coldframe_core::options::Strings;
use coldframe_core::projection::prune;
use coldframe_core::types::hive::Conversion;
use coldframe_core::types::{Arrangement, conform, name, views, with_defaults};
use coldframe_core::{
    ColumnExtremes, Error, ErrorKind, Extremes, Predicate, Projection, Result, Scan, arrow_error, projection,
};

use super::columns::{ColumnsBy, WITHIN};
use super::storage::shown_path;
use super::table_def::{Deletes, Stated};

/// What a file contributes to a table: the table's columns, and the values of the columns that the file does
/// not contain.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The table's columns.
    pub schema: SchemaRef,
    /// Columns with one value in all rows of the file, as arrays of length one. A constant replaces the
    /// file's column of the same name.
    pub constants: Vec<(String, ArrayRef)>,
    /// Default values, as arrays of length one, for columns that the file may lack, and for fields within columns
    /// ([`super::columns::WITHIN`]). A column without default is null.
    pub defaults: Vec<(String, ArrayRef)>,
    /// How the file's columns are matched.
    pub by: ColumnsBy,
    /// Whether a column of the file that the table does not have is an error.
    pub complete: bool,
    /// What the table's definition states of the file and of others like it.
    pub stated: Arc<Stated>,
    /// The rows that are deleted.
    pub deletes: Option<Arc<Deletes>>,
    /// The number of its first row among the rows of the table, if known.
    pub first_row: Option<u64>,
    /// The number of its rows, if the table's metadata states it.
    pub rows: Option<u64>,
    /// Numbers the rows of a pass that reads all rows of all files in their order.
    pub(super) numbers: Option<Numbers>,
}

/// The numbers of rows in one pass over the files of a table.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// The column's name.
    name: String,
    next: Arc<AtomicU64>,
}

impl Numbers {
    pub(super) fn new(name: &str, first: u64) -> Self {
        Self { name: name.to_owned(), next: Arc::new(AtomicU64::new(first)) }
    }

    /// The numbers of the next rows.
    fn take(&self, rows: usize) -> ArrayRef {
        let first = self.next.fetch_add(rows as u64, Ordering::Relaxed);
        let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
        Arc::new(Int64Array::from_iter_values((first..first.saturating_add(rows as u64)).map(number)))
    }
}

impl Fragment {
    /// The fragment of a file that has all of the table's columns.
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            constants: Vec::new(),
            defaults: Vec::new(),
            by: ColumnsBy::Name,
            complete: false,
            stated: Arc::default(),
            deletes: None,
            first_row: None,
            rows: None,
            numbers: None,
        }
    }

    fn constant(&self, name: &str) -> Option<&ArrayRef> {
        self.constants.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn default_of(&self, name: &str) -> Option<&ArrayRef> {
        self.defaults.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether a row can pass a filter, judged by the constants alone. The filter is bound to the table's
    /// columns.
    pub fn may_match(&self, predicate: Option<&Predicate>) -> Result<bool> {
        let Some(predicate) = predicate.filter(|_| !self.constants.is_empty()) else { return Ok(true) };
        let left = predicate.given(&self.schema, &|name| self.constant(name).cloned())?;
        Ok(!left.is_no_row())
    }

    /// The table's columns that a scan returns.
    pub fn projected(&self, columns: Option<&[String]>) -> Result<SchemaRef> {
        projected(&self.schema, columns)
    }

    /// How to read a file whose schema is `file`; `None` if none of its rows can pass. `path` is for errors.
    pub fn reading(&self, file: &SchemaRef, scan: &Scan, path: &str) -> Result<Option<Reading>> {
        if self.deletes.as_ref().is_some_and(|deletes| !deletes.is_empty()) {
            return Err(Error::unsupported("deleted rows in a table's definition").in_file(shown_path(path)));
        }
        let of_files = |field: &Field| self.constant(field.name()).is_none();
        let places = self.by.places(&self.schema, file, of_files);
        let origins = Origins { fragment: self, places, file };
        if self.complete {
            origins.check_no_more(path)?;
        }
        let plain = self.projected(scan.columns.as_deref())?;
        let output = strings_of(&plain, scan.strings);
        let Some(divided) = origins.divide(scan.predicate.as_ref())? else { return Ok(None) };
        // The residual filter is evaluated before strings become views.
        let (decoded, strings) = match &divided.residual {
            Some(residual) => (with_columns_of(&self.schema, &plain, residual)?, Some(Strings::Plain)),
            None => (output.clone(), scan.strings),
        };
        let (columns, names) = origins.adaptation(&decoded).map_err(|e| e.in_file(shown_path(path)))?;
        let limit = if divided.residual.is_some() { None } else { scan.limit };
        let scan = Scan { columns: Some(names), predicate: divided.pushed, limit, strings, ..scan.clone() };
        Ok(Some(Reading {
            scan,
            adaptation: Adaptation {
                columns,
                decoded,
                output,
                residual: divided.residual,
                by: self.by.clone(),
                within: self.defaults.iter().filter(|(name, _)| name.starts_with(WITHIN)).cloned().collect(),
                numbers: self.numbers.clone(),
                path: path.into(),
            },
        }))
    }
}

/// The columns with the string layout of a scan.
pub(super) fn strings_of(schema: &SchemaRef, strings: Option<Strings>) -> SchemaRef {
    strings.map_or_else(|| schema.clone(), |strings| views::laid_out(schema, strings))
}

/// A table's columns by name, in the requested order; all if `None`. A path into a struct selects some of its
/// fields.
pub(super) fn projected(table: &SchemaRef, columns: Option<&[String]>) -> Result<SchemaRef> {
    let Some(names) = columns else { return Ok(table.clone()) };
    let is_column = |name: &String| table.fields().iter().any(|field| field.name() == name);
    if names.iter().any(|name| name.contains('.') && !is_column(name)) {
        return Ok(Projection::resolve(table, Some(names), &[])?.output);
    }
    let of = |name: &String| {
        let field = table.fields().iter().find(|field| field.name() == name);
        field.cloned().ok_or_else(|| {
            let known: Vec<String> =
                table.fields().iter().take(20).map(|field| format!("'{}'", field.name())).collect();
            Error::schema(format!("no column '{name}'; the columns are {}", known.join(", ")))
        })
    };
    let fields = names.iter().map(of).collect::<Result<Fields>>()?;
    Ok(Schema::new_with_metadata(fields, table.metadata().clone()).into())
}

/// The output's columns plus those that a filter needs, with all fields of their structs.
fn with_columns_of(table: &Schema, output: &SchemaRef, filter: &Predicate) -> Result<SchemaRef> {
    let mut paths = Vec::new();
    filter.columns(&mut paths);
    let whole = |field: &FieldRef| table.fields().iter().find(|whole| whole.name() == field.name()).cloned();
    let mut fields: Vec<FieldRef> = output.fields().iter().filter_map(whole).collect();
    for path in paths {
        let column = projection::steps(table, path)?.into_iter().next();
        if let Some(column) = column.filter(|column| fields.iter().all(|known| known.name() != column.name()))
        {
            fields.push(column.clone());
        }
    }
    Ok(Schema::new_with_metadata(fields, output.metadata().clone()).into())
}

/// Where the table's columns come from in one file.
struct Origins<'a> {
    fragment: &'a Fragment,
    /// For each of the table's columns, the index of the file's column, if the file has it.
    places: Vec<Option<usize>>,
    file: &'a SchemaRef,
}

/// A filter split into two parts.
struct Divided {
    /// The part that the file evaluates, with the file's own column names.
    pushed: Option<Predicate>,
    /// The part that is evaluated on the adapted batches.
    residual: Option<Predicate>,
}

impl Origins<'_> {
    /// The file's column that matches one of the table's columns.
    fn own(&self, name: &str) -> Option<&FieldRef> {
        if self.fragment.constant(name).is_some() {
            return None;
        }
        let at = self.fragment.schema.fields().iter().position(|field| field.name() == name)?;
        self.file.fields().get((*self.places.get(at)?)?)
    }

    /// The constant value of a column: from the partition, or because the file lacks the column.
    fn constant(&self, field: &FieldRef) -> Option<ArrayRef> {
        let name = field.name();
        if let Some(value) = self.fragment.constant(name) {
            return Some(value.clone());
        }
        if self.own(name).is_some() {
            return None;
        }
        Some(self.fragment.default_of(name).cloned().unwrap_or_else(|| new_null_array(field.data_type(), 1)))
    }

    fn check_no_more(&self, path: &str) -> Result<()> {
        let known: std::collections::HashSet<usize> = self.places.iter().flatten().copied().collect();
        let folded: std::collections::HashSet<String> =
            self.fragment.schema.fields().iter().map(|field| field.name().to_lowercase()).collect();
        let more = self.file.fields().iter().enumerate();
        let more =
            more.filter(|(at, field)| !known.contains(at) && !folded.contains(&field.name().to_lowercase()));
        let more: Vec<String> = more.map(|(_, field)| format!("'{}'", field.name())).collect();
        if more.is_empty() {
            return Ok(());
        }
        let what = format!(
            "columns [{}] are not among those of the first file; with unify=True they are columns of the table",
            more.join(", ")
        );
        Err(Error::schema(what).in_file(shown_path(path)))
    }

    /// The part of the filter that the file can evaluate, and the part left for the adapted batches; `None` if
    /// no row passes.
    fn divide(&self, predicate: Option<&Predicate>) -> Result<Option<Divided>> {
        let Some(predicate) = predicate else {
            return Ok(Some(Divided { pushed: None, residual: None }));
        };
        if self.fragment.numbers.is_some() {
            // Rows are numbered before they are filtered.
            return Ok(Some(Divided { pushed: None, residual: Some(predicate.clone()) }));
        }
        let table = &self.fragment.schema;
        let known = |name: &str| {
            let field = table.fields().iter().find(|field| field.name() == name)?;
            self.constant(field)
        };
        let left = predicate.given(table, &known)?;
        if left.is_no_row() {
            return Ok(None);
        }
        if left.is_all_rows() {
            return Ok(Some(Divided { pushed: None, residual: None }));
        }
        match self.in_file(left.clone()) {
            Ok(pushed) => Ok(Some(Divided { pushed: Some(pushed), residual: None })),
            Err(e) if matches!(e.kind(), ErrorKind::Schema(_) | ErrorKind::Unsupported(_)) => {
                Ok(Some(Divided { pushed: None, residual: Some(left) }))
            }
            Err(e) => Err(e),
        }
    }

    /// The filter in the file's names and types; an error if the file cannot evaluate it.
    fn in_file(&self, predicate: Predicate) -> Result<Predicate> {
        let table = &self.fragment.schema;
        let mut paths = Vec::new();
        predicate.columns(&mut paths);
        let mut names = BTreeMap::new();
        for path in paths {
            let steps = projection::steps(table, path)?;
            let top = steps.first().map(|field| field.name().as_str()).unwrap_or_default();
            if steps.len() > 1 && matches!(self.fragment.by, ColumnsBy::Id(_)) {
                return Err(Error::unsupported(
                    "a filter on a field of a struct whose fields are matched by id",
                ));
            }
            let own = self.own(top).ok_or_else(|| Error::schema(format!("no column `{top}`")))?;
            let column = steps.first().map(|field| Field::clone(field));
            let conversion = column.map(|column| self.conversion(&column, own)).transpose()?.flatten();
            if conversion.is_some_and(|conversion| !conversion.keeps_filters()) {
                return Err(Error::unsupported("a filter on values that are converted"));
            }
            names.insert(
                path.to_owned(),
                format!("{}{}", own.name(), path.get(top.len()..).unwrap_or_default()),
            );
        }
        predicate.rename(&|path| names.get(&path).cloned().unwrap_or(path)).bind(self.file)
    }

    /// The conversion of a file's column to one of the table's.
    fn conversion(&self, table: &Field, own: &Field) -> Result<Option<Conversion>> {
        let place =
            self.file.fields().iter().position(|field| field.name() == own.name()).unwrap_or(usize::MAX);
        let made = self.fragment.stated.conversion(table, own, place);
        made.map_err(|e| e.within(format!("column `{}`", table.name())))
    }

    /// The conversions of the columns that the file supplies, and the paths to read: whole columns, or fields of
    /// structs.
    fn adaptation(&self, decoded: &Schema) -> Result<(Vec<Column>, Vec<String>)> {
        let (mut names, mut paths): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let numbers = self.fragment.numbers.as_ref();
        let column = |field: &FieldRef| match (self.constant(field), self.own(field.name())) {
            _ if numbers.is_some_and(|numbers| numbers.name == *field.name()) => Ok(Column::Numbers),
            (None, Some(own)) => {
                let at = names.iter().position(|name| name == own.name()).unwrap_or_else(|| {
                    names.push(own.name().clone());
                    paths.extend(self.paths(own, field));
                    names.len() - 1
                });
                let conversion = self.conversion(field, own)?.map(Arc::new);
                Ok(Column::Own { at, own: own.clone(), conversion })
            }
            (constant, _) => {
                Ok(Column::Same(constant.unwrap_or_else(|| new_null_array(field.data_type(), 1))))
            }
        };
        let columns = decoded.fields().iter().map(column).collect::<Result<_>>()?;
        Ok((columns, paths))
    }

    /// The paths of a file's column that a request reads: some fields of structs, or the whole column.
    fn paths(&self, own: &Field, wanted: &Field) -> Vec<String> {
        let is_whole = self.fragment.schema.fields().iter().any(|field| field.as_ref() == wanted);
        if is_whole || self.fragment.by != ColumnsBy::Name {
            return vec![own.name().clone()];
        }
        projection::paths_to(own, wanted.data_type())
    }
}

/// How one file is read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The scan of the file itself.
    pub scan: Scan,
    /// Adapts the batches read from the file.
    pub adaptation: Adaptation,
}

/// Where a column comes from.
#[derive(Clone, Debug)]
enum Column {
    /// A column of the file.
    Own {
        /// Its index among the columns read from the file.
        at: usize,
        own: FieldRef,
        /// The conversion of its values, by the rules of Hive.
        conversion: Option<Arc<Conversion>>,
    },
    /// The same value in all rows, as an array of length one.
    Same(ArrayRef),
    /// The numbers of the rows.
    Numbers,
}

/// Converts a file's batches to the table's.
#[derive(Clone, Debug)]
pub struct Adaptation {
    columns: Vec<Column>,
    /// All columns of the adapted batches; `output` has those that are returned.
    decoded: SchemaRef,
    output: SchemaRef,
    residual: Option<Predicate>,
    by: ColumnsBy,
    /// Default values of fields within columns, by name.
    within: BTreeMap<String, ArrayRef>,
    numbers: Option<Numbers>,
    path: Box<str>,
}

impl Adaptation {
    /// Whether the file's minima and maxima, and its numbers of values, are also those of the table's columns.
    pub(super) fn keeps_extremes(&self) -> bool {
        self.columns.iter().all(|column| match column {
            Column::Own { conversion: Some(conversion), .. } => conversion.keeps_filters(),
            _ => true,
        })
    }

    /// Whether rows are filtered here. If so, the limit must not be passed on to the scan of the file.
    pub fn filters(&self) -> bool {
        self.residual.is_some()
    }

    /// The columns of the batches that [`Self::adapt`] returns.
    pub fn schema(&self) -> &SchemaRef {
        &self.output
    }

    /// The table's columns of a batch, without the rows that the filter excludes.
    pub fn adapt(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let made = self.arranged(batch)?;
        let Some(residual) = &self.residual else { return Ok(made) };
        let passes = BooleanArray::new(residual.passing(&made)?, None);
        let kept = filter_record_batch(&made, &passes).map_err(arrow_error)?;
        let columns = kept.columns().iter().zip(self.output.fields());
        let columns = columns.map(|(array, field)| prune(array, field.data_type())).collect::<Result<_>>()?;
        whole(&self.output, columns, kept.num_rows())
    }

    /// Converts the extremes of a file's columns to those of the table's columns.
    pub(super) fn extremes(&self, unit: &Extremes) -> Result<Extremes> {
        let of = |(column, field): (&Column, &FieldRef)| match column {
            Column::Own { at, own, conversion } => {
                let lacking =
                    || Error::schema(format!("expected the extremes of column `{}`, found none", own.name()));
                let known = unit.columns.get(*at).ok_or_else(lacking)?;
                // Other conversions may change the order of values, and so their extremes.
                let both = [own.data_type(), field.data_type()];
                let is_ordered = conversion.is_some()
                    || own.data_type() == field.data_type()
                    || both.iter().all(|kind| kind.is_integer());
                let ends = known.ends.as_ref().filter(|_| is_ordered);
                let ends = ends.map(|ends| self.cast(ends, own, field, conversion.as_deref())).transpose()?;
                Ok(ColumnExtremes { values: known.values, ends })
            }
            Column::Same(value) => {
                let has_value = unit.rows > 0 && value.is_valid(0);
                let value = if has_value { value.clone() } else { new_null_array(value.data_type(), 1) };
                let ends = Some(self.repeated(&value, field, 2)?);
                Ok(ColumnExtremes { values: if has_value { unit.rows } else { 0 }, ends })
            }
            Column::Numbers => Ok(ColumnExtremes { values: unit.rows, ends: None }),
        };
        let columns = self.columns.iter().zip(self.decoded.fields()).map(of);
        Ok(Extremes { rows: unit.rows, columns: columns.collect::<Result<_>>()? })
    }

    fn arranged(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let numbers = self.numbers.as_ref().map(|numbers| numbers.take(rows));
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.decoded.fields()) {
            columns.push(match column {
                Column::Own { at, own, conversion } => {
                    let array = batch.columns().get(*at).ok_or_else(|| {
                        Error::schema(format!("a decoded batch lacks column `{}`", own.name()))
                    })?;
                    self.cast(array, own, field, conversion.as_deref())?
                }
                Column::Same(value) => self.repeated(value, field, rows)?,
                Column::Numbers => numbers.clone().unwrap_or_else(|| new_null_array(field.data_type(), rows)),
            });
        }
        whole(&self.decoded, columns, rows)
    }

    /// Converts a file's column to the table's type.
    fn cast(
        &self,
        array: &ArrayRef,
        own: &FieldRef,
        field: &FieldRef,
        conversion: Option<&Conversion>,
    ) -> Result<ArrayRef> {
        let converted = conversion.map(|conversion| conversion.convert(array)).transpose();
        let converted = converted
            .map_err(|e| e.within(format!("column `{}`", field.name())).in_file(shown_path(&self.path)))?;
        let array = converted.as_ref().unwrap_or(array);
        if array.data_type() == field.data_type() {
            return Ok(array.clone());
        }
        let unfit = |reason: &Error| {
            let what = format!(
                "column '{}' is {} in this file, and not every value fits the dataset's {}: {reason}",
                field.name(),
                name(array.data_type()),
                name(field.data_type()),
            );
            Error::schema(what).in_file(shown_path(&self.path))
        };
        let made = self.by.renamed(array, own, field);
        let default = |field: &Field| self.within.get(&self.by.default_within(field)?).cloned();
        let made = made.and_then(|array| with_defaults(&array, field.data_type(), &default));
        made.and_then(|array| retyped(&array, field)).map_err(|e| unfit(&e))
    }

    /// A column with the same value in all rows.
    fn repeated(&self, value: &ArrayRef, field: &FieldRef, rows: usize) -> Result<ArrayRef> {
        if value.is_null(0) {
            return Ok(new_null_array(field.data_type(), rows));
        }
        let target = Schema::new(vec![field.clone()]).into();
        let constants = BTreeMap::from([(field.name().clone(), value.clone())]);
        let none = RecordBatch::new_empty(Schema::empty().into());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let none =
            RecordBatch::try_new_with_options(none.schema(), Vec::new(), &options).map_err(arrow_error)?;
        let made = Arrangement { target, names: None, constants }.arrange(&none)?;
        let array = made.columns().first().cloned().unwrap_or_else(|| value.clone());
        if array.data_type() == field.data_type() { Ok(array) } else { retyped(&array, field) }
    }
}

/// Converts an array to exactly a field's type, without changing a value.
fn retyped(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let source = arrow_schema::Field::new(field.name(), array.data_type().clone(), true);
    let batch = whole(&Schema::new(vec![source]).into(), vec![array.clone()], array.len())?;
    let wanted = field.as_ref().clone().with_nullable(true);
    let made = conform(&batch, &Schema::new(vec![wanted]).into())?;
    Ok(made.columns().first().cloned().unwrap_or_else(|| array.clone()))
}

fn whole(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| Error::schema(e.to_string()))
}

#[cfg(test)]
mod tests;
