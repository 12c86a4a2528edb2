"""What lies in the source: its files, their tables, and what a metastore says of them."""
