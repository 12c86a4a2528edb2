//! The keys that delete blocks delete.
//!
//! ```text
//! version i32 | length i32 | 1, 2: Java objects (`kryo`); 3: Avro, a list of record key, partition path and ordering value
//! ```
//!
//! An ordering value in Avro is a union of null and of records, each of which wraps a value of one type: boolean, int, long, float,
//! double, bytes, string, date, decimal, time, timestamp, local date, several values.

use coldframe_core::{Limits, Result};
use coldframe_encoding::Cursor;

use crate::avro::Schema;
use crate::avro::datum::Datum;
use crate::data::kryo;
use crate::data::order::{Delete, Order};
use crate::log::delete_schema;

/// The scale of wrapped decimals.
const SCALE: i8 = 15;
/// The branches of the union of ordering values.
const INT: usize = 2;
const DECIMAL: usize = 9;

/// The deletes in the content of a block.
pub(crate) fn deletes(content: &[u8], at: u64, limits: &Limits) -> Result<Vec<Delete>> {
    let mut c = Cursor::new(content, at);
    let version = c.i32_be()?;
    let length = c.i32_be()?;
    let start = c.offset();
    let list = c.take_signed(length.into())?;
    c.finish()?;
    match version {
        1 | 2 => kryo::deletes(list, start, limits),
        3 => of_avro(&delete_schema(limits)?, list, limits),
        other => Err(coldframe_core::Error::unsupported(format!("version {other} of Hudi's delete blocks"))),
    }
}

fn of_avro(schema: &Schema, list: &[u8], limits: &Limits) -> Result<Vec<Delete>> {
    let list = Datum::decode(schema, list, limits)?;
    let Datum::Record(fields) = &list else { return Ok(Vec::new()) };
    let Some(Datum::Array(records)) = fields.first() else { return Ok(Vec::new()) };
    let delete = |record: &Datum<'_>| {
        let Datum::Record(fields) = record else { return None };
        let Datum::String(key) = fields.first()?.unwrap_union() else { return None };
        Some(Delete { key: key.as_bytes().to_vec(), order: fields.get(2).map_or(Order::Natural, order) })
    };
    Ok(records.iter().filter_map(delete).collect())
}

/// A wrapped ordering value.
fn order(wrapped: &Datum<'_>) -> Order {
    let Datum::Union(branch, inner) = wrapped else { return Order::Natural };
    let Datum::Record(fields) = inner.as_ref() else { return Order::Natural };
    match fields.first().map(Datum::unwrap_union) {
        // The default of a delete without an ordering value.
        Some(Datum::Long(0)) if *branch == INT => Order::Natural,
        Some(Datum::Long(value)) => Order::Int(*value),
        Some(Datum::Boolean(value)) => Order::Int((*value).into()),
        Some(Datum::Float(value)) => Order::Float((*value).into()),
        Some(Datum::Double(value)) => Order::Float(*value),
        Some(Datum::String(value)) => Order::Text((*value).into()),
        Some(Datum::Bytes(value)) if *branch == DECIMAL => {
            number(value).map_or(Order::Natural, |n| Order::Decimal(n, SCALE))
        }
        Some(Datum::Bytes(value)) => Order::Bytes((*value).into()),
        Some(Datum::Array(values)) => Order::Several(values.iter().map(order).collect()),
        _ => Order::Natural,
    }
}

/// A big-endian number in two's complement of at most 16 bytes.
fn number(bytes: &[u8]) -> Option<i128> {
    let filler = if bytes.first().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
    let mut value = [filler; 16];
    value.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(value))
}
