"""The Spark format `coldframe_rcfile`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import RcfileSource as DefaultSource

__all__ = ["DefaultSource"]
