//! Data directories that Kudu wrote: tables, snapshots, splits, filters, logs, damage.

mod damage;
mod edit;
mod folder;
mod killed;
mod logr;
mod pushdown;
mod tables;
mod tablets;
mod unknown;
