//! Merges the column statistics of one file: minimum, maximum and sums.

use std::cmp::Ordering;

use coldframe_core::{Error, Result};

use crate::avro::datum::Datum;
use crate::avro::schema::{Logical, Schema, Type, TypeId};

/// The merged statistics; `None` if the result is the newer statistics.
pub(super) fn merge<'a>(
    (schema, id): (&Schema, TypeId),
    old: &Datum<'a>,
    new: &Datum<'a>,
) -> Result<Option<Datum<'a>>> {
    let is = |datum: &Datum<'a>, name| datum.field(schema, id, name) == Some(&Datum::Boolean(true));
    if is(new, "isDeleted") || is(old, "isDeleted") || is(new, "isTightBound") {
        return Ok(None);
    }
    let (Datum::Record(old), Datum::Record(new), Type::Record { fields, .. }) = (old, new, schema.get(id))
    else {
        return Ok(None);
    };
    let mut merged = Vec::with_capacity(new.len());
    for ((field, old), new) in fields.iter().zip(old).zip(new) {
        merged.push(match field.name.as_str() {
            "minValue" => extreme(schema, field.of, old, new, Ordering::Less)?,
            "maxValue" => extreme(schema, field.of, old, new, Ordering::Greater)?,
            "valueCount" | "nullCount" | "totalSize" | "totalUncompressedSize" => sum(old, new),
            _ => new.clone(),
        });
    }
    Ok(Some(Datum::Record(merged)))
}

fn sum<'a>(old: &Datum<'a>, new: &Datum<'a>) -> Datum<'a> {
    match (old.unwrap_union(), new) {
        (Datum::Long(a), Datum::Union(branch, inner)) => match inner.unwrap_union() {
            Datum::Long(b) => Datum::Union(*branch, Box::new(Datum::Long(a.saturating_add(*b)))),
            _ => old.clone(),
        },
        (Datum::Long(a), Datum::Long(b)) => Datum::Long(a.saturating_add(*b)),
        _ => new.clone(),
    }
}

/// The smaller or the larger of two wrapped values; nulls are ignored.
fn extreme<'a>(
    schema: &Schema,
    id: TypeId,
    old: &Datum<'a>,
    new: &Datum<'a>,
    wanted: Ordering,
) -> Result<Datum<'a>> {
    let (a, b) = match (old.unwrap_union(), new.unwrap_union()) {
        (Datum::Null, _) => return Ok(new.clone()),
        (_, Datum::Null) => return Ok(old.clone()),
        values => values,
    };
    let same = match (old, new) {
        (Datum::Union(x, _), Datum::Union(y, _)) => x == y,
        _ => true,
    };
    let order = if same { compare(a, b, is_decimal(schema, id, new)) } else { None };
    let order =
        order.ok_or_else(|| Error::corrupt("expected two bounds of a column to have the same type"))?;
    Ok(if order == wanted { old.clone() } else { new.clone() })
}

/// Whether a wrapper's bytes are a decimal.
fn is_decimal(schema: &Schema, id: TypeId, value: &Datum<'_>) -> bool {
    let of = match (value, schema.get(id)) {
        (Datum::Union(branch, _), Type::Union(branches)) => branches.get(*branch).copied(),
        _ => Some(id),
    };
    match of.map(|of| schema.get(of)) {
        Some(Type::Record { fields, .. }) => {
            let of = fields.first().map(|f| schema.get(f.of));
            matches!(of, Some(Type::Bytes(Logical::Decimal(..))))
        }
        _ => false,
    }
}

/// Compares wrapped values in the order of Java's `Comparable`.
fn compare(a: &Datum<'_>, b: &Datum<'_>, decimal: bool) -> Option<Ordering> {
    Some(match (a.unwrap_union(), b.unwrap_union()) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Less,
        (_, Datum::Null) => Ordering::Greater,
        (Datum::Boolean(a), Datum::Boolean(b)) => a.cmp(b),
        (Datum::Long(a), Datum::Long(b)) => a.cmp(b),
        (Datum::Float(a), Datum::Float(b)) => a.total_cmp(b),
        (Datum::Double(a), Datum::Double(b)) => a.total_cmp(b),
        (Datum::Bytes(a), Datum::Bytes(b)) if decimal => compare_numbers(a, b),
        // `ByteBuffer` compares signed bytes.
        (Datum::Bytes(a), Datum::Bytes(b)) => {
            a.iter().map(|x| x.cast_signed()).cmp(b.iter().map(|x| x.cast_signed()))
        }
        // `String` compares code units of UTF-16.
        (Datum::String(a), Datum::String(b)) => a.encode_utf16().cmp(b.encode_utf16()),
        (Datum::Record(a), Datum::Record(b)) | (Datum::Array(a), Datum::Array(b)) => {
            for (x, y) in a.iter().zip(b) {
                match compare(x, y, decimal)? {
                    Ordering::Equal => {}
                    order => return Some(order),
                }
            }
            a.len().cmp(&b.len())
        }
        _ => return None,
    })
}

/// Compares big-endian two's complement numbers of the same scale.
fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |n: &[u8]| n.first().is_some_and(|b| *b >= 0x80);
    let filler = if negative(a) { 0xff } else { 0 };
    let digits = |n: &[u8]| n.iter().copied().skip_while(|b| *b == filler).collect::<Vec<u8>>();
    negative(b).cmp(&negative(a)).then_with(|| {
        let (a, b) = (digits(a), digits(b));
        let by_length = a.len().cmp(&b.len());
        if filler == 0 { by_length } else { by_length.reverse() }.then_with(|| a.cmp(&b))
    })
}
