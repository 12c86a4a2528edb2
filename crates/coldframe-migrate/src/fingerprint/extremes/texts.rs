//! The smallest and the largest of texts and blobs, in byte order.
//!
//! ```text
//! .. | o r d e r   1 2 3 4 5   o f   t h e   .. |      the first 16 bytes, as a number, nearly always decide
//!      └──────────── prefix ────────────┘
//! ```

use arrow_array::types::ByteArrayType;
use arrow_array::{Array, GenericByteArray};
use arrow_buffer::ArrowNativeType;

const PREFIX_LEN: usize = 16;

/// The first bytes of a value, zero-padded, as a number with the same order.
#[inline]
fn prefix(data: &[u8], from: usize, to: usize) -> u128 {
    let len = to.saturating_sub(from);
    match data.get(from..).and_then(<[u8]>::first_chunk::<PREFIX_LEN>) {
        Some(bytes) if len >= PREFIX_LEN => u128::from_be_bytes(*bytes),
        Some(bytes) => u128::from_be_bytes(*bytes) & !(u128::MAX >> (8 * len)),
        None => {
            let mut bytes = [0; PREFIX_LEN];
            bytes.iter_mut().zip(data.get(from..to).unwrap_or_default()).for_each(|(to, from)| *to = *from);
            u128::from_be_bytes(bytes)
        }
    }
}

/// The extremes of the non-null values.
pub(super) fn ends<T: ByteArrayType>(array: &GenericByteArray<T>) -> Option<(&T::Native, &T::Native)> {
    let rows = match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => ends_of(array, nulls.valid_indices()),
        _ => ends_of(array, 0..array.len()),
    };
    rows.map(|(low, high)| (array.value(low), array.value(high)))
}

/// The row numbers of the smallest and the largest value.
fn ends_of<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    mut rows: impl Iterator<Item = usize>,
) -> Option<(usize, usize)> {
    let (data, offsets) = (array.value_data(), array.value_offsets());
    let place = |row: usize| match offsets.get(row..).and_then(<[T::Offset]>::first_chunk) {
        Some([from, to]) => (from.as_usize(), to.as_usize()),
        None => (0, 0),
    };
    let prefix_of = |row: usize| {
        let (from, to) = place(row);
        prefix(data, from, to)
    };
    let bytes_of = |row: usize| {
        let (from, to) = place(row);
        data.get(from..to).unwrap_or_default()
    };
    let first = rows.next()?;
    let (mut low, mut high) = ((prefix_of(first), first), (prefix_of(first), first));
    for row in rows {
        let prefix = prefix_of(row);
        if prefix <= low.0 && (prefix < low.0 || bytes_of(row) < bytes_of(low.1)) {
            low = (prefix, row);
        } else if prefix >= high.0 && (prefix > high.0 || bytes_of(row) > bytes_of(high.1)) {
            high = (prefix, row);
        }
    }
    Some((low.1, high.1))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryArray, StringArray};

    use super::*;

    fn compare(values: &[Option<&[u8]>]) {
        let array = BinaryArray::from(values.to_vec());
        let present = || values.iter().flatten().copied();
        assert_eq!(ends(&array), present().min().zip(present().max()));
        let half = array.slice(values.len() / 2, values.len() - values.len() / 2);
        let present = || values[values.len() / 2..].iter().flatten().copied();
        assert_eq!(ends(&half), present().min().zip(present().max()));
    }

    #[test]
    fn prefixes_order_values() {
        compare(&[]);
        compare(&[None, None]);
        compare(&[Some(b"a"), Some(b"a\0"), None, Some(b""), Some(b"\xff")]);
        compare(&[Some(b"a text of 16 byte"), Some(b"a text of 16 bytes"), Some(b"a text of 16 byt")]);
        compare(&[None, Some(b"sixteen letters!a"), Some(b"sixteen letters!b"), Some(b"sixteen letters!")]);
        // If the prefix had bytes from after the value, a short value would be taken for a larger one.
        compare(&[
            Some(b"b"),
            Some(b"\xff\xff\xff\xff"),
            Some(b"a"),
            Some(b"\xff\xff"),
            Some(b"\xff\xff\xff"),
        ]);
        let texts: Vec<String> = (0..1000).map(|n| format!("customer {}", n * 7919 % 1000)).collect();
        let array = StringArray::from(texts.clone());
        assert_eq!(ends(&array), texts.iter().min().zip(texts.iter().max()).map(|(a, b)| (&**a, &**b)));
    }
}
