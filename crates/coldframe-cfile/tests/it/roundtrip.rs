//! Writes and reads every type, encoding and codec, with and without nulls, over several blocks.

#![expect(clippy::cast_possible_wrap, reason = "a failing test shows the place")]

use crate::support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use coldframe_cfile::layout::types::{Compression, Encoding, KuduType};
use coldframe_cfile::write::Options;
use coldframe_core::{OnError, Scan, TableFile, Value};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows;
use proptest::prelude::*;
use support::{column, encodings, open, open_with, types, write};

#[test]
fn every_type_encoding_and_codec_is_written_and_read() {
    let codecs = [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zlib];
    for (i, data_type) in types().into_iter().enumerate() {
        for encoding in encodings(data_type) {
            for nulls in [0, 3, 1] {
                let values = column(data_type, 3001, nulls, i as u64);
                let codec = codecs[(i + nulls) % 4];
                let options = Options {
                    encoding: Some(encoding),
                    codec,
                    block_size: 600,
                    checksums: nulls != 3,
                    data_type: Some(data_type),
                    ..Options::default()
                };
                let bytes = write(&values, nulls > 0, &options);
                let name = format!("{data_type} {encoding} {codec} nulls {nulls}");
                let file = open(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(file.row_count(), Some(3001), "{name}");
                let read = rows::read(&file, OnError::Raise).unwrap();
                assert!(read.error.is_none(), "{name}: {:?}", read.error);
                assert_eq!(read.batch.column(0).to_data(), values.to_data(), "{name}");
                assert_tiled(&file.inspect().unwrap());
                assert_eq!(file.verify_structure().unwrap(), [], "{name}");
            }
        }
    }
}

#[test]
fn splits_and_batches_may_end_anywhere() {
    for (data_type, encoding) in [
        (KuduType::Int32, Encoding::BitShuffle),
        (KuduType::Int64, Encoding::Rle),
        (KuduType::Bool, Encoding::Rle),
        (KuduType::String, Encoding::Dict),
        (KuduType::Binary, Encoding::Prefix),
        (KuduType::Double, Encoding::Plain),
    ] {
        let values = column(data_type, 12_000, 4, 9);
        let options = Options { encoding: Some(encoding), block_size: 512, ..Options::default() };
        let bytes = write(&values, true, &options);
        let file = open_with(&bytes, &[("ordinal", Value::Bool(true))]).unwrap();
        let splits = file.splits(500).unwrap();
        assert!(splits.len() > 1, "{data_type}");
        for batch_rows in [1, 7, 300, 100_000] {
            let mut at = 0;
            for split in &splits {
                let scan = Scan { batch_rows, ..Scan::default() };
                let part = rows::scan(&file, &scan, Some(split)).unwrap();
                assert!(part.error.is_none(), "{:?}", part.error);
                let batch = part.batch;
                let ordinals = batch.column(0).as_primitive::<Int64Type>();
                assert!(ordinals.values().iter().copied().eq(at as i64..(at + batch.num_rows()) as i64));
                let expected = values.slice(at, batch.num_rows());
                assert_eq!(batch.column(1).to_data(), expected.to_data(), "{data_type} {batch_rows}");
                at += batch.num_rows();
            }
            assert_eq!(at, 12_000);
        }
    }
}

#[test]
fn blocks_after_a_full_dictionary_have_values() {
    let texts = (0..4000u64).map(|i| format!("value {}", i * i % 1009));
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let options = Options { block_size: 2048, ..Options::default() };
    let bytes = write(&values, false, &options);
    let plain = rows::read(&open(&bytes).unwrap(), OnError::Raise).unwrap().batch;
    assert_eq!(plain.column(0).to_data(), values.to_data());
    let file = open_with(&bytes, &[("dictionary", Value::Bool(true))]).unwrap();
    let read = rows::read(&file, OnError::Raise).unwrap().batch;
    let back = arrow_cast::cast(read.column(0), values.data_type()).unwrap();
    assert_eq!(back.to_data(), values.to_data());
}

#[test]
fn an_empty_file_has_a_schema() {
    for nullable in [false, true] {
        let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        let file = open(&write(&none, nullable, &Options::default())).unwrap();
        assert_eq!(file.row_count(), Some(0));
        assert_eq!(rows::read(&file, OnError::Raise).unwrap().batch.num_rows(), 0);
        assert_tiled(&file.inspect().unwrap());
    }
}

#[test]
fn seeks_and_look_ups_return_the_requested_rows() {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40_000).map(|i| i * 3 - 50_000)));
    // The blocks are so small that both indexes have several levels.
    let options = Options { value_index: true, block_size: 512, ..Options::default() };
    let file = open(&write(&values, false, &options)).unwrap();
    let from = rows::scan(&file, &Scan::default(), Some(&file.seek(39_990).unwrap())).unwrap();
    assert_eq!(from.batch.column(0).to_data(), values.slice(39_990, 10).to_data());
    assert!(file.seek(40_001).is_err());
    for at in [0, 1, 63, 64, 65, 20_000, 39_999] {
        let wanted = values.slice(at, 1);
        let row = file.lookup(&wanted).unwrap();
        assert_eq!(row.num_rows(), 1, "{at}");
        assert_eq!(row.column(0).as_primitive::<Int64Type>().value(0), at as i64);
    }
    for absent in [-60_000i64, -49_999, 1_000_000] {
        let wanted: ArrayRef = Arc::new(Int64Array::from(vec![absent]));
        assert_eq!(file.lookup(&wanted).unwrap().num_rows(), 0, "{absent}");
    }
    assert_tiled(&file.inspect().unwrap());
}

#[test]
fn unsupported_columns_are_errors() {
    let falling: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 2]));
    let options = Options { value_index: true, ..Options::default() };
    let e = support::try_write(&falling, false, &options).unwrap_err();
    assert!(e.to_string().contains("found row 2 not above the previous row"), "{e}");
    let e = support::try_write(&falling, true, &options).unwrap_err();
    assert!(e.to_string().contains("a value index over a nullable column"), "{e}");
    let options = Options { encoding: Some(Encoding::Prefix), ..Options::default() };
    let e = support::try_write(&falling, false, &options).unwrap_err();
    assert!(e.to_string().contains("PREFIX_ENCODING of INT64"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_values_are_the_same_after_writing_and_reading(
        which in 0usize..64,
        rows in 0usize..700,
        nulls in 0usize..5,
        seed: u64,
        block_size in 512usize..3000,
    ) {
        let all = types();
        let data_type = all[which % all.len()];
        let choices = encodings(data_type);
        let encoding = choices[which / 7 % choices.len()];
        let values = column(data_type, rows, nulls, seed);
        let options =
            Options { encoding: Some(encoding), block_size, data_type: Some(data_type), ..Options::default() };
        let file = open(&write(&values, nulls > 0, &options)).unwrap();
        let read = rows::read(&file, OnError::Raise).unwrap();
        prop_assert!(read.error.is_none(), "{:?}", read.error);
        prop_assert_eq!(read.batch.column(0).to_data(), values.to_data());
        // A read under `skip` drops no row.
        let kept = rows::read(&file, OnError::Skip).unwrap();
        prop_assert!(kept.damage.is_empty());
        prop_assert_eq!(kept.batch.num_rows(), rows);
    }
}
