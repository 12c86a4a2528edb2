//! Turns the blocks of a split into cells and into Arrow.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | dividing the blocks of a split into runs |
//! | [`decode`], [`columns`] | cells in Arrow columns |
//! | [`binary`], [`strings`], [`names`] | columns of byte strings, in plain layout, and as a dictionary |
//! | [`scout`] | decodes the filter's columns first |
//! | [`pivot`], [`values`], [`visible`] | a wide table; its values; the cells that delete markers leave visible |
//! | [`tally`] | compares the number of cells that were read with the number in the trailer |
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
