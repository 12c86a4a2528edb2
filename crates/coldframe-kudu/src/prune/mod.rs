//! Finds the rows of a rowset that can pass a filter on the primary key.

pub(crate) mod rows;
