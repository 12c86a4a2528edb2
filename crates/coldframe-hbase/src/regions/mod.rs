//! The regions of a table.
//!
//! | module | holds |
//! |---|---|
//! | `alive` | which regions are live |
//! | `abandoned` | regions of splits and merges that HBase gave up |
//! | `undescribed` | region folders without a description, and the regions that they may have replaced |
//! | `unopened` | store files before they are opened |
//! | `halves` | checks of the halves of files that a region reads |
//! | `files` | the store files of a region: which of them are current, where they are, their order by age |

pub(crate) mod abandoned;
pub(crate) mod alive;
pub(crate) mod files;
pub(crate) mod halves;
pub(crate) mod undescribed;
pub(crate) mod unopened;
