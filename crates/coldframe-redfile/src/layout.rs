//! What stands in the bytes: the footer's structures in Thrift's compact protocol, page headers, codings of levels and
//! integers, and the layouts that share one magic.

pub mod dialect;
pub mod footer;
pub mod group_varint;
pub mod levels;
pub mod metadata;
pub mod page;
pub mod thrift;
