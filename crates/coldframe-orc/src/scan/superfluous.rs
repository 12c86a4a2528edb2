//! Structs inside structs that have values for their nulls, too.
//!
//! Arrow's adapter of the C++ writer (pyarrow) passes the nulls of a struct on to its fields only if the struct
//! around it has nulls itself:
//!
//! ```text
//! rows          {c: null}  {c: {x: 7}}  {c: null}  {c: {x: 9}}      no row is null
//! PRESENT of c      0           1           0           1           right
//! DATA of x         0           7           0           9           a value for each row of the outer struct
//! ```
//!
//! A reader that expects values only for structs that are not null returns shifted values. The counts prove which
//! reading is right: a field cannot have more values than its struct has, and the values must end with the
//! streams. Fields that have nulls themselves are not read this way: their PRESENT has no superfluous bits, so
//! such a column contradicts itself, and the reader says so.

use coldframe_core::Result;

use super::decode::StripeBatches;
use super::job::{ScanShared, StripeJob};
use crate::layout::stripe::{StreamKind, StripeLayout};
use crate::layout::types::{Column, Kind};

/// Which of some columns of the scan have inner structs with nulls whose fields have no nulls, if the file is
/// from the writer with this behaviour.
pub(super) fn suspects(scan: &ScanShared, layout: &StripeLayout, places: &[usize]) -> Vec<usize> {
    if !scan.shape.quirks.superfluous_values {
        return Vec::new();
    }
    let suspect = |place: &usize| {
        let of = scan.shape.tree.get(scan.columns.get(*place)?.0)?;
        let mut inner = inner_structs(scan, layout, of).peekable();
        inner.peek()?;
        let has_nulls = |id: &usize| layout.stream(*id, StreamKind::Present).is_some();
        inner.all(|inner| !inner.children.iter().any(has_nulls)).then_some(*place)
    };
    places.iter().filter_map(suspect).collect()
}

/// The structs with nulls that lie in structs of a column.
fn inner_structs<'a>(
    scan: &'a ScanShared,
    layout: &'a StripeLayout,
    of: &'a Column,
) -> impl Iterator<Item = &'a Column> {
    let columns = scan.shape.tree.columns().get(of.id..of.end).unwrap_or_default();
    let structs = columns
        .iter()
        .filter(|column| column.kind == Kind::Struct && scan.needed.binary_search(&column.id).is_ok());
    let inside = structs.flat_map(|outer| outer.children.iter().filter_map(|id| scan.shape.tree.get(*id)));
    inside.filter(|column| {
        let present = layout.stream(column.id, StreamKind::Present);
        column.kind == Kind::Struct && present.is_some_and(|stream| !stream.bytes.is_empty())
    })
}

/// Whether the statistics of the stripe prove that a column has superfluous values, or that it has none.
fn by_statistics(scan: &ScanShared, job: &StripeJob, place: usize) -> Option<bool> {
    let groups = job.groups.as_ref()?;
    let of = scan.shape.tree.get(scan.columns.get(place)?.0)?;
    let values = |id: usize| groups.of_stripe(id)?.number_of_values;
    let mut clean = true;
    for inner in inner_structs(scan, &job.layout, of) {
        let own = values(inner.id)?;
        let mut proved = false;
        for field in &inner.children {
            let field_values = values(*field)?;
            if field_values > own {
                return Some(true);
            }
            // Without nulls of its own, a field has as many values as its struct.
            proved |= field_values == own && job.layout.stream(*field, StreamKind::Present).is_none();
        }
        clean &= proved;
    }
    clean.then_some(false)
}

impl StripeBatches {
    /// Decides for each suspect column whether it has superfluous values: by the statistics, or by decoding
    /// all of it. Columns for which both readings are impossible stay unchanged.
    pub(super) fn decide_superfluous(&mut self) -> Result<()> {
        let all: Vec<usize> = (0..self.surveyed.len()).collect();
        self.decide_superfluous_of(&all)
    }

    /// Decides for some columns.
    pub(super) fn decide_superfluous_of(&mut self, places: &[usize]) -> Result<()> {
        let whole = self.has_whole_streams();
        for place in suspects(&self.stored.scan, &self.stored.job.layout, places) {
            let stated = by_statistics(&self.stored.scan, &self.stored.job, place);
            let decided = match stated {
                Some(stated) => stated,
                None if whole && !self.ends_with_streams(place)? => {
                    self.set_superfluous(place, true);
                    self.ends_with_streams(place)?
                }
                None => false,
            };
            self.set_superfluous(place, decided);
        }
        Ok(())
    }

    fn set_superfluous(&mut self, place: usize, is: bool) {
        if let Some(superfluous) = self.stored.superfluous.get_mut(place) {
            *superfluous = is;
        }
    }
}
