//! Reads cells from record batches.
//!
//! | column | types | if absent or null |
//! |---|---|---|
//! | `row` | binary, string | error |
//! | `family` | the same | option `family` |
//! | `qualifier`, `value` | the same | empty |
//! | `timestamp` | integer, timestamp of any unit | option `timestamp` |
//! | `type` | integer, or its name | Put |
//! | `tags` | list of struct of type and value | none |
//! | `sequence_id` | integer | 0 |
//!
//! | `key` (Hudi) | binary, string | error |
//! | `value` | the same | empty |
//!
//! A key of Hudi is stored as a cell whose row is the key, without family and qualifier, and with the largest
//! timestamp.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, LargeBinaryArray, LargeListArray, RecordBatch, StructArray,
    UInt8Array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use coldframe_core::{Error, Result};

use super::options::Settings;
use crate::layout::cell::Cell;
use crate::layout::kinds::{DELETE, DELETE_COLUMN, DELETE_FAMILY, DELETE_FAMILY_VERSION, PUT, type_name};
use crate::options::View;

/// The valid types of cells.
const TYPES: [u8; 5] = [PUT, DELETE, DELETE_FAMILY_VERSION, DELETE_COLUMN, DELETE_FAMILY];

/// The positions of the columns in the batches.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) view: View,
    row: usize,
    family: Option<usize>,
    qualifier: Option<usize>,
    timestamp: Option<usize>,
    kind: Option<usize>,
    value: Option<usize>,
    tags: Option<usize>,
    sequence_id: Option<usize>,
    default_family: Option<Vec<u8>>,
    default_timestamp: Option<i64>,
    pub(super) with_tags: bool,
}

impl Input {
    pub(super) fn new(schema: &Schema, options: &Settings) -> Result<Self> {
        let position = |name: &str| schema.fields().iter().position(|f| f.name() == name);
        let key_value = position("key").is_some() && position("row").is_none();
        let view = options.view.unwrap_or(if key_value { View::KeyValue } else { View::Cells });
        let (known, row): (&[&str], _) = match view {
            View::KeyValue => (&["key", "value"], "key"),
            View::Cells => {
                (&["row", "family", "qualifier", "timestamp", "type", "value", "tags", "sequence_id"], "row")
            }
        };
        if let Some(other) = schema.fields().iter().find(|f| !known.contains(&f.name().as_str())) {
            let message = format!("an HFile has the columns {}, found {:?}", known.join(", "), other.name());
            return Err(Error::schema(message));
        }
        let missing = || Error::schema(format!("expected a column {row:?} (of {})", known.join(", ")));
        let input = Self {
            view,
            row: position(row).ok_or_else(missing)?,
            family: position("family"),
            qualifier: position("qualifier"),
            timestamp: position("timestamp"),
            kind: position("type"),
            value: position("value"),
            tags: position("tags"),
            sequence_id: position("sequence_id"),
            default_family: options.family.clone(),
            default_timestamp: options.timestamp,
            with_tags: view == View::Cells && options.tags.unwrap_or_else(|| position("tags").is_some()),
        };
        if view == View::Cells && input.family.is_none() && input.default_family.is_none() {
            return Err(Error::schema("expected a column \"family\", or the option `family` for all cells"));
        }
        if view == View::Cells && input.timestamp.is_none() && input.default_timestamp.is_none() {
            let message = "expected a column \"timestamp\", or the option `timestamp` for all cells";
            return Err(Error::schema(message));
        }
        Ok(input)
    }

    /// The cells of a batch.
    pub(super) fn cells<'a>(&'a self, batch: &RecordBatch) -> Result<Cells<'a>> {
        let column = |i: Option<usize>| i.and_then(|i| batch.columns().get(i));
        let bytes = |name: &str, i: Option<usize>| {
            column(i).map(Bytes::new).transpose().map_err(|e| e.within(format!("column {name:?}")))
        };
        let name = if self.view == View::KeyValue { "key" } else { "row" };
        let row = bytes(name, Some(self.row))?.ok_or_else(|| Error::schema("the batch has no columns"))?;
        if let Some(null) = (0..row.array().len()).find(|i| row.array().is_null(*i)) {
            return Err(Error::invalid(format!("column {name:?}: null in row {null} of a batch")));
        }
        if self.view == View::KeyValue
            && let Some(i) = (0..batch.num_rows()).find(|i| !row.get(*i).is_some_and(is_text))
        {
            let key = row.get(i).unwrap_or_default().escape_ascii().to_string();
            return Err(Error::invalid(format!(
                "column \"key\": a key of Hudi is text, expected UTF-8 in row {i} of a batch, found \"{key}\""
            )));
        }
        let long = |name: &str, i: Option<usize>| {
            column(i).map(integers).transpose().map_err(|e| e.within(format!("column {name:?}")))
        };
        Ok(Cells {
            input: self,
            row,
            family: bytes("family", self.family)?,
            qualifier: bytes("qualifier", self.qualifier)?,
            timestamp: long("timestamp", self.timestamp)?,
            kind: column(self.kind).map(types).transpose().map_err(|e| e.within("column \"type\""))?,
            value: bytes("value", self.value)?,
            tags: column(self.tags).map(Tags::new).transpose().map_err(|e| e.within("column \"tags\""))?,
            sequence_id: long("sequence_id", self.sequence_id)?,
        })
    }
}

/// The columns of a batch, cast to the types of cells.
pub(super) struct Cells<'a> {
    input: &'a Input,
    row: Bytes,
    family: Option<Bytes>,
    qualifier: Option<Bytes>,
    timestamp: Option<Int64Array>,
    kind: Option<UInt8Array>,
    value: Option<Bytes>,
    tags: Option<Tags>,
    sequence_id: Option<Int64Array>,
}

impl Cells<'_> {
    /// The cell of row `i`. The cell's tags are written to `tags`.
    pub(super) fn get<'c>(&'c self, i: usize, tags: &'c mut Vec<u8>) -> Result<Cell<'c>> {
        let row = self.row.get(i).unwrap_or_default();
        let value = self.value.as_ref().and_then(|v| v.get(i)).unwrap_or_default();
        let mut cell = Cell {
            row,
            family: &[],
            qualifier: &[],
            timestamp: i64::MAX,
            kind: PUT,
            value,
            tags: &[],
            sequence_id: 0,
        };
        if self.input.view == View::KeyValue {
            return Ok(cell);
        }
        let family = self.family.as_ref().and_then(|f| f.get(i));
        cell.family = family.or(self.input.default_family.as_deref()).unwrap_or_default();
        cell.qualifier = self.qualifier.as_ref().and_then(|q| q.get(i)).unwrap_or_default();
        let timestamp = value_of(self.timestamp.as_ref(), i).or(self.input.default_timestamp);
        cell.timestamp = timestamp.ok_or_else(|| {
            Error::invalid("a null timestamp: set the option `timestamp` to the value to write")
        })?;
        let kind = self.kind.as_ref().filter(|k| k.is_valid(i)).map(|k| k.value(i));
        cell.kind = kind.unwrap_or(PUT);
        if !TYPES.contains(&cell.kind) {
            let names = TYPES.map(|t| format!("{t} {}", type_name(t).unwrap_or_default())).join(", ");
            return Err(Error::invalid(format!("expected a type of {names}, found {}", cell.kind)));
        }
        cell.sequence_id = value_of(self.sequence_id.as_ref(), i).unwrap_or(0);
        if let Some(column) = &self.tags {
            tags.clear();
            column.put(i, tags)?;
            cell.tags = tags;
            if !self.input.with_tags && !cell.tags.is_empty() {
                return Err(Error::invalid("a cell with tags, although the option `tags` excludes them"));
            }
        }
        Ok(cell)
    }
}

fn is_text(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

fn value_of(array: Option<&Int64Array>, i: usize) -> Option<i64> {
    array.filter(|a| a.is_valid(i)).map(|a| a.value(i))
}

/// Binary or string values.
enum Bytes {
    Small(BinaryArray),
    Large(LargeBinaryArray),
}

impl Bytes {
    fn new(array: &ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Binary => Self::Small(array.as_binary().clone()),
            DataType::LargeBinary => Self::Large(array.as_binary().clone()),
            DataType::Utf8 => Self::Small(array.as_string().clone().into()),
            DataType::LargeUtf8 => Self::Large(array.as_string().clone().into()),
            DataType::Utf8View | DataType::BinaryView | DataType::FixedSizeBinary(_) | DataType::Null => {
                Self::Large(cast(array, &DataType::LargeBinary)?.as_binary().clone())
            }
            DataType::Dictionary(_, values) if values.is_binary_or_text() => {
                return Self::new(&cast(array, values)?);
            }
            other => return Err(Error::schema(format!("expected binary or string, found {other}"))),
        })
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Small(a) => a,
            Self::Large(a) => a,
        }
    }

    /// The value of row `i`; `None` if it is null.
    #[inline]
    fn get(&self, i: usize) -> Option<&[u8]> {
        match self {
            Self::Small(a) => a.is_valid(i).then(|| a.value(i)),
            Self::Large(a) => a.is_valid(i).then(|| a.value(i)),
        }
    }
}

trait IsBytes {
    fn is_binary_or_text(&self) -> bool;
}

impl IsBytes for DataType {
    fn is_binary_or_text(&self) -> bool {
        use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8, Utf8View};
        matches!(self, Binary | BinaryView | FixedSizeBinary(_) | LargeBinary | LargeUtf8 | Utf8 | Utf8View)
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &strict).map_err(|e| Error::invalid(e.to_string()))
}

/// Converts integers and timestamps to integers; timestamps become milliseconds.
fn integers(array: &ArrayRef) -> Result<Int64Array> {
    let array = match array.data_type() {
        DataType::Timestamp(_, zone) => {
            cast(array, &DataType::Timestamp(TimeUnit::Millisecond, zone.clone()))?
        }
        t if t.is_integer() || *t == DataType::Null => Arc::clone(array),
        other => return Err(Error::schema(format!("expected integers, found {other}"))),
    };
    Ok(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Converts cell types to numbers.
fn types(array: &ArrayRef) -> Result<UInt8Array> {
    match array.data_type() {
        t if t.is_integer() || *t == DataType::Null => {
            Ok(cast(array, &DataType::UInt8)?.as_primitive::<UInt8Type>().clone())
        }
        t if t.is_binary_or_text() || matches!(t, DataType::Dictionary(..)) => {
            let names = Bytes::new(array)?;
            let number = |i| names.get(i).map(kind_of).transpose();
            (0..array.len()).map(number).collect()
        }
        other => Err(Error::schema(format!("expected integers or names, found {other}"))),
    }
}

fn kind_of(name: &[u8]) -> Result<u8> {
    let kind = TYPES.into_iter().find(|t| type_name(*t).is_some_and(|known| known.as_bytes() == name));
    kind.ok_or_else(|| {
        let names = TYPES.map(|t| type_name(t).unwrap_or_default()).join(", ");
        Error::invalid(format!("expected {names}, found \"{}\"", name.escape_ascii()))
    })
}

/// Lists of tags.
struct Tags {
    lists: LargeListArray,
    kinds: UInt8Array,
    values: Bytes,
}

impl Tags {
    fn new(array: &ArrayRef) -> Result<Self> {
        let mismatch = |actual: &DataType| {
            Error::schema(format!("expected a list of struct of type and value, found {actual}"))
        };
        let item = match array.data_type() {
            DataType::List(item) | DataType::LargeList(item) => item,
            other => return Err(mismatch(other)),
        };
        let large = DataType::LargeList(Arc::new(Field::new_list_field(item.data_type().clone(), true)));
        let lists = cast(array, &large)?.as_list::<i64>().clone();
        let parts: &StructArray =
            lists.values().as_struct_opt().ok_or_else(|| mismatch(array.data_type()))?;
        let part = |name| parts.column_by_name(name).ok_or_else(|| mismatch(array.data_type()));
        Ok(Self { kinds: types_of_tags(part("type")?)?, values: Bytes::new(part("value")?)?, lists })
    }

    /// Appends the tags of row `i` in stored form.
    fn put(&self, i: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.lists.is_null(i) {
            return Ok(());
        }
        let offsets = self.lists.value_offsets();
        let place = |i: usize| offsets.get(i).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
        for tag in place(i)..place(i + 1) {
            let value = self.values.get(tag).unwrap_or_default();
            let length = u16::try_from(value.len() + 1).map_err(|_| {
                Error::invalid(format!("a tag of {} bytes: the maximum is 65534", value.len()))
            })?;
            out.extend_from_slice(&length.to_be_bytes());
            out.push(if self.kinds.is_valid(tag) { self.kinds.value(tag) } else { 0 });
            out.extend_from_slice(value);
        }
        if u16::try_from(out.len()).is_err() {
            return Err(Error::invalid(format!(
                "tags of {} bytes: the maximum of a cell is 65535",
                out.len()
            )));
        }
        Ok(())
    }
}

fn types_of_tags(array: &ArrayRef) -> Result<UInt8Array> {
    Ok(cast(array, &DataType::UInt8)?.as_primitive::<UInt8Type>().clone())
}
