"""Columns that change after an adoption, as far as Iceberg's schemas can follow.

    a column is added, also in a struct      a new id; its name in files is that column from now on
    a type gets wider                        int to long, float to double, a decimal with more digits
    anything else                            refused: a dropped or renamed column, another type or partitions

Old ids stay, so that older snapshots can be read as before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coldframe.errors import SchemaError
from coldframe.pipeline.adopt.examining import Columns
from coldframe.pipeline.adopt.ledger import Ledger
from coldframe.pipeline.adopt.mapping import PROPERTY
from coldframe.pipeline.adopt.mapping import Mapping as NameMapping
from coldframe.pipeline.adopt.proof import shown_by

_AGAIN = "Adopt it into a new directory"


@dataclass(frozen=True)
class Evolution:
    """How the columns of a table differ from those of an earlier run."""

    columns: Columns
    """The table's columns, with the ids that it has or will have."""
    is_new: bool = False
    """Whether the columns have changed."""
    is_widened: bool = False
    """Whether values of columns that the table had may read otherwise now."""
    added: Collection[str] = ()

    def again(self, ledger: Ledger, current: Any) -> set[str]:
        """Data files whose sources are decoded again: those that may have values for the changed columns."""
        if not self.is_new:
            return set()
        hidden = NameMapping.of(current.properties.get(PROPERTY, "[]"), 0).names
        has_values = self.is_widened or any(name.lower() in hidden for name in self.added)
        # What a source has beside the table's columns is known only of files that stay.
        return {verdict.entry for verdict in ledger.verdicts if has_values or verdict.reason}

    def apply(self, transaction: Any) -> None:
        """Gives a transaction the new schema."""
        from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate

        if self.is_new:
            number = self.columns.schema.schema_id
            added = AddSchemaUpdate(schema=self.columns.schema)
            transaction._apply((added, SetCurrentSchemaUpdate(**{"schema-id": number})), ())


def evolution_of(ledger: Ledger, current: Any, wanted: Columns, shape: Any) -> Evolution:
    """Compares a table's columns in the source with those of the Iceberg table; SchemaError if that cannot
    follow. `shape`: the table's columns in the source now.
    """
    now = current.schema()
    if now.schema_id != ledger.schema:
        raise SchemaError(f"its columns were changed by others. {_AGAIN}")
    before: Any = ledger.shape
    if [part.name for part in current.spec().fields] != before["keys"]:
        raise SchemaError(f"its partitions were changed by others. {_AGAIN}")
    if shape == before:
        return Evolution(Columns(now, shown_by(now)))
    names, old_names = shape["columns"], before["columns"]
    keys = [before["keys"], *(old_names[key] for key in before["keys"])]
    if [shape["keys"], *(names.get(key) for key in shape["keys"])] != keys:
        raise SchemaError(f"its partition columns are other than when it was adopted. {_AGAIN}")
    if shape["by_position"] or before["by_position"]:
        raise SchemaError(f"its columns, which files match by position, have changed. {_AGAIN}")
    from pyiceberg.schema import Schema

    ids = itertools.count(current.metadata.last_column_id + 1)
    fields = _merged(now.fields, wanted.schema.fields, "", lambda: next(ids))
    number = 1 + max(schema.schema_id for schema in current.metadata.schemas)
    schema = Schema(*fields, schema_id=number)
    return Evolution(
        Columns(schema, shown_by(schema)),
        is_new=True,
        is_widened=any(names[name] != kind for name, kind in old_names.items()),
        added=tuple(name for name in names if name not in old_names),
    )


def _merged(old: Sequence[Any], new: Sequence[Any], where: str, number: Callable[[], int]) -> Iterator[Any]:
    """The fields of the source, with the ids of those that the table has."""
    from pyiceberg.types import NestedField

    known = {field.name: field for field in old}
    gone = sorted(known.keys() - {field.name for field in new})
    if gone:
        raise SchemaError(f"its column {where}{gone[0]} was dropped or renamed. {_AGAIN}")
    for field in new:
        before = known.get(field.name)
        name = f"{where}{field.name}"
        if before is None:
            yield NestedField(number(), field.name, _fresh(field.field_type, number), required=False)
        else:
            kind = _widened(before.field_type, field.field_type, name, number)
            yield NestedField(before.field_id, field.name, kind, required=False, doc=before.doc)


def _widened(old: Any, new: Any, name: str, number: Callable[[], int]) -> Any:
    from pyiceberg.types import (
        DecimalType,
        DoubleType,
        FloatType,
        IntegerType,
        ListType,
        LongType,
        MapType,
        StructType,
    )

    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(*_merged(old.fields, new.fields, f"{name}.", number))
    if isinstance(old, ListType) and isinstance(new, ListType):
        element = _widened(old.element_type, new.element_type, f"{name}.element", number)
        return ListType(old.element_id, element, element_required=False)
    if isinstance(old, MapType) and isinstance(new, MapType):
        if str(_plain(old.key_type)) != str(_plain(new.key_type)):
            raise SchemaError(f"the keys of its column {name} have another type. {_AGAIN}")
        value = _widened(old.value_type, new.value_type, f"{name}.value", number)
        return MapType(old.key_id, old.key_type, old.value_id, value, value_required=False)
    wider = ((IntegerType, LongType), (FloatType, DoubleType))
    is_wider = any(isinstance(old, less) and isinstance(new, more) for less, more in wider)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        is_wider = old.scale == new.scale and old.precision <= new.precision
    if old != new and not is_wider:
        raise SchemaError(f"its column {name} was {old} and is {new}: Iceberg does not widen that. {_AGAIN}")
    return new


def _plain(kind: Any) -> Any:
    """A type without ids that could differ."""
    return _fresh(kind, lambda: 0)


def _fresh(kind: Any, number: Callable[[], int]) -> Any:
    """A type whose parts have new ids."""
    from pyiceberg.types import ListType, MapType, NestedField, StructType

    if isinstance(kind, StructType):
        ids = [number() for _ in kind.fields]
        return StructType(
            *(
                NestedField(id, field.name, _fresh(field.field_type, number), required=False)
                for id, field in zip(ids, kind.fields, strict=True)
            )
        )
    if isinstance(kind, ListType):
        return ListType(number(), _fresh(kind.element_type, number), element_required=False)
    if isinstance(kind, MapType):
        key, value = number(), number()
        return MapType(
            key, _fresh(kind.key_type, number), value, _fresh(kind.value_type, number), value_required=False
        )
    return kind
