"""The ids of the columns, and the name mapping by which readers find them in files without ids.

    columns of the table         1, 2, ..        under all names that a file has for them: id, ID
    columns of files only        after these     ids that no column of the table has, so that nobody sees them
    partition columns            no name         a file's column of that name is one of the second kind

PyIceberg refuses a file with a name that is not in the mapping, and Spark one whose name has no id.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe.pipeline.adopt.layouts import every_field
from coldframe.pipeline.adopt.records import FileField

PROPERTY = "schema.name-mapping.default"


@dataclass
class _Node:
    number: int
    names: list[str]
    parts: dict[str, _Node] = field(default_factory=dict)

    def is_called(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


class Mapping:
    """The names of all columns, those of the table first."""

    def __init__(self, schema: Any, keys: Sequence[str]) -> None:
        """`schema`: the table's in Iceberg. `keys`: the partition columns, whose names are not mapped."""
        self._begin(schema.highest_field_id)
        self._root = {
            column.name.lower(): _node(column.field_id, column.name, column.field_type)
            for column in schema.fields
            if column.name not in keys
        }

    @classmethod
    def of(cls, text: str, last: int) -> Mapping:
        """The mapping of a table that exists. `last`: the last id that the table has given out."""
        from pyiceberg.table.name_mapping import NameMapping

        mapping = cls.__new__(cls)
        mapping._begin(last)
        mapping._root = _known(NameMapping.model_validate_json(text).root)
        return mapping

    def _begin(self, last: int) -> None:
        self._fresh: Iterator[int] = itertools.count(last + 1)
        self.last = last

    def agrees(self, fields: Sequence[FileField]) -> bool:
        """Whether the ids that a file states, if any, are the table's: readers prefer them to names."""
        if all(part.id is None for part in every_field(fields)):
            return True
        return self._agrees(self._root, [(field.name, field) for field in fields])

    def _agrees(self, known: dict[str, _Node], fields: Sequence[tuple[str, FileField]]) -> bool:
        for name, column in fields:
            node = known.get(name.lower())
            # The id of a column that the table does not show could become that of a later one.
            if node is None or node.number != column.id:
                return False
            if not self._agrees(node.parts, list(zip(_labels(column), column.parts, strict=True))):
                return False
        return True

    def add(self, fields: Sequence[FileField]) -> None:
        """Adds the names of a file that stays."""
        for column in fields:
            self._add(self._root, column.name, column)

    def _add(self, known: dict[str, _Node], name: str, column: FileField) -> None:
        node = known.get(name.lower())
        if node is None:
            self.last = next(self._fresh)
            node = known[name.lower()] = _Node(self.last, [])
        node.is_called(name)
        for label, part in zip(_labels(column), column.parts, strict=True):
            self._add(node.parts, label, part)

    def show(self, fields: Sequence[Any], keys: Sequence[str]) -> None:
        """Adds columns that the table has got: names that files have for them get their ids."""
        _show(self._root, [field for field in fields if field.name not in keys])

    @property
    def names(self) -> set[str]:
        """The names of all columns that are mapped, in lower case."""
        return set(self._root)

    def to_json(self) -> str:
        """The table's property."""
        from pyiceberg.table.name_mapping import NameMapping

        return NameMapping(root=_mapped(self._root)).model_dump_json()


def _labels(column: FileField) -> list[str]:
    """The mapping's names of the parts of a column: those of elements, keys and values are fixed."""
    if pa.types.is_map(column.kind):
        return ["key", "value"]
    if pa.types.is_struct(column.kind) or pa.types.is_union(column.kind):
        return [part.name for part in column.parts]
    return ["element"] * len(column.parts)


def _node(number: int, name: str, kind: Any) -> _Node:
    parts = {part.name.lower(): _node(part.field_id, part.name, part.field_type) for part in _fields(kind)}
    return _Node(number, [name], parts)


def _show(known: dict[str, _Node], fields: Sequence[Any]) -> None:
    for column in fields:
        node = known.setdefault(column.name.lower(), _Node(column.field_id, []))
        node.number = column.field_id
        node.is_called(column.name)
        _show(node.parts, _fields(column.field_type))


def _known(fields: Sequence[Any]) -> dict[str, _Node]:
    return {
        names[0].lower(): _Node(field.field_id, names, _known(field.fields))
        for field in fields
        if (names := list(field.names))
    }


def _fields(kind: Any) -> Sequence[Any]:
    """The fields inside a type; those of lists and maps are called element, key and value."""
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return [kind.element_field]
    return [kind.key_field, kind.value_field] if isinstance(kind, MapType) else []


def _mapped(nodes: dict[str, _Node]) -> list[Any]:
    from pyiceberg.table.name_mapping import MappedField

    return [
        MappedField(**{"field-id": node.number}, names=node.names, fields=_mapped(node.parts))
        for node in nodes.values()
    ]
