"""The target of a migration: files, and the Delta and Iceberg tables over them."""
