//! Turns decoded values into arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, NullArray, StringArray, StructArray, make_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use coldframe_core::{Error, Result, arrow_error};

use super::{BuilderKind, ColumnBuilder, FieldPart, Strings, mismatch};

/// The first `len` values, padded if there are fewer. Empties the column.
pub(super) fn finish(column: &mut ColumnBuilder, len: usize) -> Result<ArrayRef> {
    column.pad(len);
    column.len = 0;
    let nulls = column.nulls.as_mut().and_then(|n| n.finish());
    let data_type = &column.data_type;
    Ok(match &mut column.kind {
        BuilderKind::Null => Arc::new(NullArray::new(len)),
        BuilderKind::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
        BuilderKind::Int(values) => fixed_width(data_type, len, std::mem::take(values), nulls)?,
        BuilderKind::Long(values) => fixed_width(data_type, len, std::mem::take(values), nulls)?,
        BuilderKind::Float(values) => fixed_width(data_type, len, std::mem::take(values), nulls)?,
        BuilderKind::Double(values) => fixed_width(data_type, len, std::mem::take(values), nulls)?,
        BuilderKind::Decimal { values, .. } => fixed_width(data_type, len, std::mem::take(values), nulls)?,
        BuilderKind::Fixed { data, .. } => fixed_width(data_type, len, std::mem::take(data), nulls)?,
        BuilderKind::Bytes(values) => {
            let (offsets, data) = values.take()?;
            Arc::new(BinaryArray::try_new(offsets, data, nulls).map_err(arrow_error)?)
        }
        BuilderKind::String(values) | BuilderKind::Enum(_, values) => {
            let (offsets, data) = values.take()?;
            Arc::new(StringArray::try_new(offsets, data, nulls).map_err(arrow_error)?)
        }
        BuilderKind::List { offsets, item, .. } => {
            let DataType::List(field) = data_type else { return Err(mismatch(data_type)) };
            let (offsets, items) = take_offsets(offsets)?;
            let values = finish(item, items)?;
            Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls).map_err(arrow_error)?)
        }
        BuilderKind::Map { offsets, keys, value } => {
            let DataType::Map(entries, sorted) = data_type else { return Err(mismatch(data_type)) };
            let DataType::Struct(fields) = entries.data_type() else { return Err(mismatch(data_type)) };
            let (offsets, items) = take_offsets(offsets)?;
            let (key_offsets, key_data) = keys.take()?;
            let keys = StringArray::try_new(key_offsets, key_data, None).map_err(arrow_error)?;
            let columns: Vec<ArrayRef> = vec![Arc::new(keys), finish(value, items)?];
            let pairs = StructArray::try_new(fields.clone(), columns, None).map_err(arrow_error)?;
            Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *sorted).map_err(arrow_error)?)
        }
        BuilderKind::Struct(parts) => {
            let mut columns = Vec::new();
            for part in parts {
                if let FieldPart::Keep(_, child) = part {
                    columns.push(finish(child, len)?);
                }
            }
            structs(data_type, columns, len, nulls)?
        }
        BuilderKind::Members { members, .. } => {
            let DataType::Struct(fields) = data_type else { return Err(mismatch(data_type)) };
            let all = members.iter_mut().map(|m| finish(m, len)).collect::<Result<Vec<_>>>()?;
            let wanted = all.into_iter().enumerate().filter(|(i, _)| {
                let name = format!("member{i}");
                fields.iter().any(|f| *f.name() == name)
            });
            structs(data_type, wanted.map(|(_, array)| array).collect(), len, nulls)?
        }
    })
}

fn structs(
    data_type: &DataType,
    columns: Vec<ArrayRef>,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else { return Err(mismatch(data_type)) };
    let array = if columns.is_empty() {
        StructArray::try_new_with_length(fields.clone(), columns, nulls, len)
    } else {
        StructArray::try_new(fields.clone(), columns, nulls)
    };
    Ok(Arc::new(array.map_err(arrow_error)?))
}

fn fixed_width<T: ArrowNativeType>(
    data_type: &DataType,
    len: usize,
    values: Vec<T>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(len)
        .nulls(nulls)
        .add_buffer(Buffer::from_vec(values))
        .build()
        .map_err(arrow_error)?;
    Ok(make_array(data))
}

impl Strings {
    fn take(&mut self) -> Result<(OffsetBuffer<i32>, Buffer)> {
        let (offsets, _) = take_offsets(&mut self.offsets)?;
        Ok((offsets, Buffer::from_vec(std::mem::take(&mut self.data))))
    }
}

/// Takes the offsets, and returns them with the number of items between the first and the last. Unsorted
/// offsets are an error and cause no panic.
fn take_offsets(offsets: &mut Vec<i32>) -> Result<(OffsetBuffer<i32>, usize)> {
    let taken = std::mem::replace(offsets, vec![0]);
    if !taken.is_sorted() || taken.first() != Some(&0) {
        return Err(Error::corrupt("offsets of a column are out of order"));
    }
    let items = super::last(&taken);
    Ok((OffsetBuffer::new(ScalarBuffer::from(taken)), items))
}
