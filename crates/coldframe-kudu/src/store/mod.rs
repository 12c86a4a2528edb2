//! Where a server keeps its files, and how they are stored: directories, encryption, blocks by their numbers.

pub(crate) mod blocks;
pub(crate) mod crypt;
pub(crate) mod logr;
pub(crate) mod rocks;
pub(crate) mod roots;
pub(crate) mod segments;
