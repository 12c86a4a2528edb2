//! The contents of a page: its levels and its values, and the sequence of pages.

pub(crate) mod chunk;
pub(crate) mod detect;
pub(crate) mod levels;
pub(crate) mod plain;
pub(crate) mod visit;
pub(crate) mod walk;
