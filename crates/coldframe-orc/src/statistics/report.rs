//! All statistics of a file as plain data: of the file, its stripes, their row groups.
//!
//! Where a key opens a column, its own statistics stand in place of those of what the mask left. They are encrypted like
//! streams: `EncryptionVariant.fileStatistics`, and in front of the metadata one stream a column with an entry a stripe.

use coldframe_core::{ErrorContext, Result, Value};
use coldframe_encoding::codec::Decompressor;

use super::to_value;
use crate::file::Shape;
use crate::index::IndexReader;
use crate::proto::{self, ColumnStatistics, ColumnarStripeStatistics};
use crate::stripe::{Stripe, StripeLayout};

/// `Stream.Kind` of the encrypted statistics of a column in all stripes.
const STRIPE_STATISTICS: u32 = 100;

/// The statistics of the file, its stripes and row groups.
pub(crate) fn statistics(shape: &Shape) -> Result<Value> {
    let limits = &shape.options.limits;
    let mut of_file = shape.tail.footer.statistics.clone();
    for (root, found) in
        shape.encryption.file_statistics(&shape.tail.footer, shape.tail.compression, limits)?
    {
        for (place, own) in of_file.iter_mut().skip(root).zip(found.column) {
            *place = own;
        }
    }
    let mut of_stripes: Vec<Vec<ColumnStatistics>> = shape
        .tail
        .read_metadata(shape.source.as_ref(), limits)?
        .stripe_stats
        .into_iter()
        .map(|s| s.col_stats)
        .collect();
    for (column, own) in encrypted(shape)? {
        for (stripe, own) in of_stripes.iter_mut().zip(own) {
            if let Some(place) = stripe.get_mut(column) {
                *place = own;
            }
        }
    }
    let mut stripes = Vec::with_capacity(shape.stripes.len());
    for stripe in &shape.stripes {
        let columns =
            of_stripes.get(stripe.number).map_or(Value::Null, |s| by_column(shape, s.iter().map(Some)));
        stripes.push(Value::map([
            ("rows", Value::from(stripe.rows)),
            ("columns", columns),
            ("row_groups", row_groups(shape, stripe).within(|| stripe.name())?),
        ]));
    }
    let of_file = by_column(shape, of_file.iter().map(Some));
    Ok(Value::map([("file", of_file), ("stripes", Value::List(stripes))]))
}

/// The encrypted statistics of stripes that a key opens: column, and one for each stripe.
fn encrypted(shape: &Shape) -> Result<Vec<(usize, Vec<ColumnStatistics>)>> {
    let footer = &shape.tail.footer;
    let mut at = shape.tail.stripe_statistics_bytes.start;
    let mut found = Vec::new();
    for (number, variant) in footer.encryption.iter().flat_map(|e| &e.variants).enumerate() {
        for stream in &variant.stripe_statistics {
            let start = at;
            at = at.saturating_add(stream.length());
            let column = usize::try_from(stream.column()).unwrap_or(usize::MAX);
            if shape.encryption.variant_of(column) != Some(number) {
                continue;
            }
            let (key, limits) = (
                shape.encryption.footer_stream_key(
                    number,
                    footer.stripes.len(),
                    column,
                    STRIPE_STATISTICS,
                )?,
                &shape.options.limits,
            );
            let Some(key) = key else { continue };
            let within = || "encrypted stripe statistics";
            limits.metadata("the statistics of stripes", stream.length()).at(start).within(within)?;
            let mut stored = shape.source.read(start..at).within(within)?.to_vec();
            key.decrypt(0, &mut stored)?;
            let message = shape
                .tail
                .compression
                .message(&mut Decompressor::new(), &stored, start, limits)
                .within(within)?;
            let own: ColumnarStripeStatistics =
                proto::decode("encrypted stripe statistics", &message).at(start)?;
            found.push((column, own.col_stats));
        }
    }
    Ok(found)
}

/// One list of columns for each row group; nothing without indexes.
fn row_groups(shape: &Shape, stripe: &Stripe) -> Result<Value> {
    let columns: Vec<usize> = (0..shape.tree.columns().len()).collect();
    let (compression, limits) = (shape.tail.compression, &shape.options.limits);
    let source = shape.source.as_ref();
    let layout = StripeLayout::read(source, stripe, compression, columns.len(), &shape.encryption, limits)?;
    let reader = IndexReader { source, compression, encryption: &shape.encryption, limits };
    let indexes = reader.row_indexes::<crate::proto::RowIndex>(stripe, &layout, &columns)?;
    let count = indexes.iter().flatten().map(|i| i.entry.len()).max().unwrap_or(0);
    let group = |group: usize| {
        let stats = indexes.iter().map(|i| i.as_ref()?.entry.get(group)?.statistics.as_ref());
        by_column(shape, stats)
    };
    Ok(Value::List((0..count).map(group).collect()))
}

/// One map for each column that has statistics.
fn by_column<'a>(shape: &Shape, stats: impl Iterator<Item = Option<&'a ColumnStatistics>>) -> Value {
    let columns = shape.tree.columns().iter().zip(stats).filter_map(|(column, stats)| {
        let mut out = vec![
            ("column".to_owned(), Value::from(column.id)),
            ("path".to_owned(), column.path.clone().into()),
        ];
        if let Value::Map(found) = to_value(stats?) {
            out.extend(found);
        }
        Some(Value::Map(out))
    });
    Value::List(columns.collect())
}
