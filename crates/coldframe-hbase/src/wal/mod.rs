//! The edits that only write-ahead logs hold.
//!
//! | module | holds |
//! |---|---|
//! | `edits` | the edits of a region, in memory |
//! | `index` | where the logs have edits of which region |

pub(crate) mod edits;
pub(crate) mod index;
