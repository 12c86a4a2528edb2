//! The entries of delta files as a table: one row per change.
//!
//! ```text
//! row_index uint64 | timestamp uint64, a hybrid time | kind string | cells list<struct<column int32, value binary>> |
//! ```
//!
//! `layout::delta` parses the entries. The values of cells stay bytes here, since the columns' types are in
//! the tablet's superblock.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int32Builder, ListBuilder, StringBuilder, StructBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use coldframe_core::{Result, arrow_error};

use crate::layout::delta::{ChangeType, Delta};

fn cell_fields() -> Fields {
    Fields::from(vec![
        Field::new("column", DataType::Int32, false),
        Field::new("value", DataType::Binary, true),
    ])
}

/// The columns of a delta file.
pub(crate) fn schema() -> SchemaRef {
    let cells = Field::new_list_field(DataType::Struct(cell_fields()), false);
    Arc::new(Schema::new(vec![
        Field::new("row_index", DataType::UInt64, false),
        Field::new("timestamp", DataType::UInt64, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("cells", DataType::List(Arc::new(cells)), false),
    ]))
}

/// Turns the entries of a block into rows.
pub(crate) fn batch(values: &[&[u8]], at: u64, schema: &SchemaRef) -> Result<RecordBatch> {
    let n = values.len();
    let (mut rows, mut times) = (UInt64Builder::with_capacity(n), UInt64Builder::with_capacity(n));
    let mut kinds = StringBuilder::with_capacity(n, 6 * n);
    let builders: Vec<Box<dyn arrow_array::builder::ArrayBuilder>> =
        vec![Box::new(Int32Builder::new()), Box::new(BinaryBuilder::new())];
    let item = Field::new_list_field(DataType::Struct(cell_fields()), false);
    let mut cells = ListBuilder::new(StructBuilder::new(cell_fields(), builders)).with_field(item);
    for value in values {
        let mut delta = Delta::parse(value, at)?;
        rows.append_value(delta.row);
        times.append_value(delta.time);
        kinds.append_value(match delta.kind {
            ChangeType::Update => "update",
            ChangeType::Delete => "delete",
            ChangeType::Reinsert => "reinsert",
        });
        while let Some((column, bytes)) = delta.next_cell()? {
            if let Some(builder) = cells.values().field_builder::<Int32Builder>(0) {
                builder.append_value(column);
            }
            if let Some(builder) = cells.values().field_builder::<BinaryBuilder>(1) {
                builder.append_option(bytes);
            }
            cells.values().append(true);
        }
        cells.append(true);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.finish()),
        Arc::new(times.finish()),
        Arc::new(kinds.finish()),
        Arc::new(cells.finish()),
    ];
    RecordBatch::try_new(schema.clone(), columns).map_err(arrow_error)
}
