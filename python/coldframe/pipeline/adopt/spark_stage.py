"""A table that only Spark's proof reads: the new files, by the metadata that the adopted table will have.

If Spark cannot read all files at once, halves of them show which. A failure that has nothing to do with
single files (a store that Spark does not reach) is an error, and no reason to convert them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe.errors import ColdframeError
from coldframe.pipeline.adopt.records import Verdict
from coldframe.pipeline.adopt.rules import UNPROVED_BY_SPARK, UNREAD_BY_SPARK
from coldframe.pipeline.adopt.spark_proof import FOLDER, TABLE, Printed, SparkReader
from coldframe.pipeline.records import describe
from coldframe.pipeline.session import is_alive
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_catalog import url_of

_PROBES = 3
"""So many single files are read after a failure, before it is put down to some of the files."""


@dataclass
class Seen:
    """What Spark has read."""

    files: dict[str, Printed] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    """Files that it cannot read, with reasons."""

    def unlike(self, file: str, verdict: Verdict) -> str:
        """How the rows of a file differ from those that were decoded; empty if they do not."""
        if file in self.errors:
            return f"{UNREAD_BY_SPARK}: {self.errors[file]}"
        # A file without rows gives none to any task.
        rows, checksum = self.files.get(file, (0, verdict.checksum))
        return "" if (rows, checksum) == (verdict.rows, verdict.checksum) else UNPROVED_BY_SPARK


@dataclass
class Stage:
    """A folder of the target for the table."""

    destination: Destination
    folder: str
    """Its name below the target's root."""
    io: Any
    """PyIceberg's access to the files."""

    def read(
        self, spark: SparkReader, make: Callable[[], Any], entries: Sequence[Any], shown: pa.Schema
    ) -> Seen:
        """What Spark reads from the files of some entries. `make`: begins a transaction of the table."""
        seen = Seen()
        try:
            seen.files = self._read(spark, make, entries, shown)
        except Exception as error:
            self._check(spark, error)
            probes = [self._fails(spark, make, [entry], shown) for entry in entries[:_PROBES]]
            if all(probes):
                raise ColdframeError(
                    f"{spark.label} reads none of its files: {entries[0].file_path}: {probes[0]}"
                ) from error
            self._halves(spark, make, entries, shown, seen)
        return seen

    def _halves(
        self,
        spark: SparkReader,
        make: Callable[[], Any],
        entries: Sequence[Any],
        shown: pa.Schema,
        seen: Seen,
    ) -> None:
        middle = len(entries) // 2
        for half in (entries[:middle], entries[middle:]):
            try:
                seen.files.update(self._read(spark, make, half, shown))
            except Exception as error:
                self._check(spark, error)
                if len(half) > 1:
                    self._halves(spark, make, half, shown, seen)
                else:
                    seen.errors[half[0].file_path] = _short(error)

    def _fails(
        self, spark: SparkReader, make: Callable[[], Any], entries: Sequence[Any], shown: pa.Schema
    ) -> str:
        try:
            self._read(spark, make, entries, shown)
        except Exception as error:
            self._check(spark, error)
            return _short(error)
        return ""

    def _check(self, spark: SparkReader, error: Exception) -> None:
        if not is_alive(spark.spark):
            raise ColdframeError(f"the JVM of {spark.label} has died: {_short(error)}") from error

    def _read(
        self, spark: SparkReader, make: Callable[[], Any], entries: Sequence[Any], shown: pa.Schema
    ) -> dict[str, Printed]:
        from coldframe.pipeline.adopt.manifests import add_snapshot, discard

        transaction = make()
        place = f"{self.folder}/{FOLDER}/{TABLE}/metadata"
        names = (f"{place}/v1.metadata.json", f"{place}/version-hint.text")
        try:
            add_snapshot(transaction, transaction._table.io, entries, (), is_alone=True)
            for name, content in zip(names, (_text_of(transaction.table_metadata), b"1"), strict=True):
                self.destination.write(name, content)
            return spark.rows_of(f"{url_of(self.destination)}{self.folder}", shown)
        finally:
            for name in names:
                self.destination.delete(name)
            self.destination.prune(self.folder)
            discard(transaction)


def _text_of(metadata: Any) -> bytes:
    """The metadata of a transaction. That of a new table has its first schema twice: before the transaction's
    changes, and as a change.
    """
    content = metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    ids = {"schemas": "schema-id", "partition-specs": "spec-id", "sort-orders": "order-id"}
    for parts, number in ids.items():
        content[parts] = list({part[number]: part for part in content[parts]}.values())
    return json.dumps(content).encode()


def _short(error: Exception) -> str:
    """The cause of Spark's error, in a line."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else describe(error).partition("\n")[0]
