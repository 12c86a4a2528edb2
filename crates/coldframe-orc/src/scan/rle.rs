//! Runs: how bytes, bits and integers are stored.
//!
//! | module | holds |
//! |---|---|
//! | [`bytes`] | runs of bytes, and of bits in them |
//! | [`int`] | runs of integers, both versions |

pub(crate) mod bytes;
pub(crate) mod int;
