//! Bytes to plain structs: nothing here reads a file.
//!
//! | module | holds |
//! |---|---|
//! | [`proto`] | HBase's messages, field by field |
//! | [`messages`] | files of one message: descriptors, region infos, references, file lists, snapshots |
//! | [`names`] | tables, and what the names in a family's folder say |
//! | [`policy`] | how long a family keeps what |
//! | [`log`] | write-ahead logs, edit by edit |

pub(crate) mod log;
pub(crate) mod messages;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod proto;
