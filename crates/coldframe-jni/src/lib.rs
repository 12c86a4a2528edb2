//! What the Spark connector for the JVM (`jvm/`) is made of: planning and decoding, called over JNI.
//!
//! ```text
//! driver     ColdframeTable ──open──▶ plan::Table     options, schema, which filters are taken, plan of tasks as bytes
//! executor   ColdframeReader ──read──▶ reader::Reader ──next──▶ addresses of a batch's buffers, until it is released
//! ```
//!
//! No rule of a format and no rule of planning is here: [`plan`] asks `coldframe::dataset`, and `coldframe::load` reads the options.
//! What is here is Spark's: its types, its filters, its words for damage.
//!
//! | module | holds |
//! |---|---|
//! | `entry` | the native methods of `io.coldframe.spark.Native`; no panic leaves them |
//! | `failure` | errors as Java exceptions |
//! | `handles` | what Java holds by number |
//! | [`types`] | Spark's types for Arrow's, and its JSON |
//! | [`folders`] | the files of a Hive metastore's table |
//! | [`filter`] | Spark's predicates as ours, where both mean the same rows |
//! | [`aggregate`] | `count`, `min` and `max` of a task |
//! | [`plan`] | a table, and its plan |
//! | [`stream`], `stream_entry` | new files batch by batch, and the native methods of `io.coldframe.spark.NativeStream` |
//! | [`task`] | what travels to an executor |
//! | [`reader`] | the batches of a task |
//! | `metered` | how many bytes a task reads |
//! | [`damage`] | what `DROPMALFORMED` left out, as a table |
//! | [`layout`] | where a batch's values stand in memory |

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
pub mod plan;
pub mod reader;
pub mod stream;
mod stream_entry;
pub mod task;
pub mod types;
