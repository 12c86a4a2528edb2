//! Turns the blocks of a split into cells and into Arrow.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | the blocks of a split, in runs |
//! | [`decode`], [`columns`] | cells as Arrow |
//! | [`binary`], [`strings`], [`names`] | a column of byte strings; plain strings; a dictionary |
//! | [`scout`] | decodes the filter's columns first |
//! | [`pivot`], [`values`], [`visible`] | a wide table; its values; the cells that delete markers leave visible |
//! | [`tally`] | compares the number of cells read with the trailer's |
//! | [`cells`] | cells one by one, without Arrow |

pub(crate) mod binary;
pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod names;
pub(crate) mod pivot;
pub(crate) mod plan;
pub(crate) mod scout;
pub(crate) mod strings;
pub(crate) mod tally;
pub(crate) mod values;
pub(crate) mod visible;
