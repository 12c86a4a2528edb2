//! Finds the scale of decimals whose type states no precision and scale, as in files of Hive 0.11.
//!
//! Each value has a scale. Java reads each value with that scale; an Arrow column has one scale for all
//! values: the largest of them, and at least 10 as in Java's default type, so that no digit is lost. To find
//! it, the reader reads the SECONDARY streams when it opens the file; they are short, and files of later
//! writers state their precision.

use coldframe_core::{ErrorKind, Result};

use crate::layout::stripe::{StreamKind, Stripe, StripeLayout};
use crate::layout::types::{Column, Kind};
use crate::open::Shape;
use crate::scan::rle::int::{IntRle, Version};
use crate::scan::stream::ByteStream;
use crate::schema;

/// Maximum number of digits of a decimal.
const MAX_SCALE: i64 = 38;

/// Sets the scale of decimals without a scale, if the user did not declare it.
pub(crate) fn set_scales(shape: &mut Shape) -> Result<()> {
    let undeclared = |c: &&Column| c.kind == Kind::Decimal && c.precision == 0;
    let mut scales: Vec<(usize, u32)> =
        shape.tree.columns().iter().filter(undeclared).map(|c| (c.id, schema::OLD_SCALE)).collect();
    if scales.is_empty() {
        return Ok(());
    }
    for stripe in &shape.stripes {
        let Some(layout) = if_readable(shape.layout(stripe))? else { continue };
        for (column, scale) in &mut scales {
            let own = if_readable(largest(shape, stripe, &layout, *column))?.unwrap_or(0);
            *scale = (*scale).max(own);
        }
    }
    for (column, scale) in scales {
        shape.tree.set_scale(column, scale);
    }
    shape.schema = schema::schema(&shape.tree, &shape.tail.footer, &shape.options)?;
    Ok(())
}

/// `None` for damaged or unsupported streams, which the scan reports.
fn if_readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(e) if e.is_confined() || matches!(e.kind(), ErrorKind::Unsupported(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The largest scale of a column's values in a stripe, of those that decode.
fn largest(shape: &Shape, stripe: &Stripe, layout: &StripeLayout, column: usize) -> Result<u32> {
    let Some(place) = layout.stream(column, StreamKind::Secondary) else { return Ok(0) };
    let stored = shape.decrypted(shape.source.read(place.bytes.clone())?, place, 0, stripe)?;
    let version = if layout.encoding(column).kind() < 2 { Version::V1 } else { Version::V2 };
    let stream = ByteStream::new(stored, place.bytes.start, shape.tail.compression);
    let largest = IntRle::new(stream, version, true).largest();
    Ok(u32::try_from(largest.min(MAX_SCALE)).unwrap_or(0))
}
