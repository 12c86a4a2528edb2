//! Filters from pyarrow's expressions, in the form in which pyarrow pickles them.
//!
//! ```text
//! an Arrow IPC file: its one row holds the values, the metadata of its schema the calls, in order
//!
//! call: invert
//! call: is_in                                                  ~s.a.isin([1, 2])
//! nested_field_ref: 2, field_ref: s, field_ref: a              a column: field_ref alone
//! options: 0                                                   column 0: struct<value_set: list<int64>, ..>
//! end: is_in
//! end: invert                                                  a value: literal: its column
//! ```
//! The form is the form of Arrow C++'s `Serialize(const compute::Expression&)`. A key may occur several
//! times, so the metadata are read from the file's footer, and not as a map.
//!
//! Supported are comparisons of a column with a value, sets, null tests, `and`, `or`, `not`, and boolean columns.
//! If an expression contains anything else, it is unsupported as a whole and pyarrow evaluates it: a filter
//! is never evaluated in part by this crate and in part by pyarrow. A comparison is also unsupported if
//! pyarrow compares its types less exactly than this crate.

mod build;
mod comparable;

use std::collections::BTreeSet;
use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReaderBuilder;
use arrow_ipc::root_as_footer_with_opts;
use arrow_schema::Schema;
use coldframe_encoding::{Error, Result};
use flatbuffers::VerifierOptions;

use super::Predicate;
use crate::arrow_error;
use build::Builder;

const MAGIC: &[u8] = b"ARROW1";

/// The calls and values of a pyarrow expression.
#[derive(Debug)]
pub struct Expression {
    items: Vec<(String, String)>,
    values: RecordBatch,
}

impl Expression {
    /// Reads a serialised expression.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let items = items(bytes)?;
        let builder = FileReaderBuilder::new().with_max_footer_fb_tables(bytes.len());
        let mut file = builder.build(Cursor::new(bytes)).map_err(arrow_error)?;
        let values = file.next().ok_or_else(|| malformed("expected one row of values, found none"))?;
        Ok(Self { items, values: values.map_err(arrow_error)? })
    }

    /// The filter; `None` if the expression contains something unsupported.
    pub fn predicate(&self, schema: &Schema) -> Result<Option<Predicate>> {
        let mut builder = Builder::new(schema, &self.values);
        for (key, value) in &self.items {
            builder.add(key, value)?;
        }
        builder.finish()
    }

    /// The names of the columns that the expression refers to.
    pub fn columns(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        // In a path, only the first name is the name of a column.
        let mut items = self.items.iter().filter(|(key, _)| key.ends_with("field_ref"));
        while let Some((key, value)) = items.next() {
            if key == "field_ref" {
                names.insert(value.as_str());
                continue;
            }
            let path: Vec<_> = items.by_ref().take(value.parse().unwrap_or(0)).collect();
            names.extend(path.first().map(|(_, name)| name.as_str()));
        }
        names
    }

    /// How deeply the calls of the expression are nested.
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0usize, 0);
        for (key, _) in &self.items {
            match key.as_str() {
                "call" => depth += 1,
                "end" => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        deepest
    }
}

/// The metadata of the schema in the file's footer, in order.
fn items(bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let footer = bytes.strip_suffix(MAGIC).and_then(|rest| rest.split_last_chunk::<4>());
    let (before, length) = footer.ok_or_else(|| malformed("expected an Arrow IPC file"))?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let footer = before.len().checked_sub(length).and_then(|start| before.get(start..));
    let footer = footer.ok_or_else(|| malformed("expected a footer, found less bytes than its length"))?;
    // Each table of a footer takes several bytes, so a valid footer has fewer tables than bytes.
    let options = VerifierOptions { max_tables: footer.len(), ..VerifierOptions::default() };
    let footer = root_as_footer_with_opts(&options, footer).map_err(|e| malformed(&e.to_string()))?;
    let metadata = footer.schema().and_then(|schema| schema.custom_metadata());
    let metadata = metadata.ok_or_else(|| malformed("expected calls in its metadata, found none"))?;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Ok(metadata.iter().map(|item| (text(item.key()), text(item.value()))).collect())
}

fn malformed(why: &str) -> Error {
    Error::invalid(format!("a serialised pyarrow expression: {why}"))
}
