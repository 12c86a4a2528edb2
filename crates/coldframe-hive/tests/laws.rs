//! The laws that hold for every format, on a table of two files: what is lost of one is told, and nothing deleted comes back.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use coldframe_core::{Format, Node, OnError, OpenOptions, Result, TableFile, Value};
use coldframe_hive::HiveFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::made;
use coldframe_testing::rows;
use support::written;

const BUCKET: i32 = 0x2000_0000;

/// `rows` of write 1; inserted, or deleted by write 2.
fn events(rows: impl Iterator<Item = i64> + Clone, deletes: bool) -> Bytes {
    let count = rows.clone().count();
    let (operation, write) = if deletes { (2, 2) } else { (0, 1) };
    let numbers: ArrayRef = Arc::new(rows.collect::<Int64Array>());
    let fields = Fields::from(vec![Field::new("id", DataType::Int64, true)]);
    let row: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers.clone()], None));
    let all: [(&str, ArrayRef, bool); 6] = [
        ("operation", Arc::new(Int32Array::from(vec![operation; count])), true),
        ("originalTransaction", Arc::new(Int64Array::from(vec![1; count])), true),
        ("bucket", Arc::new(Int32Array::from(vec![BUCKET; count])), true),
        ("rowId", numbers, true),
        ("currentTransaction", Arc::new(Int64Array::from(vec![write; count])), true),
        ("row", row, true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(all).unwrap();
    let options =
        [("row_index_stride", Value::Int(50)), ("stripe_rows", Value::Int(150)), ("codec", "none".into())];
    written(&batch, &options)
}

fn table(base: Bytes, deletes: Bytes) -> Result<Arc<dyn TableFile>> {
    let mut options = OpenOptions::default();
    options.extra.insert("acid".to_owned(), Value::Bool(true));
    let folder = MemoryFolder::default()
        .with("base_1/bucket_00000", base)
        .with("delete_delta_2_2/bucket_00000", deletes);
    HiveFormat.open(&folder.source(), &options)
}

fn deletes() -> Bytes {
    events((0..400).filter(|n| n % 5 == 0), true)
}

/// Nothing sums an ORC file: a flip in the identities of rows may undo a delete, and nobody can see it. What is seen is told.
#[test]
fn damage_of_a_base_is_told() {
    let base = events(0..400, false);
    let whole = Node::new("file", 0..base.len() as u64);
    let (mut opened, mut lost) = (0, 0);
    for damaged in made(&whole, &base, 300) {
        let Ok(table) = table(damaged.apply(&base), deletes()) else { continue };
        opened += 1;
        let raised = rows::read(table.as_ref(), OnError::Raise).unwrap();
        let [skipped, nulled] = [OnError::Skip, OnError::Null].map(|on_error| {
            let found = rows::read(table.as_ref(), on_error).unwrap();
            assert!(found.error.as_ref().is_none_or(|e| !e.is_damage()), "{damaged}: {:?}", found.error);
            found
        });
        assert!(nulled.batch.num_rows() >= skipped.batch.num_rows(), "{damaged}");
        let is_damage = raised.error.is_some_and(|e| e.is_damage());
        assert!(!is_damage || !(skipped.damage.is_empty() || nulled.damage.is_empty()), "{damaged}");
        lost += usize::from(is_damage);
    }
    assert!(opened > 20 && lost > 5, "{opened} {lost}");
}

/// Deletes that cannot be read are an error: without them deleted rows would be back.
#[test]
fn damage_of_deletes_uncovers_nothing() {
    let (base, deletes) = (events(0..400, false), deletes());
    for cut in [deletes.len() / 2, deletes.len() - 40, deletes.len() - 1] {
        for on_error in [OnError::Skip, OnError::Null] {
            let found =
                table(base.clone(), deletes.slice(..cut)).and_then(|t| rows::read(t.as_ref(), on_error));
            assert!(found.is_err() || found.unwrap().error.is_some(), "{cut}");
        }
    }
}
