"""The law of salvage: for any damage, salvaged rows are rows of the file, without duplicates and without rows
of other files; missing rows are recorded or raise an error.

A row carries its number, from which all other columns follow, so that a row mixed of two is detected. The law
holds for any damage if the format has checksums. Without checksums a changed byte may be another valid value,
so the tests check the law only for truncated files, and for other damage the number of rows.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf

ROUNDS = int(os.environ.get("COLDFRAME_SALVAGE", "40"))
ROWS = 3000
Bytes = bytearray


def rows(first: int) -> pa.Table:
    ids = range(first, first + ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [None if i % 7 == 0 else f"row {i} of {first}" for i in ids],
            "half": [i / 2 for i in ids],
        }
    )


def cells(first: int) -> pa.Table:
    ids = range(first, first + ROWS)
    return pa.table(
        {"key": [f"{i:08}".encode() for i in ids], "value": [f"row {i} of {first}".encode() for i in ids]}
    )


def texts(first: int) -> pa.Table:
    return pa.table({"value": [f"row {i} of {first}" for i in range(first, first + ROWS)]})


@dataclass(frozen=True)
class Kind:
    """A format with its writer and reader, and the kinds of damage that the reader detects."""

    format: str
    table: Callable[[int], pa.Table]
    write: dict[str, Any]
    read: dict[str, Any] = field(default_factory=dict)
    has_checksums: bool = False


HIVE = {"schema": "id bigint, text string, half double"}
KINDS = {
    "orc": Kind("orc", rows, {"stripe_rows": 400, "codec": "none"}),
    "orc zstd": Kind("orc", rows, {"stripe_rows": 400, "codec": "zstd"}),
    "rcfile binary": Kind(
        "rcfile", rows, {"serde": "binary", "row_group_bytes": 20_000}, {**HIVE, "serde": "binary"}
    ),
    "rcfile text": Kind(
        "rcfile",
        rows,
        {"serde": "text", "codec": "zlib", "row_group_bytes": 20_000},
        {**HIVE, "serde": "text"},
    ),
    "redfile": Kind("redfile", rows, {"row_group_rows": 400, "page_bytes": 2000}),
    "cfile": Kind("cfile", texts, {"block_size": 4096}, {"value_type": "string"}, has_checksums=True),
    "hfile": Kind("hfile", cells, {"view": "kv", "block_size": 4096}, has_checksums=True),
}


def cut(content: Bytes, dice: random.Random) -> None:
    del content[dice.randrange(len(content)) :]


def flips(content: Bytes, dice: random.Random) -> None:
    for _ in range(dice.randrange(1, 5)):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)


def hole(content: Bytes, dice: random.Random) -> None:
    """Zeros a range of bytes, like a lost sector of a disk."""
    start = dice.randrange(len(content))
    stop = min(len(content), start + dice.choice([16, 512, 4096]))
    content[start:stop] = bytes(stop - start)


def shift(content: Bytes, dice: random.Random) -> None:
    """Removes some bytes, which shifts all later bytes."""
    start = dice.randrange(len(content))
    del content[start : start + dice.randrange(1, 600)]


def repeat(content: Bytes, dice: random.Random) -> None:
    """Duplicates a block."""
    start = dice.randrange(len(content))
    content[start:start] = content[start : start + dice.choice([512, 4096])]


DAMAGES = {"cut": cut, "flips": flips, "hole": hole, "shift": shift, "repeat": repeat}


def key_of(row: dict[str, Any]) -> Any:
    return tuple(
        sorted((name, value) for name, value in row.items() if name in ("id", "text", "half", "key", "value"))
    )


def written(kind: Kind, path: Path, first: int) -> set[Any]:
    """Writes a file and returns the keys of its rows."""
    cf.write(kind.table(first), path, format=kind.format, **kind.write)
    whole = cf.open(path, format=kind.format, **kind.read).read()
    assert whole.num_rows == ROWS
    there = {key_of(row) for row in whole.to_pylist()}
    assert len(there) == ROWS
    return there


def saved(
    path: Path, kind: Kind, on_error: str, **options: Any
) -> tuple[pa.Table, list[dict[str, Any]]] | None:
    """The rows and the recorded damage; None if the file cannot be opened or is refused."""
    try:
        file = cf.open(path, format=kind.format, **kind.read, **options)
        table = file.read(on_error=on_error)
    except cf.ColdframeError:
        return None
    table.validate(full=True)
    return table, file.damage


def law(kind: Kind, is_exact: bool, there: set[Any], table: pa.Table, damage: list[dict[str, Any]]) -> None:
    if is_exact:
        keys = [key_of(row) for row in table.to_pylist()]
        assert set(keys) <= there, f"rows that were never in the file: {sorted(set(keys) - there)[:3]}"
        assert len(keys) == len(set(keys)), "a row is duplicated"
    if kind.format == "rcfile" and is_exact:
        # The file does not store its number of row groups.
        return
    missing = ROWS - table.num_rows
    lost = [entry["rows_lost"] for entry in damage]
    if missing > 0:
        assert any(count != 0 for count in lost), f"{missing} rows are missing, on record: {damage}"
    if is_exact and None not in lost:
        assert missing == sum(lost), f"{missing} rows are missing, on record are {sum(lost)}: {damage}"


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("how", DAMAGES)
def test_saved_rows_were_in_the_file(name: str, how: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    path = tmp_path / "a.file"
    there = written(kind, path, 0)
    # The folder also has a file of the same table, and a file of another table.
    written(kind, tmp_path / "same.file", 100_000)
    cf.write(pa.table({"other": [1, 2, 3]}), tmp_path / "another.orc", format="orc")
    recover = {"recover": True, "schema_from": "same.file"}
    content = path.read_bytes()
    is_exact = kind.has_checksums or how == "cut"
    some = 0
    for seed in range(ROUNDS):
        broken = bytearray(content)
        DAMAGES[how](broken, random.Random(f"{name} {how} {seed}"))
        path.write_bytes(broken)
        plain = saved(path, kind, "raise")
        if plain is not None and is_exact:
            assert {key_of(row) for row in plain[0].to_pylist()} == there or kind.format == "rcfile", seed
        for options in [{}, recover] if kind.format == "orc" else [{}]:
            outcome = saved(path, kind, "skip", **options)
            if outcome is not None:
                some += outcome[0].num_rows > 0
                law(kind, is_exact, there, *outcome)
            if options:
                plain = saved(path, kind, "raise", **options)
                assert plain is None or not is_exact or {key_of(row) for row in plain[0].to_pylist()} == there
    # Without the footer's offsets, these formats give no clue to the data before it.
    lost = {"redfile": ("cut",), "hfile": ("cut",), "cfile": ("cut", "shift", "repeat")}
    assert some or how in lost.get(kind.format, ()), "nothing was ever salvaged"
