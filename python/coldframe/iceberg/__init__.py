"""Iceberg tables: planned by PyIceberg, their ORC files read by coldframe."""
