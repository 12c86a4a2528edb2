//! What is in a page: its levels and its values, and how one page follows the other.

pub mod chunk;
pub mod detect;
pub mod levels;
pub mod plain;
pub mod visit;
pub mod walk;
