//! Checks for contradictions between parts of a file, and decodes indexes, which a scan without a filter does
//! not read.

use std::ops::Range;

use coldframe_core::{Damage, Error, Result};

use crate::layout::proto::{BloomFilterIndex, RowIndex};
use crate::layout::stripe::{StreamKind, StreamPlace, Stripe};
use crate::open::Shape;

/// The parts of a file that the check covers besides values.
pub(crate) const BESIDES: &[&str] =
    &["places of stripes and streams", "counts of rows", "ends of streams", "indexes", "bloom filters"];

/// Contradictions between parts of the file. The scan reports wrong numbers of rows.
pub(crate) fn contradictions(shape: &Shape) -> Result<Vec<Damage>> {
    let mut damage = Vec::new();
    let mut add = |bytes: Range<u64>, e: Error| damage.push(Damage::from_error(&e, bytes, None));
    let tail = &shape.tail;
    let mut stripes: Vec<&Stripe> = shape.stripes.iter().collect();
    stripes.sort_by_key(|s| s.bytes.start);
    let data_end = tail.stripe_statistics_bytes.start;
    let mut end = 0;
    for stripe in stripes {
        if stripe.bytes.start < end || stripe.bytes.end > data_end {
            let e = Error::corrupt(format!(
                "expected a stripe in {end}..{data_end}, found it in {}..{}",
                stripe.bytes.start, stripe.bytes.end
            ));
            add(stripe.bytes.clone(), e.within(stripe.name()));
        }
        end = end.max(stripe.bytes.end);
        match shape.layout(stripe) {
            Ok(layout) => {
                let used = layout.streams.iter().map(|s| s.bytes.end).max().unwrap_or(stripe.bytes.start);
                if used < stripe.footer.start {
                    let e = Error::corrupt(format!(
                        "expected streams to byte {}, found them to byte {used}",
                        stripe.footer.start
                    ));
                    add(used..stripe.footer.start, e.within(stripe.name()));
                }
                for stream in &layout.streams {
                    if let Err(e) = check_index(shape, stripe, stream) {
                        if !e.is_damage() {
                            return Err(e);
                        }
                        add(stream.bytes.clone(), e.within(stripe.name()));
                    }
                }
            }
            // The scan has already reported this damage.
            Err(e) if e.is_damage() => {}
            Err(e) => return Err(e),
        }
    }
    if let Err(e) = shape.metadata() {
        if !e.is_damage() {
            return Err(e);
        }
        add(tail.metadata_bytes.clone(), e);
    }
    Ok(damage)
}

/// Fails if an index stream does not decode.
fn check_index(shape: &Shape, stripe: &Stripe, stream: &StreamPlace) -> Result<()> {
    let readable = stream.variant == shape.encryption.variant_of(stream.column) || stream.variant.is_none();
    if !readable || stream.bytes.is_empty() {
        return Ok(());
    }
    match StreamKind::from_number(stream.kind) {
        Some(StreamKind::RowIndex) => shape.index_streams::<RowIndex>(stripe, &[stream]).map(drop),
        Some(StreamKind::BloomFilter | StreamKind::BloomFilterUtf8) => {
            shape.index_streams::<BloomFilterIndex>(stripe, &[stream]).map(drop)
        }
        _ => Ok(()),
    }
}
