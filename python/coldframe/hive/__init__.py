"""Hive's metastore: the definitions of tables."""
