"""One type for a column that files have in several: as wide as needed, never narrower than a value.

    tinyint < smallint < int < bigint          the widest
    integers, decimal                          a decimal with room for both
    decimal(p,s), decimal(q,t)                 the larger scale, the larger number of digits before the point
    float < double; integers, double           double; each value is checked to be the same there
    string, binary                             binary
    struct                                     the fields of both, by their names, in the first file's order
    array, map                                 by their elements

Everything else does not go together (text and numbers, decimals and doubles, instants and wall clocks): an
error of the table that names a file for each of the two types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import SchemaError
from coldframe.spark.types import MAX_PRECISION

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_INTEGERS = list(_DIGITS)


class Unlike(Exception):
    """Two types that have none in common."""


def unify_schemas(table: str, schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of all files: (file, its columns). Names that differ in case only are one column.

    A SchemaError names both files where a column has types that do not go together.
    """
    columns: dict[str, tuple[str, pa.DataType, str]] = {}
    for file, schema in schemas:
        for field in schema:
            folded = field.name.lower()
            known = columns.get(folded)
            if known is None:
                columns[folded] = (field.name, field.type, file)
                continue
            name, kind, first = known
            try:
                wide = wider(kind, field.type)
            except Unlike as why:
                raise SchemaError(
                    f"table {table}: column {name} is {kind} in {first} and {field.type} in {file}: {why}"
                ) from None
            # The file that a later conflict is told of is the one that made the type what it is.
            columns[folded] = (name, wide, first if wide.equals(kind) else file)
    return pa.schema([pa.field(name, kind) for name, kind, _ in columns.values()])


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds the values of both; `Unlike` where there is none. Both are plain types."""
    t = pa.types
    if one.equals(other) and not t.is_nested(one):
        return one
    if t.is_null(one) or t.is_null(other):
        return other if t.is_null(one) else one
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
    if {one, other} == {pa.string(), pa.binary()}:
        return pa.binary()
    raise Unlike("no type holds the values of both")


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
                fields[field.name.lower()] = known.with_type(wider(known.type, field.type))
        if len(fields) < max(one.num_fields, other.num_fields):
            raise Unlike("fields that differ in case only, or not at all")
        return pa.struct(list(fields.values()))
    if t.is_list(one) and t.is_list(other):
        return pa.list_(pa.field("element", wider(one.value_type, other.value_type)))
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


def with_fields(array: pa.Array, target: pa.DataType) -> pa.Array:
    """`array` with the struct fields that only other files have, as nulls, and all in the target's order.

    Types are left as they are; where the array is not of the target's kind it is given back.
    """
    t = pa.types
    found: Any = array.type
    wanted: Any = target
    if t.is_struct(found) and t.is_struct(wanted):
        return _struct_with_fields(array, wanted)
    if t.is_list(found) and t.is_list(wanted) and _differs(found.value_type, wanted.value_type):
        values = with_fields(array.values, wanted.value_type)
        return _like(array, pa.list_(found.value_field.with_type(values.type)), [values])
    if t.is_map(found) and t.is_map(wanted) and _differs(found.item_type, wanted.item_type):
        items = with_fields(array.items, wanted.item_type)
        kind = pa.map_(found.key_field, found.item_field.with_type(items.type))
        entries = pa.StructArray.from_arrays(
            [array.keys, items],
            fields=[kind.key_field, kind.item_field],
        )
        return _like(array, kind, [entries])
    return array


def _struct_with_fields(array: Any, wanted: Any) -> pa.Array:
    places = {field.name.lower(): at for at, field in enumerate(array.type)}
    fields: list[pa.Field] = []
    children: list[pa.Array] = []
    for field in wanted:
        at = places.get(field.name.lower())
        child = pa.nulls(len(array), field.type) if at is None else with_fields(array.field(at), field.type)
        children.append(child)
        fields.append(pa.field(field.name, child.type))
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _differs(found: pa.DataType, wanted: pa.DataType) -> bool:
    return pa.types.is_nested(wanted) and not found.equals(wanted)


def _like(array: pa.Array, kind: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """The same nulls and offsets over other children. (Those that pyarrow gives ignore slices.)"""
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, children)
