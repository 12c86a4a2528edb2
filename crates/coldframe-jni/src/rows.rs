//! Rows from the JVM as Arrow arrays.
//!
//! ```text
//! rows       row row ..                     a row: its columns in the order of the schema
//! value      00                             null
//!            01, then by type
//!              boolean, byte                1 byte
//!              short 2, int date float 4, long double timestamp time interval 8, decimal 16 bytes, little-endian
//!              string, binary               length (4 bytes), bytes
//!              array                        count (4 bytes), values
//!              map                          count (4 bytes), then key and value in turn
//!              struct                       its fields
//! ```
//! `io.coldframe.spark.RowBytes` writes them. They come from this process, but are checked like any input.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, NullArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, SchemaRef, TimeUnit};
use coldframe::{Error, Result};

/// The batch of some rows.
pub fn batch(schema: &SchemaRef, bytes: &[u8], rows: usize) -> Result<RecordBatch> {
    let mut columns: Vec<Column> =
        schema.fields().iter().map(|field| Column::new(field.data_type())).collect::<Result<_>>()?;
    let mut from = Cursor(bytes);
    for _ in 0..rows {
        for column in &mut columns {
            column.add(&mut from)?;
        }
    }
    if !from.0.is_empty() {
        return Err(wrong(&format!("{} bytes after the last row", from.0.len())));
    }
    let arrays = columns
        .into_iter()
        .zip(schema.fields())
        .map(|(column, field)| column.finish().map_err(|e| e.within(format!("column {}", field.name()))));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(unfit)
}

fn wrong(actual: &str) -> Error {
    Error::invalid(format!("expected rows of the schema, found {actual}"))
}

fn unfit(e: ArrowError) -> Error {
    Error::schema(e.to_string())
}

/// The bytes that have not been read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count).ok_or_else(|| wrong("fewer bytes"))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| wrong("fewer bytes"))
    }

    fn count(&mut self) -> Result<usize> {
        usize::try_from(i32::from_le_bytes(self.array()?)).map_err(|_| wrong("a negative length"))
    }

    fn has_value(&mut self) -> Result<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(wrong(&format!("the mark {other} instead of 0 or 1"))),
        }
    }
}

/// The values of a column so far.
enum Values {
    Nothing,
    Bits(Vec<bool>),
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Wide(Vec<i128>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes { ends: Vec<i32>, data: Vec<u8> },
    List { ends: Vec<i32>, item: Box<Column> },
    Map { ends: Vec<i32>, key: Box<Column>, value: Box<Column> },
    Struct(Vec<Column>),
}

struct Column {
    kind: DataType,
    valid: Vec<bool>,
    values: Values,
}

impl Column {
    fn new(kind: &DataType) -> Result<Self> {
        let of = |field: &FieldRef| Self::new(field.data_type());
        let values = match kind {
            DataType::Null => Values::Nothing,
            DataType::Boolean => Values::Bits(Vec::new()),
            DataType::Int8 => Values::Byte(Vec::new()),
            DataType::Int16 => Values::Short(Vec::new()),
            DataType::Int32 | DataType::Date32 => Values::Int(Vec::new()),
            DataType::Int64
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Duration(TimeUnit::Microsecond)
            | DataType::Time64(TimeUnit::Nanosecond) => Values::Long(Vec::new()),
            DataType::Decimal128(..) => Values::Wide(Vec::new()),
            DataType::Float32 => Values::Float(Vec::new()),
            DataType::Float64 => Values::Double(Vec::new()),
            DataType::Utf8 | DataType::Binary => Values::Bytes { ends: vec![0], data: Vec::new() },
            DataType::List(item) => Values::List { ends: vec![0], item: Box::new(of(item)?) },
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) => match pair.as_ref() {
                    [key, value] => {
                        let (key, value) = (Box::new(of(key)?), Box::new(of(value)?));
                        Values::Map { ends: vec![0], key, value }
                    }
                    _ => return Err(Error::unsupported(format!("rows of {kind} from the JVM"))),
                },
                _ => return Err(Error::unsupported(format!("rows of {kind} from the JVM"))),
            },
            DataType::Struct(fields) => Values::Struct(fields.iter().map(of).collect::<Result<_>>()?),
            other => return Err(Error::unsupported(format!("rows of {other} from the JVM"))),
        };
        Ok(Self { kind: kind.clone(), valid: Vec::new(), values })
    }

    fn add(&mut self, from: &mut Cursor<'_>) -> Result<()> {
        let is_valid = from.has_value()?;
        self.valid.push(is_valid);
        if !is_valid {
            return self.add_null();
        }
        match &mut self.values {
            Values::Nothing => return Err(wrong("a value of the type void")),
            Values::Bits(all) => all.push(from.has_value()?),
            Values::Byte(all) => all.push(i8::from_le_bytes(from.array()?)),
            Values::Short(all) => all.push(i16::from_le_bytes(from.array()?)),
            Values::Int(all) => all.push(i32::from_le_bytes(from.array()?)),
            Values::Long(all) => all.push(i64::from_le_bytes(from.array()?)),
            Values::Wide(all) => all.push(i128::from_le_bytes(from.array()?)),
            Values::Float(all) => all.push(f32::from_le_bytes(from.array()?)),
            Values::Double(all) => all.push(f64::from_le_bytes(from.array()?)),
            Values::Bytes { ends, data } => {
                let count = from.count()?;
                data.extend_from_slice(from.take(count)?);
                ends.push(end(data.len())?);
            }
            Values::List { ends, item } => {
                for _ in 0..from.count()? {
                    item.add(from)?;
                }
                ends.push(end(item.valid.len())?);
            }
            Values::Map { ends, key, value } => {
                for _ in 0..from.count()? {
                    key.add(from)?;
                    value.add(from)?;
                }
                ends.push(end(key.valid.len())?);
            }
            Values::Struct(fields) => fields.iter_mut().try_for_each(|field| field.add(from))?,
        }
        Ok(())
    }

    /// Adds the value under a null.
    fn add_null(&mut self) -> Result<()> {
        match &mut self.values {
            Values::Nothing => {}
            Values::Bits(all) => all.push(false),
            Values::Byte(all) => all.push(0),
            Values::Short(all) => all.push(0),
            Values::Int(all) => all.push(0),
            Values::Long(all) => all.push(0),
            Values::Wide(all) => all.push(0),
            Values::Float(all) => all.push(0.0),
            Values::Double(all) => all.push(0.0),
            Values::Bytes { ends, .. } | Values::List { ends, .. } | Values::Map { ends, .. } => {
                ends.push(ends.last().copied().unwrap_or_default());
            }
            Values::Struct(fields) => {
                for field in fields {
                    field.valid.push(false);
                    field.add_null()?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef> {
        let Self { kind, valid, values } = self;
        let rows = valid.len();
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        Ok(match (values, &kind) {
            (Values::Nothing, _) => Arc::new(NullArray::new(rows)),
            (Values::Bits(all), _) => Arc::new(BooleanArray::new(BooleanBuffer::from(all), nulls)),
            (Values::Byte(all), _) => primitive::<Int8Type>(all, nulls, kind)?,
            (Values::Short(all), _) => primitive::<Int16Type>(all, nulls, kind)?,
            (Values::Int(all), DataType::Date32) => primitive::<Date32Type>(all, nulls, kind)?,
            (Values::Int(all), _) => primitive::<Int32Type>(all, nulls, kind)?,
            (Values::Long(all), DataType::Timestamp(..)) => {
                primitive::<TimestampMicrosecondType>(all, nulls, kind)?
            }
            (Values::Long(all), DataType::Duration(_)) => {
                primitive::<DurationMicrosecondType>(all, nulls, kind)?
            }
            (Values::Long(all), DataType::Time64(_)) => primitive::<Time64NanosecondType>(all, nulls, kind)?,
            (Values::Long(all), _) => primitive::<Int64Type>(all, nulls, kind)?,
            (Values::Wide(all), _) => primitive::<Decimal128Type>(all, nulls, kind)?,
            (Values::Float(all), _) => primitive::<Float32Type>(all, nulls, kind)?,
            (Values::Double(all), _) => primitive::<Float64Type>(all, nulls, kind)?,
            (Values::Bytes { ends, data }, DataType::Utf8) => {
                let ends = OffsetBuffer::new(ends.into());
                Arc::new(StringArray::try_new(ends, data.into(), nulls).map_err(unfit)?)
            }
            (Values::Bytes { ends, data }, _) => {
                let ends = OffsetBuffer::new(ends.into());
                Arc::new(BinaryArray::try_new(ends, data.into(), nulls).map_err(unfit)?)
            }
            (Values::List { ends, item }, DataType::List(field)) => {
                let ends = OffsetBuffer::new(ends.into());
                let items = nullable(item.finish()?, field)?;
                Arc::new(ListArray::try_new(field.clone(), ends, items, nulls).map_err(unfit)?)
            }
            (Values::Map { ends, key, value }, DataType::Map(entries, sorted)) => {
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(wrong("a map of no pairs"));
                };
                let columns = vec![key.finish()?, value.finish()?];
                let pairs = StructArray::try_new(pair.clone(), columns, None).map_err(unfit)?;
                let ends = OffsetBuffer::new(ends.into());
                Arc::new(MapArray::try_new(entries.clone(), ends, pairs, nulls, *sorted).map_err(unfit)?)
            }
            (Values::Struct(columns), DataType::Struct(fields)) => {
                let columns = columns.into_iter().map(Self::finish).collect::<Result<Vec<_>>>()?;
                let made = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows);
                Arc::new(made.map_err(unfit)?)
            }
            (_, other) => return Err(Error::unsupported(format!("rows of {other} from the JVM"))),
        })
    }
}

/// The end of a value in its column.
fn end(at: usize) -> Result<i32> {
    i32::try_from(at).map_err(|_| Error::batch_too_long("values of a column", at as u64))
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    kind: DataType,
) -> Result<ArrayRef> {
    if !PrimitiveArray::<T>::is_compatible(&kind) {
        return Err(Error::unsupported(format!("rows of {kind} from the JVM")));
    }
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(kind)))
}

/// Checks that items that may not be null are not.
fn nullable(items: ArrayRef, field: &Field) -> Result<ArrayRef> {
    if !field.is_nullable() && items.null_count() > 0 {
        return Err(Error::schema(format!("a null in '{}', which cannot be null", field.name())));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_schema::Schema;

    use super::*;

    fn schema() -> SchemaRef {
        let list = DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)));
        let pair = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        let inner = vec![Field::new("d", DataType::Decimal128(20, 2), true), Field::new("l", list, true)];
        Arc::new(Schema::new(vec![
            Field::new("i", DataType::Int32, true),
            Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("s", DataType::Struct(inner.into()), true),
            Field::new("m", DataType::Map(Arc::new(entries), false), true),
        ]))
    }

    fn text(of: &str) -> Vec<u8> {
        [&[1], &i32::try_from(of.len()).unwrap().to_le_bytes()[..], of.as_bytes()].concat()
    }

    /// A full row, and a row of nulls.
    fn two_rows() -> Vec<u8> {
        let mut out = [&[1][..], &7i32.to_le_bytes(), &[1], &(-5i64).to_le_bytes()].concat();
        out.extend([&[1, 1][..], &(-123i128).to_le_bytes(), &[1], &2i32.to_le_bytes()].concat());
        out.extend([text("ä"), vec![0]].concat());
        out.extend([&[1][..], &1i32.to_le_bytes(), &text("k"), &[1], &9i64.to_le_bytes()].concat());
        out.extend([0, 0, 0, 0]);
        out
    }

    #[test]
    fn rows_become_columns() {
        let made = batch(&schema(), &two_rows(), 2).unwrap();
        assert_eq!(made.column(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(7), None]);
        let inner = made.column(2).as_struct();
        assert_eq!(inner.column(0).as_primitive::<Decimal128Type>().value(0), -123);
        let list = inner.column(1).as_list::<i32>().value(0);
        assert_eq!(list.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("ä"), None]);
        assert!(made.columns().iter().all(|column| column.is_null(1)));
        assert_eq!(made.column(3).as_map().value(0).column(1).as_primitive::<Int64Type>().value(0), 9);
    }

    #[test]
    fn bytes_that_are_no_rows_are_errors() {
        let whole = two_rows();
        for cut in 0..whole.len() {
            assert!(batch(&schema(), &whole[..cut], 2).is_err(), "{cut}");
        }
        let more = [whole.clone(), vec![0]].concat();
        assert!(batch(&schema(), &more, 2).unwrap_err().to_string().contains("1 bytes after the last row"));
        let mut odd = whole;
        odd[0] = 3;
        assert!(batch(&schema(), &odd, 2).unwrap_err().to_string().contains("the mark 3"));
        let texts = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, true)]));
        let latin = [&[1][..], &1i32.to_le_bytes(), &[0xe9]].concat();
        assert!(batch(&texts, &latin, 1).unwrap_err().to_string().contains("column s"));
    }
}
