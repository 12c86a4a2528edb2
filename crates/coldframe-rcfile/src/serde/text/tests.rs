//! Cells give the values that Hive gives for them, and arrays are the same after writing and reading.

mod lenient;
mod nested;
mod round_trip;
mod written;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, OffsetBuffer};
use coldframe_encoding::Limits;

use super::{decoder, encoder};
use crate::hive_type::{HiveType, ddl};
use crate::serde::{Cells, HiveVersion, SerdeOptions, TimestampUnit};

fn cells<T: AsRef<[u8]>>(values: &[T]) -> Cells {
    let data: Vec<u8> = values.iter().flat_map(|v| v.as_ref().to_vec()).collect();
    let offsets = OffsetBuffer::from_lengths(values.iter().map(|v| v.as_ref().len()));
    Cells { data: Buffer::from_vec(data), offsets, nulled: false, first_row: 0 }
}

fn hive_type(text: &str) -> HiveType {
    ddl::parse_type(text, &Limits::default()).unwrap()
}

fn options(version: HiveVersion, properties: &[(&str, &str)]) -> SerdeOptions {
    SerdeOptions {
        hive_version: version,
        timestamp_unit: TimestampUnit::Microsecond,
        properties: properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..SerdeOptions::default()
    }
}

fn decoded<T: AsRef<[u8]>>(hive_type: &str, version: HiveVersion, values: &[T]) -> ArrayRef {
    with_options(hive_type, &options(version, &[]), values)
}

fn with_options<T: AsRef<[u8]>>(text: &str, options: &SerdeOptions, values: &[T]) -> ArrayRef {
    decode_checked(&hive_type(text), options, &cells(values))
}

/// Decodes, and checks the invariants of every array.
fn decode_checked(hive_type: &HiveType, options: &SerdeOptions, cells: &Cells) -> ArrayRef {
    let array = decoder(hive_type, options).unwrap().decode(cells).unwrap();
    assert_eq!(array.len(), cells.offsets.len() - 1);
    assert_eq!(*array.data_type(), hive_type.to_arrow(options.timestamp_unit));
    array.to_data().validate_full().unwrap();
    array
}

/// The cells of an array's rows.
fn encoded(hive_type: &HiveType, options: &SerdeOptions, array: &dyn Array) -> Vec<Vec<u8>> {
    let (mut data, mut lengths) = (Vec::new(), Vec::new());
    encoder(hive_type, options).unwrap().encode(array, 0..array.len(), &mut data, &mut lengths).unwrap();
    assert_eq!(lengths.len(), array.len());
    let mut rest = data.as_slice();
    let mut cells = Vec::new();
    for length in lengths {
        let (cell, behind) = rest.split_at(length as usize);
        cells.push(cell.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty());
    cells
}
