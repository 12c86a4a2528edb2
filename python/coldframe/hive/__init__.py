"""Hive's metastore: what Hive knows of its tables beside their files."""
