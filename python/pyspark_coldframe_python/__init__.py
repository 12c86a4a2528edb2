"""The Spark format `coldframe_python`: Spark registers the `DefaultSource` of each `pyspark_*` module."""

from coldframe.spark.source import PythonSource as DefaultSource

__all__ = ["DefaultSource"]
