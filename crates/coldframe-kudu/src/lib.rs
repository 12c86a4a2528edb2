//! Kudu tables: many CFiles that are one thing.
