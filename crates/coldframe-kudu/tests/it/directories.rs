//! Data directories that Kudu wrote: tables, snapshots, splits, filters, logs, damage.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod damage;
mod edit;
mod folder;
mod killed;
mod logr;
mod pushdown;
mod tables;
mod tablets;
mod unknown;
