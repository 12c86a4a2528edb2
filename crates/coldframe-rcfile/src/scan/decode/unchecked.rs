//! Offsets whose order is checked in bulk.
//!
//! [`OffsetBuffer::new`] stops at the first offset that falls, so it compares one pair at a time: a tenth of a scan of
//! uncompressed binary cells. Here all pairs are compared without a way out of the loop, which the compiler does
//! several at a time.

use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use coldframe_core::{Error, Result};

/// `offsets` as Arrow's, if there is one at least, none is negative and none falls.
pub(super) fn offsets(offsets: Vec<i32>) -> Result<OffsetBuffer<i32>> {
    let behind = offsets.get(1..).unwrap_or_default();
    let falling = offsets.iter().zip(behind).fold(0u32, |n, (a, b)| n | u32::from(a > b));
    if falling != 0 || offsets.first().is_none_or(|first| *first < 0) {
        return Err(Error::corrupt("expected cells one behind another, found an offset that falls"));
    }
    let offsets = ScalarBuffer::from(offsets);
    // SAFETY: the offsets are not empty, the first is not negative, and none is less than the one before it: checked
    // above, whatever the file says.
    #[expect(unsafe_code, reason = "the safe constructor would check the same again, one pair at a time")]
    Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_offset_buffer_is_refused() {
        assert!(offsets(vec![]).is_err());
        assert!(offsets(vec![-1, 0]).is_err());
        assert!(offsets(vec![0, 5, 4]).is_err());
        assert!(offsets(vec![0, i32::MAX, i32::MIN]).is_err());
        assert_eq!(offsets(vec![7]).unwrap().as_ref(), [7]);
    }

    proptest! {
        #[test]
        fn as_strict_as_arrow(ends in proptest::collection::vec(-2i32..40, 0..9)) {
            let arrow = !ends.is_empty() && ends[0] >= 0 && ends.windows(2).all(|w| w[0] <= w[1]);
            let found = offsets(ends.clone());
            prop_assert_eq!(found.is_ok(), arrow);
            if let Ok(found) = found {
                prop_assert_eq!(found.as_ref(), ends);
            }
        }
    }
}
