"""Commits that would break a Delta log are refused: each mutation of a good commit has its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coldframe.errors import SchemaError
from coldframe.pipeline.sink.delta_protocol import Adding, Commit, check, problems


def column(name: str, kind: Any = "long", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


FIRST = struct(column("a"), column("p", "string"))
NEXT = struct(column("a"), column("p", "string"), column("b", struct(column("x"))))
GOOD = Commit(
    schema=NEXT,
    partitions=["p"],
    reader=1,
    writer=2,
    reader_features=(),
    writer_features=(),
    configuration={},
    before=FIRST,
    present={"p=x/1": 0, "p=x/2": 0},
    adds=[Adding("p=x/3", 10, {"p": "x"}, 5, {"a": 1})],
    removes={"p=x/2"},
)


def test_a_good_commit_has_no_problems() -> None:
    assert list(problems(GOOD)) == []
    check(GOOD, "t")


def schema(*fields: dict[str, Any]) -> Callable[[Commit], Commit]:
    return lambda commit: replace(commit, schema=struct(*fields))


def adding(**change: Any) -> Callable[[Commit], Commit]:
    return lambda commit: replace(commit, adds=[replace(commit.adds[0], **change)])


def changed(**change: Any) -> Callable[[Commit], Commit]:
    return lambda commit: replace(commit, **change)


A, P = FIRST["fields"]
NTZ = column("t", {"type": "array", "elementType": "timestamp_ntz", "containsNull": True})
BAD: dict[str, tuple[Callable[[Commit], Commit], str]] = {
    "two columns of a name": (schema(A, P, column("A")), "two columns are called a"),
    "two fields of a name": (
        schema(A, P, column("s", {"type": "array", "elementType": struct(A, A)})),
        "two fields of s are called a",
    ),
    "lacks a partition column": (schema(A), "partition column p is not in the schema"),
    "nested partition column": (schema(A, column("p", struct(A))), "partition column p is nested"),
    "partition column twice": (changed(partitions=["p", "p"]), "a partition column is named twice"),
    "partitions alone": (schema(P), "no columns besides its partition columns"),
    "timestamps without the feature": (schema(A, P, NTZ), "does not name the feature timestampNtz"),
    "features of an old version": (
        changed(writer_features={"timestampNtz"}),
        "its protocol names writer features, but its writer version is 2",
    ),
    "features of old readers": (
        changed(reader_features={"v2Checkpoint"}, writer_features={"v2Checkpoint"}, writer=7),
        "its protocol names reader features, but its reader version is 1",
    ),
    "features of readers alone": (
        changed(reader_features={"v2Checkpoint"}, reader=3, writer=7),
        "asks readers for v2Checkpoint, and not writers",
    ),
    "mapped columns": (changed(configuration={"delta.columnMapping.mode": "name"}), "enabled column mapping"),
    "tracked rows": (changed(writer=7, writer_features={"rowTracking"}), "enabled row tracking"),
    "constraints": (changed(configuration={"delta.constraints.c": "a > 0"}), "added constraints"),
    "invariants": (
        schema(column("a", metadata={"delta.invariants": "{}"}), P),
        "column a has delta.invariants",
    ),
    "added twice": (lambda commit: replace(commit, adds=[*commit.adds] * 2), "it adds p=x/3 twice"),
    "added and there": (adding(path="p=x/1"), "it adds p=x/1, which is there already"),
    "added and removed": (adding(path="p=x/2"), "it adds and removes p=x/2"),
    "outside": (adding(path="../u/3"), "not a path inside the table"),
    "elsewhere": (adding(path="s3://b/3"), "not a path inside the table"),
    "no partition value": (adding(values={}), "values of the partition columns none, the table's are p"),
    "negative size": (adding(size=-1), "has -1 bytes"),
    "negative rows": (adding(rows=-1), "-1 rows"),
    "forbidden nulls": (schema(column("a", nullable=False), P), "has nulls in column a"),
    "removed and not there": (changed(removes={"p=x/9"}), "it removes p=x/9, which is not there"),
    "removed without its vector": (
        changed(present={"p=x/1": 0, "p=x/2": 3}),
        "it removes p=x/2 without the deletion vector",
    ),
    "removed while appending only": (changed(configuration={"delta.appendOnly": "true"}), "append-only"),
    "another type": (schema(column("a", "string"), P), 'column a becomes "string"'),
    "a column less": (schema(P, column("b")), "column a is gone"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_mutation_is_refused_with_its_reason(name: str) -> None:
    mutate, reason = BAD[name]
    bad = mutate(GOOD)
    reasons = list(problems(bad))
    assert [line for line in reasons if reason in line], reasons
    with pytest.raises(SchemaError, match="the Delta log would break the protocol"):
        check(bad, "t")


def test_types_may_change_where_every_file_is_replaced() -> None:
    anew = replace(GOOD, schema=struct(column("a", "string"), P), removes={"p=x/1", "p=x/2"})
    assert list(problems(anew)) == []
