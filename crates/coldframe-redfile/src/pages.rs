//! What is in a page: its levels and its values, and how one page follows the other.

pub(crate) mod chunk;
pub(crate) mod detect;
pub(crate) mod levels;
pub(crate) mod plain;
pub(crate) mod visit;
pub(crate) mod walk;
