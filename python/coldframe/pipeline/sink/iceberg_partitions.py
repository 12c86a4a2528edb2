"""The partitions and the sort order of an Iceberg table, as its entry in tables.toml states them.

    partition spec    the newest one is for files that are added; files that stay keep theirs
    a file            lies in one partition: each term is constant in its directory, or the rows of its source
                      were divided by it, and the journal has the value
    sort order        for later writers: our files do not claim it, since their rows are as in the source

Without an entry, a table is partitioned by the keys of its directories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.errors import unsupported
from coldframe.pipeline.records import restored_value
from coldframe.pipeline.sink.committed import CommittedTable, DataFile, partition_texts
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout, SortTerm, Term
from coldframe.pipeline.sink.iceberg_terms import iceberg_type, transform_of, transformed

FILE_SIZE = "write.target-file-size-bytes"
_WRITTEN = 2
"""The newest format that PyIceberg writes."""


def settle_layout(layout: IcebergLayout, schema: pa.Schema, keys: Sequence[pa.Field]) -> IcebergLayout:
    """The layout with the exact names of columns. Raises if the table cannot have this layout.

    `keys`: the columns that are keys of directories.
    """
    if (layout.format_version or _WRITTEN) > _WRITTEN:
        raise unsupported(
            f"an Iceberg table of format version {layout.format_version}: PyIceberg writes {_WRITTEN}; leave "
            "format_version out, and have an engine upgrade the table"
        )
    if layout.sort_by is not None:
        _check_sorting()
    names = {name.lower(): name for name in schema.names}

    def name_of(given: str) -> str:
        name = given if given in schema.names else names.get(given.lower())
        if name is None:
            raise SchemaError(f"iceberg: no column {given}; there are {', '.join(schema.names)}")
        return name

    layout = layout.renamed(name_of)
    sorts = [sort.term for sort in layout.sort_by or ()]
    for terms in (layout.partition_by or (), sorts):
        _check_distinct(terms)
        for term in terms:
            _check_type(term, schema.field(term.column).type)
    constant = {field.name for field in keys}
    for term in layout.partition_by or ():
        if _field_name(term) in schema.names and term.transform != "identity":
            raise SchemaError(
                f"iceberg: partition {term}: its field would have the name of column {_field_name(term)}"
            )
        kind = schema.field(term.column).type
        if term.column not in constant and pa.types.is_floating(kind):
            # NaN has many bit patterns, and zero has two.
            raise unsupported(f"an Iceberg table with partition {term}: rows are not divided by floats")
    return layout


def _check_sorting() -> None:
    from pyiceberg.table import Transaction

    if not hasattr(Transaction, "update_sort_order"):
        raise unsupported("a sort order with this version of PyIceberg; pip install 'pyiceberg>=0.11'")


def _check_distinct(terms: Iterable[Term]) -> None:
    seen: dict[tuple[str, str], Term] = {}
    for term in terms:
        # Iceberg allows one unit of time for a column.
        kind = "time" if term.transform in ("year", "month", "day", "hour") else term.transform
        other = seen.setdefault((term.column, kind), term)
        if other is not term:
            raise SchemaError(f"iceberg: {other} and {term}: one of them is enough")


def _check_type(term: Term, kind: pa.DataType) -> None:
    type = iceberg_type(kind)
    if not transform_of(term).can_transform(type):
        raise SchemaError(f"iceberg: {term}: its column is {type}, which has no {term.transform}")


def _field_name(term: Term) -> str:
    """PyIceberg's name of a partition field."""
    name, _, number = term.transform.rstrip("]").partition("[")
    if name == "identity":
        return term.column
    kind = {"truncate": "trunc"}.get(name, name)
    return f"{term.column}_{kind}_{number}" if number else f"{term.column}_{kind}"


def terms_of(schema: Any, spec: Any) -> list[Term]:
    """The terms of a partition spec."""
    return [
        Term(str(schema.find_column_name(field.source_id)), str(field.transform)) for field in spec.fields
    ]


def bring_layout(transaction: Any, table: CommittedTable, *, anew: bool) -> None:
    """Gives the table its layout. `anew`: no earlier file stays."""
    _bring_partitions(transaction, table, anew=anew)
    layout = table.layout
    if layout is None:
        return
    if layout.sort_by is not None:
        _bring_order(transaction, layout.sort_by)
    if layout.file_bytes is not None:
        properties = {FILE_SIZE: str(layout.file_bytes)}
        if properties.items() - transaction.table_metadata.properties.items():
            transaction.set_properties(properties)


def _bring_partitions(transaction: Any, table: CommittedTable, *, anew: bool) -> None:
    """Sets the partitions: the layout's partitions or, if no earlier file stays, the directories' keys."""
    layout = table.layout
    if layout is not None and layout.partition_by is not None:
        wanted = list(layout.partition_by)
    elif anew:
        wanted = [Term(field.name) for field in table.partitions]
    else:
        return
    metadata = transaction.table_metadata
    have = dict(zip(terms_of(metadata.schema(), metadata.spec()), metadata.spec().fields, strict=True))
    if list(have) == wanted:
        return
    with transaction.update_spec() as spec:
        # Fields get the wanted order; a field that comes back gets its old id.
        kept = 0
        while kept < min(len(have), len(wanted)) and list(have)[kept] == wanted[kept]:
            kept += 1
        for term in list(have)[kept:]:
            spec.remove_field(have[term].name)
        for term in wanted[kept:]:
            spec.add_field(term.column, transform_of(term), _field_name(term))


def _bring_order(transaction: Any, sort_by: Sequence[SortTerm]) -> None:
    metadata = transaction.table_metadata
    schema, order = metadata.schema(), metadata.sort_order_by_id(metadata.default_sort_order_id)
    have = [_sort_term(schema, sort) for sort in (order.fields if order is not None else ())]
    if have == list(sort_by):
        return
    from pyiceberg.table.sorting import NullOrder

    with transaction.update_sort_order() as update:
        for sort in sort_by:
            add = update.desc if sort.is_descending else update.asc
            nulls = NullOrder.NULLS_FIRST if sort.nulls_first else NullOrder.NULLS_LAST
            add(sort.term.column, transform_of(sort.term), nulls)


def _sort_term(schema: Any, field: Any) -> SortTerm:
    from pyiceberg.table.sorting import NullOrder, SortDirection

    term = Term(str(schema.find_column_name(field.source_id)), str(field.transform))
    is_descending = field.direction == SortDirection.DESC
    return SortTerm(term, is_descending, field.null_order == NullOrder.NULLS_FIRST)


def partitions_of(metadata: Any, table: CommittedTable) -> Callable[[DataFile], Any]:
    """Returns a function that gives the partition of an added file, in the form of a manifest."""
    keys: Mapping[str, pa.DataType] = {field.name: field.type for field in table.partitions}
    terms = terms_of(metadata.schema(), metadata.spec())
    # Cached by directory: there are fewer directories than files.
    known: dict[tuple[str | None, ...], dict[Term, Any]] = {}

    def record(file: DataFile) -> Any:
        from pyiceberg.typedef import Record

        texts = partition_texts(file.final)
        directory = tuple(texts.get(name) for name in keys)
        if directory not in known:
            known[directory] = _of_directory(terms, keys, texts)
        values = known[directory]
        unknown = [term for term in terms if term not in values and str(term) not in file.partition]
        if unknown:
            raise SchemaError(
                f"table {table.name}: it is partitioned by {unknown[0]} in its catalog, but the rows of "
                f"{file.final} were not divided by that. Restore its earlier partitions, or migrate into a "
                "new directory"
            )
        return Record(
            *(values[term] if term in values else restored_value(file.partition[str(term)]) for term in terms)
        )

    return record


def _of_directory(
    terms: Sequence[Term], keys: Mapping[str, pa.DataType], texts: Mapping[str, str | None]
) -> dict[Term, Any]:
    """The values of the terms that the name of a file's directory gives."""
    values: dict[Term, Any] = {}
    for term in terms:
        if term.column in keys:
            column = pa.array([texts.get(term.column)], pa.string()).cast(keys[term.column])
            values[term] = transformed(term, column)[0].as_py()
    return values
