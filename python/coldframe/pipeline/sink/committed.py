"""A table whose files all have their final names, as Delta and Iceberg register it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import HIVE_NULL, ColdframeError, SchemaError
from coldframe.pipeline.records import ColumnCheck, Committed, PartitionValues, is_partition
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout
from coldframe.pipeline.sink.live import InCatalog, TableName

Counts = Mapping[tuple[Any, ...], int]
"""Rows by the values of the partition columns."""


@dataclass(frozen=True)
class About:
    """The comments and properties of a table's old definition, which the catalog takes over."""

    comment: str | None = None
    owner: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    """Comments of columns, by their names in lower case."""

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
"""The smallest and the largest value; None if there are no values."""


@dataclass
class DataFile:
    """A file of a table."""

    final: str
    rows: int
    bytes: int
    nulls: dict[str, int]
    """By column."""
    floats: dict[str, Ends] = field(default_factory=dict)
    """The smallest and the largest value of float columns that are known to have no NaN."""
    nans: dict[str, int] = field(default_factory=dict)
    """The number of NaNs of float columns, if known."""
    partition: PartitionValues = field(default_factory=dict)
    """Partition values that all rows of the file have, and that its directory's name does not give."""


@dataclass(frozen=True)
class CommittedTable:
    """A table whose files have their final names."""

    name: str
    path: str
    """Relative to the target's root."""
    schema: pa.Schema | None
    """The columns of the files; None if files are only removed from the table."""
    partitions: Sequence[pa.Field]
    entries: Iterable[Committed]
    """Iterated more than once. Need not be in memory, as there may be millions."""
    run: str = ""
    """The name of the run that registers the table."""
    epoch: int = 0
    """The number of the run that registers the table."""
    known: frozenset[str] = frozenset()
    """The files that commits of earlier runs left in the table."""
    announce: Callable[[Iterable[str], Iterable[str]], None] = lambda add, remove: None
    """Called before a commit, with the files that it adds and removes."""
    committed: Callable[[], None] = lambda: None
    """Called after the commit."""
    place: InCatalog | None = None
    """The table's name in a catalog that the user named."""
    named_before: bool = False
    """Whether an earlier run gave the table that name."""
    source: str = ""
    """The table's source, in the form of the catalog's mark."""
    about: About = field(default_factory=About)
    """The comments and properties of the old definition."""
    layout: IcebergLayout | None = None
    """The table's layout, if the user has stated one."""

    @property
    def table_name(self) -> TableName:
        """Its names."""
        return TableName(self.name, self.path, self.place)

    @property
    def files(self) -> Iterator[DataFile]:
        """The files, each once; a shared file has the rows of all its sources."""
        shared: dict[str, DataFile] = {}
        for part in (part for entry in self.entries for part in entry.parts):
            columns = part.checks.get("columns", {})
            nulls = {name: int(check["nulls"]) for name, check in columns.items()}
            # pyarrow does not show the bounds of floats in all footers, so the bounds of the fingerprint are
            # used.
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
            # If a value is unknown for one part, it is unknown for the file.
            known = before.floats.keys() & floats.keys()
            before.floats = {name: _joined(before.floats[name], floats[name]) for name in known}
            before.nans = {name: count + nans[name] for name, count in before.nans.items() if name in nans}
        yield from shared.values()

    def check_foreign(self, others: str, foreign: str) -> None:
        """Raises if others changed the table, and nothing may be added to it then."""
        if foreign != "append" or not self.known:
            raise SchemaError(
                f"table {self.name} was changed by others since it was migrated ({others}): it is left as it "
                "is. Migrate what is new into another directory, or add it with on_foreign_changes 'append'"
            )

    def check_replaced(self, replaced: Set[str], hidden: Mapping[str, object], how: str = "") -> None:
        """Raises if others have rewritten files that have to be replaced, or deleted rows of them.

        `hidden`: the files of the table, and whether rows of each are deleted. `how`: by what.
        """
        gone = sorted(replaced - hidden.keys())
        if gone:
            raise SchemaError(
                f"table {self.name}: {len(gone)} file(s) that have to be replaced, such as {gone[0]}, were "
                "rewritten by others: their old rows can no longer be identified"
            )
        partly = sorted(path for path in replaced if hidden[path])
        if partly:
            raise SchemaError(
                f"table {self.name}: others have deleted rows of {len(partly)} file(s) that have to be "
                f"replaced, such as {partly[0]}{how}: the new files would bring these rows back"
            )

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
        """Raises unless `actual`, the row counts of the table as `how` reads it, are the verified ones."""
        wanted, there = _by_value(self.counts), _by_value(actual)
        if wanted == there:
            return
        wrong = [key for key in {**wanted, **there} if wanted.get(key) != there.get(key)]
        names = ", ".join(field.name for field in self.partitions)
        place = f"partition ({names}) = {wrong[0]}" if names else "the table"
        raise ColdframeError(
            f"table {self.name}: {how} reads {there.get(wrong[0], 0)} rows of {place}, but "
            f"{wanted.get(wrong[0], 0)} were verified"
            + (f"; {len(wrong) - 1} more partitions differ" if wrong[1:] else "")
        )


def changed_files(known: Set[str], present: Set[str]) -> str:
    """What others changed, judged by the files: a table does not keep all of its versions."""
    if not known or known == present:
        return ""
    return f"{len(present - known)} file(s) added, {len(known - present)} taken out"


def _by_value(counts: Counts) -> Counts:
    """Numbers of rows by values that equal themselves, as NaN does not."""
    summed: Counter[tuple[Any, ...]] = Counter()
    for key, count in counts.items():
        summed[tuple("NaN" if value != value else value for value in key)] += count
    return +summed


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
    # The journal has infinity as a text, which `float` converts.
    return None if low is None or high is None else (float(low), float(high))


def _joined(a: Ends, b: Ends) -> Ends:
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


def partition_value(text: str | None, kind: pa.DataType) -> Any:
    """The value of a partition column, from the text in a directory's name."""
    return None if text is None else pa.scalar(text).cast(kind).as_py()
