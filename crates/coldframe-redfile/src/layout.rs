//! The bytes: the footer's structures in Thrift's compact protocol, page headers, codings of levels and integers, and
//! the layouts that share one magic.

pub(crate) mod dialect;
pub(crate) mod footer;
pub(crate) mod group_varint;
pub(crate) mod levels;
pub mod metadata;
pub(crate) mod page;
pub(crate) mod thrift;
