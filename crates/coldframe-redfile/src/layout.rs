//! Parses the bytes of a file: the footer's structures in Thrift's compact protocol, page headers, codings of
//! levels and integers, and the dialects, which share the same magic bytes.

pub(crate) mod dialect;
pub(crate) mod footer;
pub(crate) mod group_varint;
pub(crate) mod levels;
pub mod metadata;
pub(crate) mod page;
pub(crate) mod thrift;
