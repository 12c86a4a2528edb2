//! The regions of a table.
//!
//! | module | holds |
//! |---|---|
//! | `alive` | which regions are live |
//! | `doubt` | which regions may be live, if a description is lost |
//! | `found` | facts about a store file that are known before it is opened |
//! | `files` | the store files of a region: which ones count, where they are, their order |

pub(crate) mod alive;
pub(crate) mod doubt;
pub(crate) mod files;
pub(crate) mod found;
