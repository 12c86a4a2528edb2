//! Data directories that Kudu wrote: tables, snapshots, splits, filters, damage.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod damage;
mod edit;
mod folder;
mod pushdown;
mod tables;
mod tablets;
