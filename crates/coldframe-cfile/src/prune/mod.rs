//! Which blocks a question needs: by ordinal, by key, by bloom filter.

pub mod blocks;
pub mod bloom;
pub mod find;
pub mod key;
pub mod walk;
