"""The Spark format `coldframe_orc`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import OrcSource as DefaultSource

__all__ = ["DefaultSource"]
