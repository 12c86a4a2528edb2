//! Edits that exist only in write-ahead logs.
//!
//! | module | holds |
//! |---|---|
//! | `edits` | the edits of a region, in memory |
//! | `plain_cells` | the cells of compressed logs, in memory |
//! | `index` | which log has edits of which region, and at which offsets |

pub(crate) mod edits;
pub(crate) mod index;
mod plain_cells;
