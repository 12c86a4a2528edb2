//! The columns of a wide table: their names, and how their bytes become values.
//!
//! | module | holds |
//! |---|---|
//! | `wide` | the columns of a wide table |
//! | `phoenix` | row keys, qualifiers and values of tables that Phoenix wrote |
//! | `decimal` | decimal numbers as text |

pub(crate) mod decimal;
pub(crate) mod phoenix;
pub(crate) mod wide;
