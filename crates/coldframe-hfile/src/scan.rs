//! From the blocks of a split to cells and to Arrow.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | the runs of blocks of a split |
//! | [`decode`], [`columns`], [`strings`] | their cells as Arrow |
//! | [`pivot`], [`values`], [`visible`] | as a wide table; its values; which cells delete markers leave |
//! | [`tally`] | whether as many cells are read as the trailer says |
//! | [`cells`] | cells one after another, without Arrow |

pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod pivot;
pub(crate) mod plan;
pub(crate) mod strings;
pub(crate) mod tally;
pub(crate) mod values;
pub(crate) mod visible;
