"""The Spark format `coldframe_hfile`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import HfileSource as DefaultSource

__all__ = ["DefaultSource"]
