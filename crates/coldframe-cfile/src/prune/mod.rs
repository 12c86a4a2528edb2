//! Finds the blocks to read: by ordinal, by key, by bloom filter.

pub mod blocks;
pub mod bloom;
pub mod find;
pub mod key;
pub mod walk;
