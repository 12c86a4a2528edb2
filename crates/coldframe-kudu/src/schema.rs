//! A table's columns as its super blocks describe them, and as Arrow fields.
//!
//! A column is identified by its id. The name of a column may change, but its id does not change; a column
//! that was dropped and added again has a new id. Blocks and deltas refer to columns by id. Ids that are not
//! in the schema belong to dropped columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, new_null_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe_core::salvage::check_batch;
use coldframe_core::{Error, ErrorContext, Result, Value, arrow_error};

use crate::layout::proto;
use coldframe_cfile::layout::types::{KuduType, Physical};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) data_type: KuduType,
    /// The column's type in Arrow.
    pub(crate) arrow: DataType,
    pub(crate) nullable: bool,
    /// Whether the column belongs to the primary key. Key columns come first.
    pub(crate) key: bool,
    /// The value for rows that are older than the column, as the bytes of a cell.
    pub(crate) read_default: Option<Vec<u8>>,
    /// The value of the column in new rows for which the client gives no value, as the bytes of a cell.
    pub(crate) write_default: Option<Vec<u8>>,
    /// Whether a value cannot change once it is written.
    pub(crate) immutable: bool,
    /// Whether the server generates the column's values.
    pub(crate) auto_incrementing: bool,
    comment: Option<String>,
}

/// A table's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableSchema {
    pub(crate) columns: Vec<Column>,
}

impl TableSchema {
    pub(crate) fn new(message: &proto::Schema) -> Result<Self> {
        let columns =
            message.columns.iter().map(|c| Column::new(c).within(|| format!("column `{}`", c.name)));
        Ok(Self { columns: columns.collect::<Result<_>>()? })
    }

    /// The Arrow schema.
    pub(crate) fn arrow(&self) -> SchemaRef {
        let field = |c: &Column| Field::new(&c.name, c.arrow.clone(), c.nullable);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// The columns of the primary key.
    pub(crate) fn key(&self) -> Vec<&Column> {
        self.columns.iter().take_while(|c| c.key).collect()
    }
}

impl Column {
    fn new(message: &proto::ColumnSchema) -> Result<Self> {
        let id = message.id.and_then(|id| i32::try_from(id).ok());
        let id = id.ok_or_else(|| Error::corrupt("expected the column's number, found none"))?;
        let data_type = KuduType::from_number(message.data_type)?;
        let arrow = match data_type.arrow() {
            DataType::Decimal128(max, _) if data_type != KuduType::Int128 => decimal(message, max)?,
            other => other,
        };
        Ok(Self {
            id,
            name: message.name.clone(),
            data_type,
            arrow,
            nullable: message.is_nullable,
            key: message.is_key,
            read_default: message.read_default.clone(),
            write_default: message.write_default.clone(),
            immutable: message.immutable,
            auto_incrementing: message.auto_incrementing,
            comment: message.comment.clone().filter(|c| !c.is_empty()),
        })
    }

    /// An array of `rows` read defaults, for rows that are older than the column.
    pub(crate) fn defaults(&self, rows: usize) -> Result<ArrayRef> {
        match &self.read_default {
            Some(cell) => {
                repeat(self, cell, rows).within(|| format!("read default of column `{}`", self.name))
            }
            None if self.nullable => Ok(new_null_array(&self.arrow, rows)),
            None => Err(Error::corrupt(format!(
                "expected a block or a read default of column `{}` (number {}), found neither",
                self.name, self.id
            ))),
        }
    }

    /// An array of `rows` placeholders to be overwritten: nulls, or zeros if the column is not nullable.
    pub(crate) fn blank(&self, rows: usize) -> Result<ArrayRef> {
        if self.nullable {
            return Ok(new_null_array(&self.arrow, rows));
        }
        let zeros = match self.data_type.physical() {
            Physical::Bool => vec![0],
            Physical::Fixed(n) => vec![0; n],
            Physical::Binary => Vec::new(),
        };
        repeat(self, &zeros, rows)
    }

    /// Describes the column as the super block does.
    pub(crate) fn describe(&self) -> Value {
        let mut pairs = vec![
            ("name".to_owned(), Value::from(self.name.as_str())),
            ("id".to_owned(), Value::from(self.id)),
            ("type".to_owned(), Value::from(self.data_type.name())),
            ("key".to_owned(), Value::from(self.key)),
            ("nullable".to_owned(), Value::from(self.nullable)),
        ];
        if let Some(comment) = &self.comment {
            pairs.push(("comment".to_owned(), Value::from(comment.as_str())));
        }
        Value::Map(pairs)
    }
}

fn decimal(message: &proto::ColumnSchema, max: u8) -> Result<DataType> {
    let attributes = message.attributes.clone().unwrap_or_default();
    let precision = attributes.precision.and_then(|p| u8::try_from(p).ok()).filter(|p| (1..=max).contains(p));
    let scale = attributes.scale.unwrap_or(0);
    let precision = precision.ok_or_else(|| {
        Error::corrupt(format!("expected a precision of 1 to {max}, found {:?}", attributes.precision))
    })?;
    let fits = i8::try_from(scale).ok().filter(|s| *s >= 0 && s.unsigned_abs() <= precision);
    let scale =
        fits.ok_or_else(|| Error::corrupt(format!("expected a scale of 0 to {precision}, found {scale}")))?;
    Ok(DataType::Decimal128(precision, scale))
}

/// Widens a little-endian integer to `width` bytes with its sign: decimals of 4 and 8 bytes become 16 bytes
/// long.
pub(crate) fn widen(cell: &[u8], width: usize) -> impl Iterator<Item = u8> + '_ {
    let fill = if cell.last().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
    cell.iter().copied().chain(std::iter::repeat(fill)).take(width)
}

/// The size in bytes of a value in Arrow, for types of fixed width.
pub(crate) fn arrow_width(to: &DataType) -> Option<usize> {
    to.primitive_width()
}

/// Checks that a cell has the size of its type.
pub(crate) fn check_cell(data_type: KuduType, cell: &[u8]) -> Result<()> {
    let expected = match data_type.physical() {
        Physical::Bool => 1,
        Physical::Fixed(n) => n,
        Physical::Binary => return Ok(()),
    };
    if cell.len() == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected a {data_type} of {expected} bytes, found {}", cell.len())))
}

/// An array with the same value `rows` times.
fn repeat(column: &Column, cell: &[u8], rows: usize) -> Result<ArrayRef> {
    check_cell(column.data_type, cell)?;
    let data = ArrayData::builder(column.arrow.clone()).len(rows);
    let data = match column.data_type.physical() {
        Physical::Bool => {
            let byte = if cell.first().is_some_and(|b| *b != 0) { 0xff } else { 0 };
            data.add_buffer(Buffer::from(vec![byte; rows.div_ceil(8)]))
        }
        Physical::Fixed(_) => {
            let width = arrow_width(&column.arrow).unwrap_or(cell.len());
            let value: Vec<u8> = widen(cell, width).collect();
            data.add_buffer(Buffer::from(value.repeat(rows)))
        }
        Physical::Binary => {
            if column.arrow == DataType::Utf8 && std::str::from_utf8(cell).is_err() {
                return Err(Error::corrupt("expected UTF-8, found other bytes"));
            }
            let all = (cell.len() as u64).saturating_mul(rows as u64);
            check_batch("read defaults", rows, all)?;
            let too_large = |_| Error::batch_too_long("read defaults", all);
            let (all, step) = (i32::try_from(all).map_err(too_large)?, cell.len());
            let offsets: Vec<i32> =
                if step == 0 { vec![0; rows + 1] } else { (0..=all).step_by(cell.len()).collect() };
            data.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from(cell.repeat(rows)))
        }
    };
    Ok(arrow_array::make_array(data.build().map_err(arrow_error)?))
}
