"""The columns of an Iceberg table: the columns of the files that are in it after a commit.

If a commit replaces all files, columns may change their types, and columns that no file has are dropped.
Parquet files have the ids of their fields; for ORC, the table's name mapping gives the id of a file's
column, for all snapshots alike. If a column with a new type got a new id, its name would no longer map to
the old id, and older snapshots, which are read with their own schemas, would have nulls. So a column keeps
its id, even if it was dropped and comes back; new parts of it (a struct in place of bytes) get ids that were
never used.

    schema 0   1: a string      snapshots of then     ┐
    schema 1   1: a timestamp   snapshots from now on ┴ mapping: a is 1
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.spark.types import plain_type
from coldframe.widening import shape_of

_MAPPING = "schema.name-mapping.default"


def bring_columns(transaction: Any, current: Any, name: str, schema: pa.Schema, *, anew: bool) -> None:
    """Gives the table the columns of its files. `anew`: no earlier file stays."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    have = {field.name: _shape(field.type) for field in schema_to_pyarrow(current.schema())}
    wanted = {field.name: _shape(field.type) for field in schema}
    if anew:
        if have != wanted:
            _set_columns(transaction, current, name, schema, stay=False)
        return
    new = wanted.keys() - have.keys()
    if not new:
        return
    _set_columns(transaction, current, name, pa.schema([f for f in schema if f.name in new]), stay=True)


def ids_of_columns(current: Any, schema: pa.Schema) -> Iterator[int]:
    """The ids that columns have, or will get, in a table; None: a new table. Nested ids follow their
    field's.
    """
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    wanted = _pyarrow_to_schema_without_ids(schema)
    fields: Iterable[Any]
    if current is None:
        fields = assign_fresh_schema_ids(wanted).fields
    else:
        ids = _ids_of(current)
        fields = ids.assign(wanted.fields, ids.root)
    for column in fields:
        yield column.field_id
        yield from nested_ids(column.field_type)


def nested_ids(kind: Any) -> Iterator[int]:
    """The ids inside a type."""
    from pyiceberg.types import ListType, MapType, StructType

    inside: list[tuple[int, Any]] = []
    if isinstance(kind, StructType):
        inside = [(column.field_id, column.field_type) for column in kind.fields]
    elif isinstance(kind, ListType):
        inside = [(kind.element_id, kind.element_type)]
    elif isinstance(kind, MapType):
        inside = [(kind.key_id, kind.key_type), (kind.value_id, kind.value_type)]
    for number, part in inside:
        yield number
        yield from nested_ids(part)


def _ids_of(current: Any) -> _Ids:
    """The ids of all names that the table has ever had."""
    from pyiceberg.table.name_mapping import create_mapping_from_schema

    mapping = current.metadata.name_mapping() or create_mapping_from_schema(current.schema())
    return _Ids(mapping.root, current.metadata.last_column_id)


def _shape(kind: pa.DataType) -> str:
    """A type in Iceberg's terms, which has no integers below 32 bits."""
    return re.sub(r"\bint(8|16)\b", "int32", shape_of(plain_type(kind)))


def _set_columns(transaction: Any, current: Any, name: str, schema: pa.Schema, *, stay: bool) -> None:
    """Sets the table's columns.

    `stay`: the table's other columns are kept, in front of these, and not dropped.
    """
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import Schema
    from pyiceberg.table.name_mapping import NameMapping
    from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, SetCurrentSchemaUpdate

    metadata = current.metadata
    before = current.schema()
    ids = _ids_of(current)
    wanted = {field.name: field for field in _pyarrow_to_schema_without_ids(pa.schema(schema)).fields}
    others = [field for field in before.fields if stay and field.name not in wanted]
    fields = [*others, *ids.assign(wanted.values(), ids.root)]
    _check_partitions(current, name, fields)
    number = 1 + max(version.schema_id for version in metadata.schemas)
    transaction.set_properties({_MAPPING: NameMapping(root=ids.mapped(ids.root)).model_dump_json()})
    transaction._apply(
        (
            AddSchemaUpdate(schema=Schema(*fields, schema_id=number)),
            SetCurrentSchemaUpdate(**{"schema-id": number}),
        ),
        (AssertCurrentSchemaId(**{"current-schema-id": before.schema_id}),),
    )


def _check_partitions(current: Any, name: str, fields: list[Any]) -> None:
    """Raises if partition columns change: older manifests have partition values in the old type."""
    types = {field.field_id: field for field in fields}
    for part in current.spec().fields:
        now = types.get(part.source_id)
        if now is None:
            raise SchemaError(
                f"table {name}: no file has the column of its partition field {part.name}. Migrate into a "
                "new directory"
            )
        if now.field_type != current.schema().find_type(part.source_id):
            raise SchemaError(
                f"table {name}: partition column {now.name} becomes {now.field_type}, but Iceberg cannot "
                "change the type of a column by which older versions are partitioned. Migrate into a new "
                "directory"
            )


class _Node:
    """A name of the mapping: its id, and the names of its fields."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.inside: dict[str, _Node] = {}


class _Ids:
    """The ids of all names that the table has ever had."""

    def __init__(self, mapping: Any, last: int) -> None:
        self._fresh: Iterator[int] = itertools.count(last + 1)
        self.root = self._known(mapping)

    def _known(self, mapping: Any) -> dict[str, _Node]:
        nodes: dict[str, _Node] = {}
        for field in mapping:
            if field.field_id is None:
                continue
            for name in field.names:
                node = nodes[name] = _Node(field.field_id)
                node.inside = self._known(field.fields)
        return nodes

    def mapped(self, names: dict[str, _Node]) -> list[Any]:
        """The mapping, including new names."""
        from pyiceberg.table.name_mapping import MappedField

        return [
            MappedField(**{"field-id": node.number}, names=[name], fields=self.mapped(node.inside))
            for name, node in names.items()
        ]

    def assign(self, fields: Any, names: dict[str, _Node]) -> list[Any]:
        """Fields with the ids of their names."""
        from pyiceberg.types import NestedField

        assigned = []
        for field in fields:
            node = self._node(names, field.name)
            kind = self._type(field.field_type, node.inside)
            assigned.append(
                NestedField(node.number, field.name, kind, required=field.required, doc=field.doc)
            )
        return assigned

    def _node(self, names: dict[str, _Node], name: str) -> _Node:
        if name not in names:
            names[name] = _Node(next(self._fresh))
        return names[name]

    def _type(self, kind: Any, names: dict[str, _Node]) -> Any:
        from pyiceberg.types import ListType, MapType, StructType

        if isinstance(kind, StructType):
            return StructType(*self.assign(kind.fields, names))
        if isinstance(kind, ListType):
            node = self._node(names, "element")
            return ListType(node.number, self._type(kind.element_type, node.inside), kind.element_required)
        if isinstance(kind, MapType):
            key, value = self._node(names, "key"), self._node(names, "value")
            return MapType(
                key.number,
                self._type(kind.key_type, key.inside),
                value.number,
                self._type(kind.value_type, value.inside),
                kind.value_required,
            )
        return kind
