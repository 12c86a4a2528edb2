"""The source: its files, their tables, and their definitions in a metastore."""
