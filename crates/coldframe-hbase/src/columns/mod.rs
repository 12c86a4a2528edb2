//! The columns of a wide table: what they are called, and what their bytes mean.
//!
//! | module | holds |
//! |---|---|
//! | `wide` | what a wide table consists of |
//! | `phoenix` | row keys, qualifiers and values of tables that Phoenix wrote |
//! | `decimal` | decimal numbers as text |

pub(crate) mod decimal;
pub(crate) mod phoenix;
pub(crate) mod wide;
