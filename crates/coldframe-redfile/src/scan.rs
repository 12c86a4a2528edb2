//! From row groups to batches.

pub mod assemble;
pub mod decode;
pub mod leaf;
pub mod plan;
pub mod survey;
