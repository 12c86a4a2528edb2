//! Reads `boolean`, `tinyint`, `smallint`, `float`, `double`, which have a fixed number of bytes, big-endian.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use coldframe_encoding::{Error, Result};

use super::cells::{CellError, Run, Values, at};
use super::framing::Framing;

macro_rules! fixed {
    ($($name:ident $native:ty, $size:literal => $array:ty;)*) => {$(
        pub(super) struct $name;

        impl Values for $name {
            fn framing(&self) -> Framing {
                Framing::Fixed($size)
            }

            fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
                let values = big_endian::<$size, $native>(run, <$native>::from_be_bytes)?;
                Ok(Arc::new(<$array>::new(values, run.nulls.clone())))
            }
        }
    )*};
}

fixed! {
    TinyInt i8, 1 => Int8Array;
    SmallInt i16, 2 => Int16Array;
    Float f32, 4 => Float32Array;
    Double f64, 8 => Float64Array;
}

/// Reads cells of `N` bytes; null cells are empty.
fn big_endian<const N: usize, T: ArrowNativeType>(
    run: &Run<'_>,
    from: impl Fn([u8; N]) -> T,
) -> Result<ScalarBuffer<T>, CellError> {
    check_lengths::<N>(run)?;
    let values: Vec<T> = if run.nulls.is_none() {
        // No cell is missing, so the cells are contiguous.
        run.bytes().as_chunks::<N>().0.iter().map(|bytes| from(*bytes)).collect()
    } else {
        let data = run.data.as_slice();
        // For a null the following bytes are read, so that the loop has no branch.
        let cell = |start: usize| data.get(start..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N]);
        run.places().map(|(start, end)| from(if start == end { [0; N] } else { cell(start) })).collect()
    };
    Ok(values.into())
}

fn check_lengths<const N: usize>(run: &Run<'_>) -> Result<(), CellError> {
    if run.all_have(i32::try_from(N).unwrap_or(i32::MAX)) {
        return Ok(());
    }
    Err(run.refuse(|mut cell| {
        cell.skip(N)?;
        cell.finish()
    }))
}

pub(super) struct Boolean;

impl Values for Boolean {
    fn framing(&self) -> Framing {
        Framing::Fixed(1)
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        check_lengths::<1>(run)?;
        // For any other byte Hive repeats the previous row's value; this reader returns an error.
        if run.bytes().iter().filter(|b| **b > 1).count() > 0 {
            return Err(run.refuse(|mut cell| match cell.u8()? {
                0 | 1 => Ok(()),
                other => Err(Error::corrupt(format!("expected a boolean of 0 or 1, found {other}"))),
            }));
        }
        let data = run.data.as_slice();
        let values =
            run.pack(|start, end| data.get(at(start)).copied().unwrap_or(0) & u8::from(start != end) != 0);
        Ok(Arc::new(BooleanArray::new(values, run.nulls.clone())))
    }
}
