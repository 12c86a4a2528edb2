//! Anchors: places where a reader's position and a statement of the file must agree.
//!
//! ```text
//! decoded    | group 0 | group 1 | group 2 |
//! streams    ....................^.........^
//!            position of group 2 in the index, for each stream of the column; the stream's end
//! ```

use arrow_schema::Field;
use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Algorithm;

use super::column::input::Input;
use super::column::{self, ColumnReader};
use super::stream::StreamPosition;
use crate::layout::index::Positions;
use crate::layout::types::Column;

/// Fails if the values of a column that were read so far do not end at `row`, where a row group begins
/// according to the index. `input` opens the column there.
pub(crate) fn check_begin(
    reader: &dyn ColumnReader,
    input: &Input<'_>,
    begin: &Positions,
    of: &Column,
    field: &Field,
    row: u64,
) -> Result<()> {
    let mut ends = Vec::new();
    reader.positions(&mut ends);
    let plain = input.compression.algorithm == Algorithm::None;
    let is_there = |end: &StreamPosition| {
        let column = end.column.unwrap_or(of.id);
        let Some(stream) = input.layout.stream(column, end.kind) else { return true };
        end.is_at(&begin.of(column, end.kind), stream.bytes.start, plain)
    };
    if ends.iter().all(is_there) {
        return Ok(());
    }
    let mut begins = Vec::with_capacity(ends.len());
    column::reader(input, of, field)?.positions(&mut begins);
    match ends.iter().zip(&begins).find(|(end, begin)| !end.matches(begin)) {
        Some((end, _)) => Err(misplaced(input, of, end, &format!("at row {row}"))),
        None => Ok(()),
    }
}

/// Fails if the values of a column do not end with its streams.
pub(crate) fn check_end(reader: &dyn ColumnReader, input: &Input<'_>, of: &Column) -> Result<()> {
    let mut ends = Vec::new();
    reader.positions(&mut ends);
    match ends.iter().find(|end| !end.is_at_end()) {
        Some(end) => Err(misplaced(input, of, end, "after the last row")),
        None => Ok(()),
    }
}

fn misplaced(input: &Input<'_>, of: &Column, end: &StreamPosition, place: &str) -> Error {
    let inside = end.column.and_then(|id| input.tree.get(id)).unwrap_or(of);
    let e = Error::corrupt(format!("expected the stream's position {place}, found another position"));
    let e = e.within(end.kind.name()).within(column::name(inside));
    match input.layout.stream(inside.id, end.kind) {
        Some(stream) => e.at(stream.bytes.start),
        None => e,
    }
}
