//! Tests pages byte by byte: where they end, and their levels, booleans and checksums.

use std::borrow::Cow;

use super::*;

fn leaf(physical_type: Type, max_definition: u8, max_repetition: u8) -> schema::Leaf {
    schema::Leaf { path: vec!["x".to_owned()], physical_type, max_definition, max_repetition }
}

fn integers(n: i64) -> Dense<'static> {
    Dense::Fixed { width: 8, bytes: Cow::Owned((0..n).flat_map(i64::to_le_bytes).collect()) }
}

/// The number of entries of each page, and the pages' contents.
fn pages(bytes: &[u8]) -> (Vec<i32>, Vec<Vec<u8>>) {
    let (mut counts, mut contents) = (Vec::new(), Vec::new());
    let mut reader = thrift::Reader::new(bytes, 0, &coldframe_encoding::Limits::default());
    while !reader.cursor().is_empty() {
        let mut stored = 0;
        reader
            .structure(|r, f| {
                match f.id {
                    3 => stored = r.i32(f)?,
                    5 => r.structure(|r, f| match f.id {
                        1 => r.i32(f).map(|n| counts.push(n)),
                        _ => r.skip(f),
                    })?,
                    _ => r.skip(f)?,
                }
                Ok(())
            })
            .unwrap();
        let stored = usize::try_from(stored).unwrap();
        contents.push(reader.cursor_mut().take(stored).unwrap().to_vec());
    }
    (counts, contents)
}

fn write(leaf: &schema::Leaf, entries: &Leaf<'_>, step: usize, options: &WriteOptions) -> Vec<u8> {
    let mut column = Column::new(leaf, options.encoding);
    let mut pages = Pages::new(options).unwrap();
    let mut value = 0;
    for start in (0..entries.entries).step_by(step) {
        let end = entries.entries.min(start + step);
        value = column.append(entries, start..end, value, &mut pages).unwrap();
    }
    assert_eq!(value, entries.values.len());
    let metadata = column.finish(7, &mut pages).unwrap();
    let bytes = column.chunk().to_vec();
    assert_eq!(usize::try_from(metadata.num_values).unwrap(), entries.entries);
    assert_eq!(metadata.data_page_offset, 7);
    bytes
}

#[test]
fn a_page_ends_after_the_value_that_exceeds_page_bytes() {
    let values = Leaf { entries: 3000, repetition: None, definition: None, values: integers(3000) };
    let counts = |page_bytes, step| {
        let options = WriteOptions { page_bytes, ..WriteOptions::default() };
        pages(&write(&leaf(Type::Int64, 0, 0), &values, step, &options)).0
    };
    assert_eq!(counts(8192, 3000), [1025, 1025, 950]);
    assert_eq!(counts(8191, 3000), [1024, 1024, 952]);
    assert_eq!(counts(0, 3000), [1; 3000]);
    for step in [1, 7, 1024, 1025, 1026] {
        assert_eq!(counts(8192, step), counts(8192, 3000), "{step}");
    }
}

#[test]
fn definition_levels_count_as_64_bytes_and_closed_runs() {
    let counts = |definition: Vec<u8>, page_bytes| {
        let values = integers(definition.iter().map(|d| i64::from(*d)).sum());
        let values =
            Leaf { entries: definition.len(), repetition: None, definition: Some(definition), values };
        let options = WriteOptions { page_bytes, ..WriteOptions::default() };
        let whole = write(&leaf(Type::Int64, 1, 0), &values, values.entries, &options);
        assert_eq!(whole, write(&leaf(Type::Int64, 1, 0), &values, 3, &options));
        pages(&whole).0
    };
    assert_eq!(counts(vec![1; 30], 64), [1; 30]);
    assert_eq!(counts(vec![1; 30], 72), [2; 15]);
    assert_eq!(counts(vec![0; 30], 64), [30]);
    assert_eq!(counts(vec![0; 30], 63), [1; 30]);
    // A null takes two bits; the run of 4 nulls becomes a byte when the next value ends it.
    assert_eq!(counts(vec![0, 0, 0, 0, 1, 0, 0, 0, 0], 72), [5, 4]);
    assert_eq!(counts(vec![0, 0, 0, 0, 1, 0, 0, 0, 0], 73), [9]);
}

#[test]
fn both_orders_of_levels_are_written() {
    let levels = Leaf {
        entries: 4,
        repetition: Some(vec![0, 1, 1, 0]),
        definition: Some(vec![2; 4]),
        values: integers(4),
    };
    let page = |dialect| {
        let options = WriteOptions { dialect, ..WriteOptions::default() };
        pages(&write(&leaf(Type::Int64, 2, 1), &levels, 4, &options)).1.concat()
    };
    let values: Vec<u8> = (0..4i64).flat_map(i64::to_le_bytes).collect();
    assert_eq!(page(Dialect::RedelmF), [&[0x60, 0, 0, 0, 2, 0x25, 0][..], &values].concat());
    assert_eq!(page(Dialect::Spec), [&[0x25, 0, 0x60][..], &values].concat());
}

#[test]
fn booleans_are_bits_from_the_highest_on() {
    let values = Dense::Booleans(vec![1, 0, 0, 1, 1, 0, 0, 0, 1]);
    let values = Leaf { entries: 9, repetition: None, definition: None, values };
    let bytes = write(&leaf(Type::Boolean, 0, 0), &values, 2, &WriteOptions::default());
    assert_eq!(pages(&bytes).1, [[0b1001_1000, 0b1000_0000]]);
}

#[test]
fn only_whole_groups_of_repetition_levels_are_counted() {
    assert_eq!([0, 7, 8, 16].map(|n| counted_repetition(1, n)), [0, 0, 1, 2]);
    assert_eq!([3, 4, 7].map(|n| counted_repetition(2, n)), [0, 1, 1]);
    assert_eq!([7, 8, 15].map(|n| counted_repetition(3, n)), [0, 3, 3]);
    assert_eq!([1, 2, 3].map(|n| counted_repetition(4, n)), [0, 1, 1]);
    assert_eq!([3, 4].map(|n| counted_repetition(6, n)), [0, 3]);
    assert_eq!([0, 1].map(|n| counted_repetition(8, n)), [0, 1]);
    assert_eq!(counted_repetition(0, 9), 0);
}

#[test]
fn a_crc_covers_the_stored_bytes() {
    let values = Leaf { entries: 5, repetition: None, definition: None, values: integers(5) };
    for codec in [
        crate::write::Codec::None,
        crate::write::Codec::Snappy,
        crate::write::Codec::Gzip,
        crate::write::Codec::Lzo,
    ] {
        let options = WriteOptions { codec, crc: true, ..WriteOptions::default() };
        let bytes = write(&leaf(Type::Int64, 0, 0), &values, 5, &options);
        let mut reader = thrift::Reader::new(&bytes, 0, &coldframe_encoding::Limits::default());
        let mut crc = 0;
        reader
            .structure(|r, f| match f.id {
                4 => r.i32(f).map(|c| crc = c),
                _ => r.skip(f),
            })
            .unwrap();
        assert_eq!(crc.cast_unsigned(), crc32(reader.cursor().rest()), "{codec}");
    }
}
