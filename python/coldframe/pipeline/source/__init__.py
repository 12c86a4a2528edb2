"""The source: its files, their tables, and what a metastore knows of them."""
