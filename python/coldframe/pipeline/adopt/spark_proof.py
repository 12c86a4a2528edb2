"""What Spark with Iceberg reads from the new files of a table, before anybody sees it: `--prove spark`.

    stage     DST/_coldframe/adopted/NAME/RUN.proof    the table as it will be, with the new files only, as a
                                                       table of a Hadoop catalog
    tasks     each fingerprints the rows that it gets, file by file
    driver    adds up the fingerprints of each file

The session must have Iceberg's runtime, and executors need coldframe, as for a migration by Spark.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import RawFingerprint
from coldframe.errors import ColdframeError, unsupported
from coldframe.pipeline.adopt.proof import as_shown, checksum_of
from coldframe.pipeline.records import describe
from coldframe.pipeline.sink.sinks import in_types_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "_file"
"""Iceberg's metadata column with the path of a row's file."""
_PRINTS = "file string, rows long, print string"
_WORD = (1 << 64) - 1
FOLDER, TABLE = "proof", "t"
"""The staged table's namespace and name."""
Printed = tuple[int, str]
"""The number of rows of a file, and their checksum."""


@dataclass
class SparkReader:
    """A Spark session with Iceberg."""

    start: Callable[[], SparkSession]
    _spark: Any = field(default=None, repr=False)

    @property
    def spark(self) -> Any:
        """The session, started when it is first used; raises UnsupportedError without Iceberg's runtime."""
        if self._spark is None:
            spark = self.start()
            with _catalog(spark, "file:///coldframe/proof") as name:
                try:
                    # The catalog's class is loaded when the catalog is first used.
                    spark.catalog.tableExists(f"{name}.{FOLDER}.{TABLE}")
                except Exception as error:
                    raise _without_iceberg(spark, error) from error
            _check_workers(spark)
            self._spark = spark
        return self._spark

    @property
    def label(self) -> str:
        """The engine's name in reports."""
        return f"Spark {self.spark.version} with Iceberg"

    def rows_of(self, folder: str, shown: pa.Schema) -> dict[str, Printed]:
        """What Spark reads of each file of the table that is staged in a folder, in the columns `shown`."""
        columns = shown.serialize().to_pybytes()
        with _catalog(self.spark, folder) as name:
            table = self.spark.table(f"{name}.{FOLDER}.{TABLE}")
            # `mapInArrow` takes a dot in a name for a part of a struct.
            selected = [
                table["`" + column.replace("`", "``") + "`"].alias(f"c{at}")
                for at, column in enumerate(shown.names)
            ]
            frame = table.select(*selected, table[_FILE])
            prints = frame.mapInArrow(partial(_prints, columns), _PRINTS).collect()
        return _summed(prints)


def reader_of(spark: SparkSession | Callable[[], SparkSession]) -> SparkReader:
    """A reader with a session, or with a function that starts one."""
    if callable(spark):
        return SparkReader(spark)
    session = spark
    return SparkReader(lambda: session)


def _check_workers(spark: Any) -> None:
    """Raises if Spark's workers cannot fingerprint rows: then every file would seem to be unreadable."""
    shown = pa.schema([pa.field("id", pa.int64())])
    frame = spark.range(1).selectExpr("id", "'none' as file")
    try:
        frame.mapInArrow(partial(_prints, shown.serialize().to_pybytes()), _PRINTS).collect()
    except Exception as error:
        why = last_line(error)
        raise ColdframeError(f"proof by Spark: its workers cannot run coldframe: {why}") from error


def last_line(error: Exception) -> str:
    """The last line of an error of Spark's, which names the cause after traces of calls."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else describe(error)


@contextlib.contextmanager
def _catalog(spark: Any, folder: str) -> Iterator[str]:
    """A Hadoop catalog over a folder, under a name of its own: a session keeps the catalogs that it has
    opened.
    """
    name = f"coldframe_{uuid.uuid4().hex}"
    key = f"spark.sql.catalog.{name}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".cache-enabled": "false"}
    settings[".warehouse"] = folder
    for part, value in settings.items():
        spark.conf.set(key + part, value)
    try:
        yield name
    finally:
        for part in settings:
            spark.conf.unset(key + part)


def _without_iceberg(spark: Any, error: Exception) -> Exception:
    text = str(error)
    if "org.apache.iceberg.spark.SparkCatalog" not in text:
        return ColdframeError(f"proof by Spark: {describe(error)}")
    version = ".".join(str(spark.version).split(".")[:2])
    return unsupported(
        f"a proof by Spark {spark.version} without Iceberg: give it the runtime "
        f"org.apache.iceberg:iceberg-spark-runtime-{version}_2.13 (2.12 for Spark built with Scala 2.12) by "
        "spark.jars or spark.jars.packages, in Spark's configuration or with --spark-conf"
    )


def _prints(columns: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The fingerprints of a task's rows, one for each file. Runs in Spark's workers."""
    shown = pa.ipc.read_schema(pa.py_buffer(columns))
    prints: dict[str, RawFingerprint] = {}
    for batch in batches:
        rows = pa.RecordBatch.from_arrays(batch.columns[:-1], names=shown.names)
        files = batch.column(len(shown))
        for file in pc.unique(files).to_pylist():
            mine = rows.filter(pc.equal(files, file))
            print = prints.setdefault(file, RawFingerprint(shown, rows_only=True))
            print.add(as_shown(in_types_of(shown, mine)))
    yield pa.RecordBatch.from_pydict(
        {
            "file": pa.array(prints, pa.string()),
            "rows": pa.array([print.rows for print in prints.values()], pa.int64()),
            "print": pa.array([checksum_of(print) for print in prints.values()], pa.string()),
        }
    )


def _summed(prints: Sequence[Any]) -> dict[str, Printed]:
    """Fingerprints of the parts of files, added up: each is two sums of 64 bits."""
    rows: Counter[str] = Counter()
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for part in prints:
        rows[part.file] += part.rows
        first[part.file] += int(part.print[:16], 16)
        second[part.file] += int(part.print[16:], 16)
    return {
        file: (count, f"{first[file] & _WORD:016x}{second[file] & _WORD:016x}")
        for file, count in rows.items()
    }
