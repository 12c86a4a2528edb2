//! The native library of the Spark connector for the JVM (`jvm/`): planning and decoding, called over JNI.
//!
//! ```text
//! driver     ColdframeTable ──open──▶ plan::Table     options, schema, accepted filters, plan of tasks as bytes
//! executor   ColdframeReader ──read──▶ reader::Reader ──next──▶ addresses of a batch's buffers, until it is released
//! ```
//! This crate has only what is specific to Spark: Spark's types, its filters, and records of damage as a
//! table. Formats and planning are in `coldframe::dataset`, which [`plan`] calls; `coldframe::load` parses
//! the options.
//!
//! | module | holds |
//! |---|---|
//! | `entry` | the native methods of `io.coldframe.spark.Native`; no panic leaves them |
//! | `failure` | errors as Java exceptions |
//! | `handles` | the objects that Java holds by number |
//! | [`types`] | Arrow types to Spark's, and Spark's JSON |
//! | [`notes`] | types that Spark's own ORC writer notes in its files |
//! | [`folders`] | the files of a Hive metastore's table |
//! | [`filter`] | Spark's predicates as coldframe's, if both select the same rows |
//! | [`aggregate`] | `count`, `min` and `max` over the rows of a task |
//! | [`plan`] | a table, and its plan |
//! | [`stream`], `stream_entry` | reading new files batch by batch, and the native methods of `io.coldframe.spark.NativeStream` |
//! | [`task`] | the bytes sent to an executor |
//! | [`reader`] | the batches of a task |
//! | `metered` | counts the bytes that a task reads |
//! | [`damage`] | the damage that `DROPMALFORMED` skipped, as a table |
//! | `native` | how native methods are defined |
//! | [`layout`] | the memory addresses of a batch's values |
//! | [`written`], `written_entry` | a file that the JVM writes, and the native methods of `io.coldframe.spark.NativeFile` |
//! | [`rows`] | rows from the JVM as Arrow arrays |

pub mod aggregate;
mod allocator;
pub mod damage;
mod entry;
mod failure;
pub mod filter;
pub mod folders;
mod handles;
pub mod layout;
mod metered;
mod native;
pub mod notes;
pub mod plan;
pub mod reader;
pub mod rows;
pub mod stream;
mod stream_entry;
pub mod task;
pub mod types;
pub mod written;
mod written_entry;
