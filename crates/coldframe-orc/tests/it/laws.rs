//! Tests the laws of every format for ORC: damage loses only rows of its stripe, and all of it is recorded.

use crate::support;

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use bytes::Bytes;
use coldframe_core::{Format, Node, OpenOptions, Source, Value};
use coldframe_orc::OrcFormat;
use coldframe_testing::laws::{AllowedLoss, Moved, Opener, Subject, Units, assert_linear, opener};
use support::written;

fn orc() -> Opener {
    opener(|source: Source| OrcFormat.open(&source, &OpenOptions::default()))
}

/// A table with every kind of stream: nulls, runs, dictionaries, direct text, lengths, the two streams of a
/// timestamp.
fn table(rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let some: ArrayRef = Arc::new((0..rows).map(|i| (i % 7 > 0).then_some(i * i)).collect::<Int64Array>());
    let dictionary_texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("w{}", i % 40))));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("text {i} {}", i * 7919))));
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|_| 0.5)));
    let truths: ArrayRef = Arc::new((0..rows).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>());
    let times: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(|i| i * 1_000_003)));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for i in 0..rows {
        lists.append_value((0..i % 4).map(|n| Some(i32::try_from(n).unwrap())));
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    RecordBatch::try_from_iter_with_nullable([
        ("id", ids, true),
        ("some", some, true),
        ("word", dictionary_texts, true),
        ("text", texts, true),
        ("float", floats, true),
        ("truth", truths, true),
        ("time", times, true),
        ("list", lists, true),
    ])
    .unwrap()
}

fn file(rows: i64, codec: &str) -> Bytes {
    let options = [
        ("codec", Value::from(codec)),
        ("row_index_stride", Value::Int(100)),
        ("stripe_rows", Value::Int(400)),
    ];
    written(&table(rows), &options)
}

/// The stripes and their rows.
fn stripes(tree: &Node) -> Units {
    let stripe = |node: &Node| {
        let rows = node.detail.iter().find(|(key, _)| key == "rows").map(|(_, value)| value)?;
        let rows = match rows {
            Value::Int(n) => usize::try_from(*n).unwrap(),
            Value::UInt(n) => usize::try_from(*n).unwrap(),
            other => panic!("{other:?}"),
        };
        Some((node.bytes.clone(), rows))
    };
    Units::new(tree.children.iter().filter_map(stripe))
}

/// An ORC file has no checksums. The smallest unit of an ORC file is a row group; if an index or a stripe's
/// footer is damaged, the stripe is lost. The tail states where everything is.
fn obey(codec: &str) {
    let subject = Subject::new(format!("written {codec}"), file(1000, codec), |source| {
        OrcFormat.open(&source, &OpenOptions::default())
    });
    let units = stripes(&subject.tree());
    assert_eq!(units.parts().len(), 3);
    subject
        .unsummed()
        .damages(600)
        .unit(move |damaged| match damaged.moves() {
            // The tail has the positions of all stripes, and it has moved, too.
            true => units.allowed_loss(damaged, AllowedLoss::file(), Moved::Lost).and(AllowedLoss::file()),
            false => units.allowed_loss(damaged, AllowedLoss::file(), Moved::Lost),
        })
        .obey();
}

#[test]
fn damage_without_a_codec_loses_only_its_stripe() {
    obey("none");
}

#[test]
fn damage_with_zlib_loses_only_its_stripe() {
    obey("zlib");
}

#[test]
fn damage_with_zstd_loses_only_its_stripe() {
    obey("zstd");
}

#[test]
fn work_grows_as_the_file_does() {
    for codec in ["none", "zstd"] {
        let files = [20_000, 40_000, 80_000].map(|rows| file(rows, codec));
        assert_linear(&format!("stripes of {codec}"), &files, &orc());
    }
}
