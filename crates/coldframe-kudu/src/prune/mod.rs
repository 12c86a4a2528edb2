//! Which rows of a rowset can pass a filter on the primary key.

pub(crate) mod rows;
