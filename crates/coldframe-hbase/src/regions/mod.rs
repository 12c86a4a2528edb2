//! The regions of a table.
//!
//! | module | holds |
//! |---|---|
//! | `alive` | which regions are alive |
//! | `doubt` | which may be, where a description is lost |
//! | `found` | what is known of a store file before it is opened |
//! | `files` | the store files of a region: which count, where they are, their order |

pub(crate) mod alive;
pub(crate) mod doubt;
pub(crate) mod files;
pub(crate) mod found;
