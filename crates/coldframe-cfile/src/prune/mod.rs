//! Finds the blocks to read, by ordinal, by key, and with bloom filters.

pub mod blocks;
pub mod bloom;
pub mod find;
pub mod key;
pub mod walk;
