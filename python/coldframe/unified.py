"""The columns of many files as those of one table.

    a.orc   id int,     name string                  id bigint
    b.orc   id bigint,  Name string,  at date   ──▶  name string
    c.orc               name string                  at date          null where a file lacks it

By name, whatever its case where that is unambiguous; types as wide as needed. Types that no
type holds both of are an error that names the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coldframe.errors import SchemaError

__all__ = ["unified"]


def unified(schemas: Sequence[tuple[str, Any]]) -> Any:
    """One pyarrow.Schema for those of several files, given with their paths: the first one's columns, then
    what the others add.
    """
    fields: dict[str, tuple[Any, str]] = {}  # by name: the field so far, and a file that has it so
    _, first = schemas[0]
    seen: set[Any] = set()
    for path, schema in schemas:
        if (plain := schema.remove_metadata()) in seen:
            continue
        seen.add(plain)
        _check_names(path, schema)
        known = _by_folded_name(fields)
        for field in schema:
            name = field.name if field.name in fields else known.get(field.name.lower(), field.name)
            if name not in fields:
                fields[name] = (field, path)
                continue
            have, where = fields[name]
            wide = _wider(have, field.with_name(name), where, path)
            fields[name] = (wide, where if wide.type.equals(have.type) else path)
    whole = pa.schema([field for field, _ in fields.values()])
    return whole.with_metadata(first.metadata)


def _check_names(path: str, schema: Any) -> None:
    if len(set(schema.names)) < len(schema.names):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise SchemaError(f"{path}: columns {twice} occur twice: files are put together by name")


def _by_folded_name(fields: dict[str, Any]) -> dict[str, str]:
    """Names by their lower case, where only one has it."""
    alike: dict[str, list[str]] = {}
    for name in fields:
        alike.setdefault(name.lower(), []).append(name)
    return {folded: names[0] for folded, names in alike.items() if len(names) == 1}


def _wider(have: Any, other: Any, where: str, path: str) -> Any:
    if have.type.equals(other.type):
        return have.with_nullable(have.nullable or other.nullable)
    pair = [pa.schema([field.remove_metadata()]) for field in (have, other)]
    try:
        wide = pa.unify_schemas(pair, promote_options="permissive").field(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise SchemaError(
            f"column {have.name!r} is {have.type} in {where}, and {other.type} in {path}: no type holds both"
        ) from reason
    return wide.with_metadata(have.metadata)
