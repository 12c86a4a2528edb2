//! Edits that only write-ahead logs hold.
//!
//! | module | holds |
//! |---|---|
//! | `edits` | the edits of a region, in memory |
//! | `index` | which log holds edits of which region, and where |

pub(crate) mod edits;
pub(crate) mod index;
