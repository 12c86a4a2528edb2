"""The columns of many files as those of one table, and one type for a column that files have in several.

    a.orc   id int,     name string                  id bigint
    b.orc   id bigint,  Name string,  at date   ──▶  name string
    c.orc               name string                  at date          null where a file lacks it

Columns go by name, whatever its case where that is unambiguous. Types become as wide as needed, never
narrower than a value:

    tinyint < smallint < int < bigint          the widest
    integers, decimal                          a decimal with room for both
    decimal(p,s), decimal(q,t)                 the larger scale, the larger number of digits before the point
    float < double; integers, double           double; each value is checked to be the same there
    string, binary                             binary
    struct                                     the fields of both, by their names, in the first file's order
    array, map                                 by their elements
    unsigned, large, in another unit           as Arrow widens them; a dictionary by its values

Everything else does not go together (text and numbers, decimals and doubles, instants and wall clocks): an
error that names a file for each of the two types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from coldframe.errors import SchemaError

__all__ = ["MAX_PRECISION", "Unlike", "shape_of", "unified", "wider"]

MAX_PRECISION = 38
"""Digits that a decimal holds in Hive, in Spark and in the lakehouse formats."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_INTEGERS = list(_DIGITS)


class Unlike(Exception):
    """Two types that have none in common."""


def unified(schemas: Iterable[tuple[str, Any]], *, table: str | None = None) -> Any:
    """One pyarrow.Schema for those of several files, given with their paths: the first one's columns (and
    metadata), then what the others add.

    A SchemaError names both files where a column has types that do not go together, and the `table`.
    """
    of = "" if table is None else f"table {table}: "
    fields: dict[str, tuple[Any, str]] = {}  # by name: the field so far, and a file that has it so
    metadata: Any = None
    seen: set[Any] = set()
    everywhere: set[str] = set()
    for path, schema in schemas:
        plain = schema.remove_metadata()
        if plain in seen:
            continue
        if not seen:
            metadata = schema.metadata
        _check_names(f"{of}{path}", schema)
        names = _names_in(schema, fields)
        for field, name in zip(schema, names, strict=True):
            have = fields.get(name)
            fields[name] = (field, path) if have is None else _wider_field(of, *have, field, path)
        everywhere = everywhere.intersection(names) if seen else set(names)
        seen.add(plain)
    # A file that lacks a column has nulls there, whatever the others promise.
    return pa.schema(
        [field if name in everywhere else field.with_nullable(True) for name, (field, _) in fields.items()],
        metadata=metadata,
    )


def _check_names(where: str, schema: Any) -> None:
    if len(set(schema.names)) < len(schema.names):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise SchemaError(f"{where}: columns {twice} occur twice: files are put together by name")


def _names_in(schema: Any, fields: Iterable[str]) -> list[str]:
    """The table's names for a file's columns: its own, or the one that differs in case only."""
    alike: dict[str, list[str]] = {}
    for name in fields:
        alike.setdefault(name.lower(), []).append(name)
    names = []
    for name in schema.names:
        others = alike.get(name.lower(), [])
        names.append(others[0] if len(others) == 1 and others[0] not in schema.names else name)
    return names


def _wider_field(of: str, have: Any, where: str, other: Any, path: str) -> tuple[Any, str]:
    """A column so far, and that of one more file. A later conflict is told of the file that made the type."""
    nullable = have.nullable or other.nullable
    if have.type.equals(other.type):
        return have.with_nullable(nullable), where
    try:
        wide = wider(have.type, other.type)
    except Unlike as why:
        raise SchemaError(
            f"{of}column {have.name} is {have.type} in {where} and {other.type} in {path}: {why}"
        ) from None
    return have.with_type(wide).with_nullable(nullable), where if wide.equals(have.type) else path


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds the values of both; `Unlike` where there is none."""
    t = pa.types
    if one.equals(other) and not t.is_nested(one):
        return one
    if t.is_null(one) or t.is_null(other):
        return other if t.is_null(one) else one
    if t.is_dictionary(one) or t.is_dictionary(other):
        return wider(*(kind.value_type if t.is_dictionary(kind) else kind for kind in (one, other)))
    if t.is_nested(one) or t.is_nested(other):
        return _wider_nested(one, other)
    if t.is_signed_integer(one) and t.is_signed_integer(other):
        return max(one, other, key=_INTEGERS.index)
    if t.is_floating(one) and t.is_floating(other):
        return pa.float64()
    if t.is_decimal(one) or t.is_decimal(other):
        return _wider_decimal(one, other)
    if (t.is_signed_integer(one) or t.is_floating(one)) and (
        t.is_signed_integer(other) or t.is_floating(other)
    ):
        # float holds every smallint.
        small = all(kind in (pa.int8(), pa.int16(), pa.float32()) for kind in (one, other))
        return pa.float32() if small else pa.float64()
    return _wider_by_arrow(one, other)


def _wider_by_arrow(one: Any, other: Any) -> pa.DataType:
    """What Arrow itself has for both: text and bytes, units of time, unsigned and large types."""
    pair = [pa.schema([pa.field("x", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise Unlike("no type holds the values of both") from None


def _wider_decimal(one: Any, other: Any) -> pa.DataType:
    room: list[tuple[int, int]] = []
    for kind in (one, other):
        if pa.types.is_decimal(kind):
            room.append((kind.precision - kind.scale, kind.scale))
        elif kind in _DIGITS:
            room.append((_DIGITS[kind], 0))
        else:
            raise Unlike("no type holds the values of both")
    whole, scale = (max(digits) for digits in zip(*room, strict=True))
    if whole + scale > MAX_PRECISION:
        raise Unlike(f"a decimal for both would have {whole + scale} digits, {MAX_PRECISION} are the most")
    return pa.decimal128(whole + scale, scale)


def _wider_nested(one: Any, other: Any) -> pa.DataType:
    t = pa.types
    if t.is_struct(one) and t.is_struct(other):
        fields = {field.name.lower(): field for field in one.fields}
        for field in other.fields:
            known = fields.get(field.name.lower())
            if known is None:
                fields[field.name.lower()] = field
            else:
                wide = known.with_type(wider(known.type, field.type))
                fields[field.name.lower()] = wide.with_nullable(known.nullable or field.nullable)
        if len(fields) < max(one.num_fields, other.num_fields):
            raise Unlike("fields that differ in case only, or not at all")
        both = [{field.name.lower() for field in kind.fields} for kind in (one, other)]
        return pa.struct(
            [
                field if all(name in names for names in both) else field.with_nullable(True)
                for name, field in fields.items()
            ]
        )
    if t.is_list(one) and t.is_list(other):
        element = one.value_field.with_type(wider(one.value_type, other.value_type))
        return pa.list_(element.with_nullable(one.value_field.nullable or other.value_field.nullable))
    if t.is_map(one) and t.is_map(other):
        key = wider(one.key_type, other.key_type)
        return pa.map_(
            pa.field("key", key, nullable=False), pa.field("value", wider(one.item_type, other.item_type))
        )
    raise Unlike("no type holds the values of both")


def shape_of(kind: Any) -> str:
    """A type as text, the same for structs whose fields differ in their order alone: readers go by names."""
    t = pa.types
    if t.is_struct(kind):
        fields = sorted(f"{field.name}: {shape_of(field.type)}" for field in kind.fields)
        return f"struct<{', '.join(fields)}>"
    if t.is_list(kind):
        return f"list<{shape_of(kind.value_type)}>"
    if t.is_map(kind):
        return f"map<{shape_of(kind.key_type)}, {shape_of(kind.item_type)}>"
    return str(kind)
