//! What can be had of a file whose footer is lost.

pub mod rebuild;
