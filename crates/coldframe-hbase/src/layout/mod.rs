//! Parses bytes into plain structs. Except for `log`, no module here reads files.
//!
//! | module | holds |
//! |---|---|
//! | [`proto`] | HBase's messages, field by field |
//! | [`messages`] | files that contain one message: descriptors, region infos, references, file lists, snapshots |
//! | [`names`] | names of tables and of store files |
//! | [`policy`] | the retention settings of families |
//! | [`log`] | write-ahead logs, edit by edit |
//! | [`compressed_log`], [`dictionary`] | cells of compressed logs, and the texts that they repeat |

mod compressed_log;
mod dictionary;
pub(crate) mod log;
pub(crate) mod messages;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod proto;
