//! From the store files of a region to Arrow.
//!
//! | module | holds |
//! |---|---|
//! | [`feed`] | the blocks of one store file, in row order |
//! | [`plan`] | units: ranges of rows, and the blocks of each file that may have them |
//! | [`merge`], [`heads`], [`lost`] | merging the cells of a unit; lost rows |
//! | [`sight`], [`new_versions`] | which cells are visible |
//! | [`pivot`] | the rows of a wide table |
//! | [`mob`] | values in MOB files |

pub(crate) mod feed;
mod lost;
pub(crate) mod merge;
mod merge_heap;
pub(crate) mod mob;
pub(crate) mod new_versions;
pub(crate) mod pivot;
pub(crate) mod plan;
pub(crate) mod sight;
