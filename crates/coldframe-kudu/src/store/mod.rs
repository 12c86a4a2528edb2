//! How a server stores its files: directories, encryption, blocks by their ids.

pub(crate) mod blocks;
pub(crate) mod crypt;
pub(crate) mod logr;
pub(crate) mod rocks;
pub(crate) mod roots;
pub(crate) mod segments;
