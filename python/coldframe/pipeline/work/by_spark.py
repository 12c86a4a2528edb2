"""Directories in foreign formats, which Spark reads: written and verified like all other sources.

    Spark's rows -> JVM counts them -> Arrow -> executor: fingerprint, write, read back, compare
                          |                                          |
                          +------------- the same number ------------+

A directory is one job of the session. Its files are staged and committed like the files of any source. The
verification covers the rows that Spark read; it cannot cover content that Spark did not show.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from coldframe._coldframe import RawShape
from coldframe.errors import unsupported
from coldframe.hive.definition import PartitionDefinition
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import Failure, Outcome, StagedFile, dumps, loads
from coldframe.pipeline.scheduling import OUTCOME_SCHEMA, InProcess
from coldframe.pipeline.session import has_hive, is_alive
from coldframe.pipeline.sink.iceberg_layout import Term
from coldframe.pipeline.sink.sinks import Sink
from coldframe.pipeline.work.convert import (
    VerificationError,
    attempt,
    constant,
    discard_files,
    write_files,
)
from coldframe.pipeline.work.hive_reading import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_spark(spark: SparkSession | Callable[[], SparkSession] | InProcess) -> None:
    """Raises UnsupportedError if no session can read foreign formats."""
    if isinstance(spark, InProcess):
        raise unsupported("other formats without Spark: --others spark does not go with --master in-process")
    if not callable(spark):
        _check_hive(spark)


def _check_hive(spark: SparkSession) -> None:
    if not has_hive(spark):
        raise unsupported(
            "other formats with a Spark session without Hive support, or with Spark Connect:"
            " make it with enableHiveSupport()"
        )


@dataclass(frozen=True)
class SparkTask:
    """A directory that Spark reads."""

    key: str
    location: str
    definition: PartitionDefinition
    read: pa.Schema
    """The columns that Spark returns, under the table's names."""
    schema: pa.Schema
    """The table's columns."""
    constants: tuple[tuple[str, Any], ...]
    staged: str
    sink: Sink
    verify: bool = True
    bytes: int = 0
    file_bytes: int = 0
    divided_by: tuple[Term, ...] = ()
    """See `Task`."""
    target_options: StorageOptions = field(default=None, repr=False)

    def run(self) -> Outcome:
        """Fails: only `run_in` has a session."""
        return self.given_up("there is no Spark to read it")

    def given_up(self, reason: str) -> Outcome:
        """The outcome if Spark did not read the directory."""
        return Outcome(self.key, 0, failure=Failure(reason))

    def run_in(self, spark: SparkSession) -> Outcome:
        """Reads and writes the whole directory. Raises only if the session is lost."""
        started = time.monotonic()
        try:
            _check_hive(spark)
            outcome = self._joined(*self._run(spark))
        except Exception as error:
            if not is_alive(spark):
                raise
            outcome = self.given_up(_message(error))
        return replace(outcome, seconds=round(time.monotonic() - started, 3))

    def _run(self, spark: SparkSession) -> tuple[list[Outcome], int]:
        """The outcomes of the executors, and the number of rows that the JVM has counted."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as of

        seen = Observation(self.key)
        rows = rows_of(spark, self.definition, self.location).observe(seen, of.count(of.lit(1)).alias("rows"))
        answers = rows.mapInArrow(functools.partial(_write, self), OUTCOME_SCHEMA).collect()
        outcomes = [cast("Outcome", loads(answer.outcome)) for answer in answers]
        return outcomes, int(seen.get["rows"])

    def _joined(self, outcomes: list[Outcome], seen: int) -> Outcome:
        """The outcomes of all parts as one outcome."""
        files = tuple(file for outcome in outcomes for file in outcome.files)
        failed = next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
        rows = sum(file.rows for file in files)
        if failed is None and rows != seen:
            reason = f"VerificationError: Spark has read {seen} rows of {self.location}, {rows} were written"
            failed = Failure(reason)
        if failed is not None:
            discard_files((file.staged for file in files), self.target_options)
            return Outcome(self.key, 0, failure=failed)
        return Outcome(self.key, 0, files, rows, verified=self.verify)


def _message(error: Exception) -> str:
    """The relevant line of an error of Spark; such errors include a page of the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    message = causes[-1].removeprefix("Caused by: ") if causes else (lines or [type(error).__name__])[0]
    return f"Spark does not read it: {message[:500]}"


def _write(task: SparkTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` runs: writes the rows of a part to target files."""
    some = iter(batches)
    first = next((batch for batch in some if batch.num_rows), None)
    if first is not None:
        outcome = _written(task, chain([first], some))
        yield pa.RecordBatch.from_pydict({"outcome": [dumps(outcome)]})


def _written(task: SparkTask, batches: Iterable[pa.RecordBatch]) -> Outcome:
    written: list[str] = []
    try:
        files = _files(task, batches, written)
    except Exception as error:
        discard_files(written, task.target_options)
        return Outcome(task.key, 0, failure=Failure.of(error))
    return Outcome(task.key, 0, files, sum(file.rows for file in files), verified=task.verify)


def _files(task: SparkTask, batches: Iterable[pa.RecordBatch], written: list[str]) -> tuple[StagedFile, ...]:
    shape = RawShape(
        task.schema,
        constants={name: constant(value, task.schema.field(name).type) for name, value in task.constants},
        verify=task.verify,
    )
    counted = _Counted()
    rows = pa.RecordBatchReader.from_batches(task.read, counted.each(batches, task.read))
    staged = attempt(task.staged)
    files, _ = write_files(task, rows, shape, staged, written)
    if (count := sum(file.rows for file in files)) != counted.rows:
        raise VerificationError(f"{counted.rows} rows came from Spark, {count} were written")
    return files


class _Counted:
    """Rows as they come from Spark."""

    def __init__(self) -> None:
        self.rows = 0

    def each(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The batches in the types of a schema, whose columns are the same by position."""
        for batch in batches:
            self.rows += batch.num_rows
            columns = zip(batch.columns, schema.types, strict=True)
            # Spark's timestamps are instants, here of the wall clock in UTC: see `hive_reading`.
            cast = [column if column.type == kind else column.cast(kind) for column, kind in columns]
            yield pa.RecordBatch.from_arrays(cast, schema=schema)
