//! Data directories that Kudu wrote: tables, snapshots, splits, filters, damage.
#![expect(clippy::unwrap_used, reason = "tests")]

mod damage;
mod folder;
mod pushdown;
mod tables;
