//! Decodes run length encodings of bytes, bits and integers.
//!
//! | module | holds |
//! |---|---|
//! | [`bytes`] | byte RLE, and bits packed in it |
//! | [`int`] | integer RLE, both versions |

pub(crate) mod bytes;
pub(crate) mod int;
