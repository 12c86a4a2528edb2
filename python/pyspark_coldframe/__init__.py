"""The Spark format `coldframe`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import ColdframeSource as DefaultSource

__all__ = ["DefaultSource"]
