"""The result of the work: a table whose files are all in place. Delta and Iceberg describe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.records import ColumnCheck, Committed, PartitionValues, is_partition
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout
from coldframe.pipeline.sink.live import InCatalog, TableName

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
Counts = Mapping[tuple[Any, ...], int]
"""Rows by the values of the partition columns."""


@dataclass(frozen=True)
class About:
    """What the definition of a table says to people. It goes along into the catalog."""

    comment: str | None = None
    owner: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    """Of columns, by their names in lower case."""

    def commented(self, columns: Iterable[pa.Field]) -> pa.Schema:
        """Columns with their comments."""
        texts = {column.name: self.comments.get(column.name.lower()) for column in columns}
        return pa.schema(
            [
                column if texts[column.name] is None else column.with_metadata({"doc": texts[column.name]})
                for column in columns
            ]
        )


Ends = tuple[float, float] | None
"""The smallest and the largest value; None where there are none."""


@dataclass
class DataFile:
    """A file of a table."""

    final: str
    rows: int
    bytes: int
    nulls: dict[str, int]
    """By column."""
    floats: dict[str, Ends] = field(default_factory=dict)
    """The smallest and the largest value of columns of floats, of which it is known that they have no NaN."""
    nans: dict[str, int] = field(default_factory=dict)
    """How many they have, where it is known."""
    partition: PartitionValues = field(default_factory=dict)
    """Partition values of all its rows that are not in the directory's name."""


@dataclass(frozen=True)
class CommittedTable:
    """A table whose files have their final names."""

    name: str
    path: str
    """Relative to the target's root."""
    schema: pa.Schema | None
    """Of the files; None where files are only taken out of the table."""
    partitions: Sequence[pa.Field]
    entries: Iterable[Committed]
    """They are asked for more than once, and need not be in memory: there may be millions."""
    run: str = ""
    """What the run that registers it is called, and its number."""
    epoch: int = 0
    known: frozenset[str] = frozenset()
    """The files that commits of earlier runs left in the table."""
    announce: Callable[[Iterable[str], Iterable[str]], None] = lambda add, remove: None
    """Is told which files a commit adds and removes, before it is made; `committed`, when it was made."""
    committed: Callable[[], None] = lambda: None
    place: InCatalog | None = None
    """Its name in a catalog that the user named."""
    named_before: bool = False
    """Whether an earlier run gave it that name."""
    source: str = ""
    """The source that it is made of, as the catalog's mark names it."""
    about: About = field(default_factory=About)
    """What the old definition says to people."""
    layout: IcebergLayout | None = None
    """How it is laid out, where a user has said so."""

    @property
    def table_name(self) -> TableName:
        """What it is called."""
        return TableName(self.name, self.path, self.place)

    @property
    def files(self) -> Iterator[DataFile]:
        """The files, each once; for shared files, the rows of all their sources count."""
        shared: dict[str, DataFile] = {}
        for part in (part for entry in self.entries for part in entry.parts):
            columns = part.checks.get("columns", {})
            nulls = {name: int(check["nulls"]) for name, check in columns.items()}
            # Of floats, readers of a footer do not see these.
            floats = {name: _ends(check) for name, check in columns.items() if check.get("nans") == 0}
            nans = {name: check["nans"] for name, check in columns.items() if "nans" in check}
            file = DataFile(part.final, part.rows, part.bytes, nulls, floats, nans, part.partition)
            if not part.of:
                yield file
                continue
            before = shared.get(part.final)
            if before is None:
                shared[part.final] = file
                continue
            before.rows += part.rows
            for name, count in nulls.items():
                before.nulls[name] = before.nulls.get(name, 0) + count
            # Where it is unknown of one part, it is unknown of the file.
            known = before.floats.keys() & floats.keys()
            before.floats = {name: _joined(before.floats[name], floats[name]) for name in known}
            before.nans = {name: count + nans[name] for name, count in before.nans.items() if name in nans}
        yield from shared.values()

    @property
    def counts(self) -> Counts:
        """The rows that were verified, by partition."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for entry in self.entries:
            for part in entry.parts:
                texts = partition_texts(part.final)
                counts[
                    tuple(partition_value(texts.get(field.name), field.type) for field in self.partitions)
                ] += part.rows
        return counts

    def check_counts(self, actual: Counts, how: str) -> None:
        """Raises unless the table, read as `how` reads it, has the verified row counts."""
        wanted = {key: count for key, count in self.counts.items() if count}
        there = {key: count for key, count in actual.items() if count}
        if wanted == there:
            return
        wrong = [key for key in {**wanted, **there} if wanted.get(key) != there.get(key)]
        names = ", ".join(field.name for field in self.partitions)
        place = f"partition ({names}) = {wrong[0]}" if names else "the table"
        raise ColdframeError(
            f"table {self.name}: {how} reads {there.get(wrong[0], 0)} rows of {place}, verified were "
            f"{wanted.get(wrong[0], 0)}" + (f"; {len(wrong) - 1} more partitions differ" if wrong[1:] else "")
        )


def partition_texts(final: str) -> dict[str, str | None]:
    """The partition values in the directories of a file."""
    values: dict[str, str | None] = {}
    for folder in final.split("/")[:-1]:
        if is_partition(folder):
            key, _, value = folder.partition("=")
            values[unquote(key)] = None if value == HIVE_NULL else unquote(value)
    return values


def _ends(check: ColumnCheck) -> Ends:
    low, high = check.get("min"), check.get("max")
    # Infinity is a text.
    return None if low is None or high is None else (float(low), float(high))


def _joined(a: Ends, b: Ends) -> Ends:
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


def partition_value(text: str | None, kind: pa.DataType) -> Any:
    """The value of a partition column that a directory names."""
    return None if text is None else pa.scalar(text).cast(kind).as_py()
