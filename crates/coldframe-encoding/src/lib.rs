//! Decoders and encoders that the storage formats share, without Arrow and without I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`cursor`] | a bounds-checked reader over a slice that knows its offset in the file |
//! | [`varint`] | variable-length integers, named by their grammar |
//! | [`bits`] | fixed-width integers of 1 to 64 bits, packed in either bit order |
//! | [`codec`] | every compression algorithm, and Hadoop's block framing of them |
//! | [`checksum`], [`hash`] | CRC-32, CRC-32C, XXH3; Murmur3, City64, Jenkins |
//! | [`crypt`] | AES in counter mode and on single blocks |
//! | [`values`] | the trait of all decoders; moving dense values to their rows |
//! | [`calendar`], [`zone`] | days of the proleptic and of Java's hybrid calendar; time zones as in Java |
//! | [`java_text`] | the text of floating-point numbers, as in Java |
//! | [`limits`] | what a file may make a reader allocate |
//! | [`secrets`] | URLs without passwords and signatures |
//! | [`error`] | the one error type of the workspace |
//!
//! Before memory is allocated for a size in a file, it is compared with the bytes that exist.

pub mod bits;
pub mod calendar;
pub mod checksum;
pub mod codec;
pub mod crypt;
pub mod cursor;
pub mod error;
pub mod hash;
pub mod java_text;
pub mod limits;
pub mod secrets;
pub mod values;
pub mod varint;
pub mod zone;

pub use cursor::Cursor;
pub use error::{Error, ErrorKind, Result};
pub use limits::Limits;
pub use secrets::{shown, shown_in};
