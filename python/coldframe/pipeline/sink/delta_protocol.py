"""Checks a commit to a Delta log against the protocol before it is made.

A program that writes a log's actions itself can produce a log that readers cannot open, or misread; deltalake
checks little of it. The checks: all checks that deltalake and Spark make when they read, and the checks that
the protocol leaves to the writer.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.sink import committed

NTZ = "timestampNtz"
FEATURES = 7
"""The writer version from which on a table names its features; the reader version is 3."""
_ASK_WRITERS = re.compile(r"delta\.(invariants|generationExpression|identity\.)")
"""Keys in a column's metadata that writers have to respect."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Adding:
    """A file that a commit adds."""

    path: str
    size: int
    values: Mapping[str, str | None]
    """The values of the partition columns."""
    rows: int
    nulls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """A commit, and the table as it will be after it."""

    schema: Mapping[str, Any]
    """The schema in the log's form."""
    partitions: Sequence[str]
    reader: int
    writer: int
    reader_features: Collection[str]
    writer_features: Collection[str]
    configuration: Mapping[str, str]
    before: Mapping[str, Any] | None
    """The schema of the previous version; None if there is no previous version."""
    present: Mapping[str, int]
    """The files of the previous version, and how many rows of each a deletion vector hides."""
    adds: Sequence[Adding]
    removes: Collection[str]


def partition_texts(final: str, fields: Sequence[pa.Field]) -> dict[str, str | None]:
    """The partition values of a file by the names of their columns, serialised as the protocol states."""
    texts = committed.partition_texts(final)
    types = {field.name: field.type for field in fields}
    return {name: _value_text(text, types.get(name, pa.string())) for name, text in texts.items()}


def _value_text(text: str | None, kind: pa.DataType) -> str | None:
    value = committed.partition_value(text, kind)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return str(pa.scalar(value, kind).cast(pa.string()).as_py())
    return str(value)


def check(commit: Commit, name: str) -> None:
    """Raises SchemaError if the commit would break the protocol."""
    wrong = list(dict.fromkeys(problems(commit)))
    if wrong:
        more = f"; and {len(wrong) - 1} more" if wrong[1:] else ""
        raise SchemaError(f"table {name}: the Delta log would break the protocol: {wrong[0]}{more}")


def problems(commit: Commit) -> Iterator[str]:
    """Messages for everything that is wrong with the commit."""
    yield from _of_columns(commit)
    yield from _of_features(commit)
    yield from _of_adds(commit)
    yield from _of_removes(commit)
    yield from _of_types(commit)


def _of_columns(commit: Commit) -> Iterator[str]:
    fields = commit.schema["fields"]
    names = Counter(str(field["name"]).lower() for field in fields)
    # Spark ignores the case of names.
    yield from (f"two columns are called {name}" for name, count in names.items() if count > 1)
    for path, inner in _structs(fields):
        twice = [name for name, count in inner.items() if count > 1]
        yield from (f"two fields of {path} are called {name}" for name in twice)
    kinds = {str(field["name"]): field["type"] for field in fields}
    for name in commit.partitions:
        if name not in kinds:
            yield f"partition column {name} is not in the schema"
        elif isinstance(kinds[name], dict):
            yield f"partition column {name} is nested"
    if len(set(commit.partitions)) < len(commit.partitions):
        yield "a partition column is named twice"
    if not kinds.keys() - set(commit.partitions):
        yield "it has no columns besides its partition columns"


def _structs(fields: Iterable[Mapping[str, Any]], path: str = "") -> Iterator[tuple[str, Counter[str]]]:
    """The structs inside columns, and how often each field name occurs in them."""
    for column in fields:
        yield from _of_type(column["type"], f"{path}{column['name']}")


def _of_type(kind: Any, path: str) -> Iterator[tuple[str, Counter[str]]]:
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        yield path, Counter(str(field["name"]).lower() for field in kind["fields"])
        yield from _structs(kind["fields"], f"{path}.")
    for inner in ("elementType", "keyType", "valueType"):
        if inner in kind:
            yield from _of_type(kind[inner], path)


def _of_features(commit: Commit) -> Iterator[str]:
    named = NTZ in commit.reader_features and NTZ in commit.writer_features
    if has_type(commit.schema, "timestamp_ntz") and not named:
        yield f"it has timestamps without a zone, but its protocol does not name the feature {NTZ}"
    if commit.writer_features and commit.writer < FEATURES:
        yield f"its protocol names writer features, but its writer version is {commit.writer}"
    if commit.reader_features and commit.reader < 3:
        yield f"its protocol names reader features, but its reader version is {commit.reader}"
    only = [column for column in commit.reader_features if column not in commit.writer_features]
    yield from (f"its protocol asks readers for {column}, and not writers" for column in only)
    if not commit.adds:
        return
    if commit.configuration.get("delta.columnMapping.mode", "none") != "none":
        yield "others have enabled column mapping: its columns have other names than those in the added files"
    if "rowTracking" in commit.writer_features:
        yield "others have enabled row tracking: each added file needs numbers for its rows"
    if any(key.startswith("delta.constraints.") for key in commit.configuration):
        yield "others have added constraints, which were not checked for the added files"
    for column in commit.schema["fields"]:
        asks = [key for key in column.get("metadata") or {} if _ASK_WRITERS.match(key)]
        if asks:
            name = column["name"]
            yield f"column {name} has {asks[0]}, which was not checked for the added files"


def _of_adds(commit: Commit) -> Iterator[str]:
    paths = Counter(add.path for add in commit.adds)
    yield from (f"it adds {path} twice" for path, count in paths.items() if count > 1)
    required = [str(add["name"]) for add in commit.schema["fields"] if not add.get("nullable", True)]
    for add in commit.adds:
        if add.path in commit.present:
            yield f"it adds {add.path}, which is there already"
        if add.path in commit.removes:
            yield f"it adds and removes {add.path}: Spark takes it for removed"
        if add.path.startswith("/") or _URL.match(add.path) or ".." in add.path.split("/"):
            yield f"it adds {add.path}, which is not a path inside the table"
        if set(add.values) != set(commit.partitions):
            given, wanted = ", ".join(add.values) or "none", ", ".join(commit.partitions) or "none"
            yield f"{add.path} has values of the partition columns {given}, the table's are {wanted}"
        if add.size < 0 or add.rows < 0:
            yield f"{add.path} has {add.size} bytes and {add.rows} rows"
        for name in required:
            if add.nulls.get(name) or (name in add.values and add.values[name] is None):
                yield f"{add.path} has nulls in column {name}, which others have forbidden"


def _of_removes(commit: Commit) -> Iterator[str]:
    for path in commit.removes:
        if path not in commit.present:
            yield f"it removes {path}, which is not there"
        elif commit.present[path]:
            # Readers would keep the file, since they identify it by its path and its deletion vector.
            yield f"it removes {path} without the deletion vector that others gave it"
    if commit.removes and commit.configuration.get("delta.appendOnly", "").lower() == "true":
        yield "it removes files, but others have made the table append-only"


def _of_types(commit: Commit) -> Iterator[str]:
    """Checks types: files that stay are read in the types of the table."""
    if commit.before is None or commit.present.keys() <= set(commit.removes):
        return
    now = {str(column["name"]): column["type"] for column in commit.schema["fields"]}
    for column in commit.before["fields"]:
        name = str(column["name"])
        if name not in now:
            yield f"column {name} is gone, but files that have it stay"
        elif now[name] != column["type"]:
            old, new = json.dumps(column["type"]), json.dumps(now[name])
            yield f"column {name} becomes {new}, but files that have it as {old} stay"


def has_type(kind: Any, name: str) -> bool:
    """Whether a schema, or a type in one, contains a type of this name."""
    if isinstance(kind, Mapping):
        return any(has_type(value, name) for key, value in kind.items() if key not in ("name", "metadata"))
    if isinstance(kind, list):
        return any(has_type(value, name) for value in kind)
    return bool(kind == name)
