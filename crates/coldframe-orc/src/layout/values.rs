//! Converts values to the forms in which statistics and bloom filters store them.

/// Thomas Wang's mix of a 64-bit integer, with arithmetic shifts.
pub(crate) fn mix(key: i64) -> u64 {
    let mut k = (!key).wrapping_add(key << 21);
    k ^= k >> 24;
    k = k.wrapping_add(k << 3).wrapping_add(k << 8);
    k ^= k >> 14;
    k = k.wrapping_add(k << 2).wrapping_add(k << 4);
    k ^= k >> 28;
    k.wrapping_add(k << 31).cast_unsigned()
}

/// `-12.340` for -12340 at scale 3.
pub(crate) fn decimal_text(value: i128, scale: i8) -> String {
    let Ok(scale) = usize::try_from(scale) else { return value.to_string() };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}
