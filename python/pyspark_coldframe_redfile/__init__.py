"""The Spark format `coldframe_redfile`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import RedfileSource as DefaultSource

__all__ = ["DefaultSource"]
