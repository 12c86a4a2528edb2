//! Reads the dictionaries of a column as stored, one for each stripe.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use coldframe_core::{Changes, Error, Result, StoredDictionary};

use crate::layout::index::is_dictionary;
use crate::layout::stripe::{StreamKind, Stripe, StripeLayout};
use crate::layout::types::{Column, Kind};
use crate::open::Shape;
use crate::scan::column::dictionary::Dictionaries;
use crate::scan::column::input::{BatchBytes, Input, StoredPart, StoredStreams};
use crate::scan::column::{name, stored_dictionary};

/// Passes a column's dictionaries to `with`. A stripe whose values are stored directly has no dictionary.
pub(crate) fn each(
    shape: &Shape,
    path: &str,
    with: &mut dyn FnMut(StoredDictionary) -> Result<()>,
) -> Result<()> {
    let column = column_of(shape, path)?;
    for stripe in &shape.stripes {
        let within = |e: Error| e.within(name(column)).within(stripe.name());
        let layout = shape.layout(stripe).map_err(within)?;
        if !is_dictionary(&layout.encoding(column.id)) {
            continue;
        }
        let values = read(shape, stripe, &layout, column).map_err(within)?;
        let place = layout.stream(column.id, StreamKind::DictionaryData);
        let bytes = place.map_or(stripe.bytes.start..stripe.bytes.start, |place| place.bytes.clone());
        with(StoredDictionary { part: stripe.name(), bytes, values: as_text(values) })?;
    }
    Ok(())
}

/// The column with text or bytes at this path; a nested column has a dotted path, `a.b`.
fn column_of<'a>(shape: &'a Shape, path: &str) -> Result<&'a Column> {
    let is_text =
        |column: &&Column| matches!(column.kind, Kind::String | Kind::Varchar | Kind::Char | Kind::Binary);
    let all = shape.tree.columns();
    if let Some(column) = all.iter().filter(is_text).find(|column| column.path == path) {
        return Ok(column);
    }
    let names: Vec<String> = all.iter().filter(is_text).map(|column| format!("`{}`", column.path)).collect();
    let is_there = all.iter().any(|column| column.path == path);
    let what = if is_there { "column with text" } else { "column" };
    let known = if names.is_empty() {
        "no column has text".to_owned()
    } else {
        format!("those with text are {}", names.join(", "))
    };
    Err(Error::schema(format!("no {what} `{path}`; {known}")))
}

fn read(shape: &Shape, stripe: &Stripe, layout: &StripeLayout, column: &Column) -> Result<BinaryArray> {
    let mut streams = StoredStreams::new();
    for kind in [StreamKind::Length, StreamKind::DictionaryData] {
        let Some(place) = layout.stream(column.id, kind) else { continue };
        let Range { start, end } = place.bytes;
        shape.options.limits.block(kind.name(), end - start)?;
        let bytes = shape.decrypted(shape.source.read(start..end)?, place, 0, stripe)?;
        streams.insert((column.id, kind), vec![StoredPart { start: 0, offset: start, bytes }]);
    }
    let (changes, dictionaries, batch_bytes) =
        (Changes::default(), Dictionaries::default(), BatchBytes::default());
    let input = Input {
        tree: &shape.tree,
        changes: &changes,
        layout,
        streams: &streams,
        positions: None,
        compression: shape.tail.compression,
        dictionaries: &dictionaries,
        timezone: layout.writer_timezone.as_deref(),
        timestamps_in: None,
        quirks: shape.quirks,
        limits: shape.options.limits,
        rows: stripe.rows,
        file_len: shape.tail.file_len,
        single_row: false,
        batch_bytes: &batch_bytes,
        superfluous: false,
    };
    stored_dictionary(&input, column)
}

fn as_text(values: BinaryArray) -> ArrayRef {
    match StringArray::try_from_binary(values.clone()) {
        Ok(text) => Arc::new(text),
        Err(_) => Arc::new(values),
    }
}
