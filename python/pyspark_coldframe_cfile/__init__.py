"""The Spark format `coldframe_cfile`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import CfileSource as DefaultSource

__all__ = ["DefaultSource"]
