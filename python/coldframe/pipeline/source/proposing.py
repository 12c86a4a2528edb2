"""Proposes missing entries of tables.toml, from the content of the files."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import coldframe
from coldframe._coldframe import ColdframeError, SchemaError
from coldframe.guessing import guess_of
from coldframe.options import TYPELESS
from coldframe.pipeline.records import Json, SourceFile
from coldframe.pipeline.source.tables import Table

_SERDES = ("text", "binary")
_ROWS = 1000
"""The number of rows among which a row is searched that the two SerDes read differently."""
_LONG = 300
"""The number of characters of a row that are shown."""


def check_schemas(tables: Sequence[Table], *, tables_file: str | None) -> None:
    """Raises SchemaError with entries to add to tables.toml, if files have no types."""
    lacking = [table for table in tables if table.format in TYPELESS and "schema" not in table.options]
    if not lacking:
        return
    places = Counter(table.place for table in tables)
    where = tables_file or "a tables.toml (in the source's root, or given with --schema)"
    entries = "\n\n".join(_suggestion(table, shared=places[table.place] > 1) for table in lacking)
    raise SchemaError(
        f"{len(lacking)} table(s) are in a format that stores no column names and types. Add to {where}, "
        f"with the columns as SHOW CREATE TABLE lists them:\n\n{entries}\n\n"
        "or migrate them as they are, columns _c0, _c1 .. of binary, with --untyped."
    )


def _suggestion(table: Table, *, shared: bool) -> str:
    """An entry. `shared`: whether files of other formats are in the same place."""
    lines = [f"[tables.{_toml_key(table.name)}]"]
    if table.place != table.name:
        lines.append(f'path = "{table.place}"')
    if shared:
        lines.append(f'format = "{table.format}"')
    columns, serde, shown = "...", None, list[str]()
    # A damaged first file does not suppress the rest of the advice.
    with contextlib.suppress(ColdframeError, OSError, ValueError):
        first = table.files[0]
        opened = _open(first)
        columns = ", ".join(f"{name} string" for name in opened.schema.names)
        serde = (opened.proposal() or {}).get("serde")
        shown = _readings(first, columns)
        guess = guess_of(first.path, first.storage_options)
        if guess is not None:
            columns = guess.schema
            shown += [f"# {remark}" for remark in guess.remarks]
    lines.append(f'schema = "{columns}"')
    if serde is None:
        lines.append('serde = "?"   # "text" or "binary": the first rows do not show which')
    else:
        other = next(name for name in _SERDES if name != serde)
        lines.append(f'serde = "{serde}"   # by the first rows; or "{other}"')
    lines += shown
    names = [field.name for field in table.partition_fields]
    if names:
        lines.append(f'partitions = "{", ".join(f"{name} string" for name in names)}"')
    return "\n".join(lines)


def _open(file: SourceFile, **options: Any) -> coldframe.File:
    return coldframe.open(file.path, storage_options=file.storage_options, **options)


def _readings(file: SourceFile, schema: str) -> list[str]:
    """The first row that the two SerDes read differently (or the first row), as comments."""
    rows: dict[str, list[Json]] = {}
    for serde in _SERDES:
        # The SerDe `text` raises an error for bytes that are not text.
        with contextlib.suppress(ColdframeError):
            batch = _open(file, schema=schema, serde=serde).read(limit=_ROWS, on_error="null")
            rows[serde] = batch.to_pylist()
    pairs = list(zip(*(rows.get(serde, []) for serde in _SERDES), strict=False))
    at = next((number for number, (first, other) in enumerate(pairs) if first != other), 0)
    return [
        f"# row {at + 1:,} as {serde}: {_cut(repr(tuple(batch[at].values())))}"
        for serde, batch in rows.items()
        if len(batch) > at
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]} .."


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
