//! Values that their types cannot hold: only these values are lost.

use std::ops::Range;

use arrow_array::RecordBatch;
use coldframe_core::salvage::without_rows;
use coldframe_core::{Change, Damage, Error, OnError, Result};
use coldframe_encoding::codec::Algorithm;

use super::batch::Decoded;
use super::column::{self, Malformed, MalformedValue};
use super::decode::StripeBatches;
use crate::layout::index::is_dictionary;
use crate::layout::stripe::StreamKind;

/// Maximum number of values of a batch whose bytes are located: for each, a part of a row group is decoded.
const LOCATED: usize = 16;

impl StripeBatches {
    /// A batch without the rows of values that their types cannot hold, or with nulls for these values.
    pub(super) fn readable(&self, decoded: Decoded) -> Result<RecordBatch> {
        let Decoded { batch, first, mut malformed } = decoded;
        let scan = &self.stored.scan;
        malformed.sort_by_key(|value| value.row);
        let texts = malformed.iter().filter(|value| value.why == Malformed::Text).count();
        scan.damage.changes().add(Change::Text, texts as u64);
        let mut left_out: Vec<usize> = Vec::new();
        for (number, value) in malformed.into_iter().enumerate() {
            let e = self.error_of(value, first);
            if scan.on_error == OnError::Raise {
                return Err(e);
            }
            // A row is lost once, however many of its values are malformed.
            let lost = scan.on_error == OnError::Skip && left_out.last() != Some(&value.row);
            if lost {
                left_out.push(value.row);
            }
            let row = first.saturating_add(value.row as u64);
            let own = if number < LOCATED { self.bytes_of_text(value, row) } else { None };
            let bytes = own.unwrap_or_else(|| self.bytes_of(None, &e));
            let e = e.within(self.stored.job.stripe.name());
            scan.damage.push(Damage::from_error(&e, bytes, Some(lost.into())));
        }
        without_rows(batch, &left_out)
    }

    /// The bytes of a text that is stored directly and without a codec.
    fn bytes_of_text(&self, value: MalformedValue, row: u64) -> Option<Range<u64>> {
        let (scan, job, id) = (&self.stored.scan, &self.stored.job, value.column?);
        let is_direct = value.why == Malformed::Text && !is_dictionary(&job.layout.encoding(id));
        if !is_direct || scan.shape.tail.compression.algorithm != Algorithm::None {
            return None;
        }
        let place = scan.columns.iter().position(|(column, _)| *column == id)?;
        let begin = |row: u64| {
            let mut positions = Vec::new();
            self.stored.open(place, row, row).ok()?.positions(&mut positions);
            positions.iter().find(|at| at.kind == StreamKind::Data).map(|at| at.place.0)
        };
        let end = match row + 1 {
            end if end < job.stripe.rows => begin(end)?,
            _ => job.layout.stream(id, StreamKind::Data)?.bytes.end,
        };
        begin(row).map(|start| start..end).filter(|bytes| !bytes.is_empty())
    }

    /// The error of a value that the column's type cannot hold.
    fn error_of(&self, value: MalformedValue, first: u64) -> Error {
        let job = &self.stored.job;
        let row = job.stripe.first_row.saturating_add(first).saturating_add(value.row as u64);
        let e = value.why.to_error(row);
        let Some(column) = value.column.and_then(|id| self.stored.scan.shape.tree.get(id)) else { return e };
        let stored = |kind| job.layout.stream(column.id, kind).filter(|s| !s.bytes.is_empty());
        let stream = stored(StreamKind::DictionaryData).or_else(|| stored(StreamKind::Data));
        match stream {
            Some(stream) => e.at(stream.bytes.start).within(column::name(column)),
            None => e.within(column::name(column)),
        }
    }
}
