//! Hive's ACID tables: base and delta directories of ORC files.
