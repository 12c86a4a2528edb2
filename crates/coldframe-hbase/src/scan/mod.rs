//! From the store files of a region to Arrow.
//!
//! | module | holds |
//! |---|---|
//! | [`feed`] | the blocks of one store file, in the order of their rows |
//! | [`plan`] | units: ranges of rows, and of each file the blocks that may have them |
//! | [`merge`], [`heads`], [`lost`] | the cells of a unit in one order; rows that are lost |
//! | [`sight`], [`new_versions`] | which of them a reader sees |
//! | [`pivot`] | the rows of a wide table |
//! | [`mob`] | values that lie in files of their own |

pub(crate) mod feed;
mod heads;
mod lost;
pub(crate) mod merge;
pub(crate) mod mob;
pub(crate) mod new_versions;
pub(crate) mod pivot;
pub(crate) mod plan;
pub(crate) mod sight;
