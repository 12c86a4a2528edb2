//! Reads the store files of a region and returns Arrow batches.
//!
//! | module | holds |
//! |---|---|
//! | [`feed`] | the blocks of one store file, in row order |
//! | [`plan`] | units: ranges of rows, and the blocks of each file that may have them |
//! | [`merge`], [`merge_heap`], [`damaged_rows`] | merging the cells of a unit; rows with lost cells |
//! | [`visibility`], [`new_versions`] | which cells are visible |
//! | [`pivot`] | the rows of a wide table |
//! | [`mob`] | values in MOB files |

mod damaged_rows;
pub(crate) mod feed;
pub(crate) mod merge;
mod merge_heap;
pub(crate) mod mob;
pub(crate) mod new_versions;
pub(crate) mod pivot;
pub(crate) mod plan;
pub(crate) mod visibility;
