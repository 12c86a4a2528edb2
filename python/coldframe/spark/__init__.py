"""coldframe in PySpark.

    reader = spark.read.format("coldframe").option("columns", "id,name").option("filter", "id > 5")
    df = reader.load("/data/sales")

If this package is installed, Spark itself finds the formats `coldframe` (which detects the format) and
`coldframe_orc`, `_rcfile`, `_hfile`, `_cfile` and `_redfile`; `register(spark)` registers them by hand. Spark
does not pass the columns and conditions of a query to a Python source, so both are options; `read` takes them
as arguments.

With the connector's jar on the class path (`session().getOrCreate()`, or `jar()` in `spark.jars`), the format
`coldframe` is the JVM's format: Spark pushes columns, filters, limits and counts down by itself.
`coldframe_python` is always the Python source.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coldframe.iceberg.places import metadata_of_scan
from coldframe.spark.connector import is_loaded, jar, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["jar", "read", "register", "session"]

OLDEST_PYSPARK = (4, 1)
"""The oldest PySpark for which this data source works. The pipeline works from 3.3 on."""


_HIDDEN = r"^(?i:keys|storage_options)(\.|$)"
_HIDING = "spark.sql.redaction.options.regex"


def register(spark: SparkSession) -> None:
    """Registers the formats in a session that did not discover them.

    Also makes Spark hide the options `keys` and `storage_options` in plans, in its UI and in its event log.
    """
    _check_data_sources()
    from coldframe.spark.source import SOURCES

    in_jvm = is_loaded(spark)
    for source in SOURCES:
        if not (in_jvm and source.name() == "coldframe"):
            spark.dataSource.register(source)
    _hide_secrets(spark)


def _hide_secrets(spark: SparkSession) -> None:
    hidden = spark.conf.get(_HIDING) or ""
    if _HIDDEN not in hidden:
        spark.conf.set(_HIDING, f"{hidden}|{_HIDDEN}" if hidden else _HIDDEN)


def _check_data_sources() -> None:
    """Raises if PySpark is older than Python data sources that return Arrow."""
    import pyspark

    from coldframe.errors import unsupported

    installed = tuple(int(part) for part in pyspark.__version__.split(".")[:2] if part.isdigit())
    if installed < OLDEST_PYSPARK:
        wanted = ".".join(map(str, OLDEST_PYSPARK))
        raise unsupported(
            f"the Python data source in PySpark {pyspark.__version__}: it needs {wanted} or later. "
            "The connector for the JVM (`coldframe.spark.session()`) and `coldframe migrate` run on it"
        )


def read(
    spark: SparkSession,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of files as a DataFrame that reads only `columns`, and only rows that pass `filter`.

    Args:
        spark: the session.
        path: a file, a directory, a pattern, or several of them; or the directory of an Iceberg table.
        columns: names, in the order of the result; None is all of them.
        filter: a condition in SQL, such as `"dt >= '2014-01-01' and x is not null"`; it is applied exactly.
        **options: those of the Spark format (`mode`, `damage`, `split_bytes`, `batch_rows`), of the file
            format (`schema`, `serde` and so on) and of an Iceberg table (`snapshot_id`, `as_of`, `location`).
            Values that are not text are passed as JSON.
    """
    # The connector for the JVM reads files; an Iceberg table is planned and read by Python.
    is_table = metadata_of_scan(path, options.get("format"), options.get("storage_options")) is not None
    if is_loaded(spark) and not is_table:
        _hide_secrets(spark)  # the JVM's connector needs no registration, and works with older PySparks
    else:
        register(spark)
    reader = spark.read.format("coldframe_python" if is_table else "coldframe")
    for name, value in options.items():
        if value is not None:
            reader = reader.option(name, option_text(value))
    if columns is not None:
        reader = reader.option("columns", json.dumps(list(columns)))
    if filter is not None:
        reader = reader.option("filter", filter)
    if isinstance(path, str | os.PathLike):
        return reader.load(os.fspath(path))
    return reader.load([os.fspath(each) for each in path])


def option_text(value: Any) -> str:
    """An option's value as text, the only type that Spark passes on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if hasattr(value, "__arrow_c_schema__"):
        from coldframe.spark.options import encode_schema

        return encode_schema(value)
    return json.dumps(value)
