//! The binary encoding of Avro (specification 1.11, "Data Serialization"), as used for the values in HFiles: single
//! datums (encoded values) without any framing. The schema with which they were written is stored elsewhere (in the
//! file info of an HFile, in the header of a log block).
//!
//! ```text
//! null     nothing                                    string, bytes  long n, then n bytes
//! boolean  one byte 00 | 01                           fixed          its bytes
//! int, long  zigzag, LEB128                           enum           int: index of the symbol
//! float    4 bytes LE                                 union          long: index of the branch, then its datum
//! double   8 bytes LE                                 record         its fields, in order
//! array, map   blocks: long n, n items; or long -n, long bytes, n items; ended by long 0
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`schema`] | a schema parsed from JSON, as a table of types |
//! | [`columns`] | datums decoded straight into Arrow arrays |
//! | [`datum`] | decoding one datum to a tree, for merging, and encoding it |
//! | [`container`] | the object container file (`Obj\x01`), in which Hudi stores the contents of its timeline |
//!
//! Types of Avro and of Arrow:
//!
//! | Avro | Arrow |
//! |---|---|
//! | `boolean`, `int`, `long`, `float`, `double`, `bytes`, `string` | `bool`, `int32`, `int64`, `float`, `double`, `binary`, `string` |
//! | logical `date`, `time-millis`, `time-micros` | `date32`, `time32[ms]`, `time64[us]` |
//! | logical `timestamp-*`, `local-timestamp-*` | `timestamp[unit, UTC]`, `timestamp[unit]` |
//! | logical `decimal` over `bytes` or `fixed` | `decimal128(precision, scale)`; `binary` above 38 digits |
//! | `enum` | `string` |
//! | `fixed` | `fixed_size_binary` |
//! | `array`, `map`, `record` | `list`, `map<string, ..>`, `struct` |
//! | union of null and one type | that type, nullable |
//! | any other union | `struct<member0, member1, ..>`: a field for each non-null branch, one of them set, as in Spark's Avro reader |

pub(crate) mod columns;
pub(crate) mod container;
pub(crate) mod datum;
pub(crate) mod schema;

pub(crate) use schema::Schema;

#[cfg(test)]
mod tests;
