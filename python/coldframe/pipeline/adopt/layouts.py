"""The metadata of a file that decides whether the file may stay."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe.errors import SchemaError
from coldframe.pipeline.adopt.records import FileField, FileLayout
from coldframe.pipeline.file_access import StorageOptions, reading
from coldframe.pipeline.sink.parquet_footer import parts_of, row_group_offsets

PARQUET = "parquet"
_PLACEHOLDER = re.compile(r"_col\d+\Z")
_INT96 = "INT96"
_ID = b"PARQUET:field_id"


def layout_of(path: str, format: str, storage_options: StorageOptions = None) -> FileLayout:
    """The layout of a file in one of Iceberg's formats."""
    return (_of_parquet if format == PARQUET else _of_ours)(path, storage_options)


@functools.lru_cache(maxsize=1024)
def _once(fields: tuple[FileField, ...]) -> tuple[FileField, ...]:
    """One object for the same columns of many files."""
    return fields


def every_field(fields: Sequence[FileField]) -> Iterator[FileField]:
    """The fields and all parts of them."""
    for field in fields:
        yield field
        yield from every_field(field.parts)


def _of_ours(path: str, storage_options: StorageOptions) -> FileLayout:
    file = coldframe.open(path, storage_options=storage_options)
    about = file.metadata
    # The types are listed in the order of the schema, each before its parts.
    kinds = iter([str(kind["kind"]) for kind in about["types"]][1:])
    fields = tuple(_ours(field.name, field.type, kinds) for field in file.schema)
    names = [field.name for field in fields]
    return FileLayout(
        _once(fields),
        tuple(int(stripe["offset"]) for stripe in about["stripes"]),
        is_by_position=bool(names) and all(_PLACEHOLDER.match(name) for name in names),
    )


def _ours(name: str, kind: pa.DataType, kinds: Iterator[str]) -> FileField:
    declared = next(kinds, None)
    if declared is None:
        raise SchemaError(f"column {name}: the file lists fewer types than it has columns")
    parts = tuple(_ours(part.name, part.type, kinds) for part in parts_of(kind))
    return FileField(name, kind, declared, parts)


def _of_parquet(path: str, storage_options: StorageOptions) -> FileLayout:
    footer = pq.read_metadata(reading(path, storage_options))
    schema = footer.schema.to_arrow_schema()
    leaves = iter([footer.schema.column(at) for at in range(len(footer.schema.names))])
    short: list[str] = []
    fields = tuple(_parquet_field(field, 1, leaves, short) for field in schema)
    return FileLayout(
        _once(fields),
        tuple(row_group_offsets(footer)),
        has_ids=any(_has_id(field) for field in schema),
        has_short_lists=bool(short),
        knows_calendar=_is_proleptic(footer),
        zone=zone_of(footer),
    )


def zone_of(footer: pq.FileMetaData) -> str:
    """The zone in which Hive 4 shows the timestamps of type INT96 of a file; empty: UTC, or not known."""
    zone = str((footer.metadata or {}).get(b"writer.time.zone", b"").decode(errors="replace"))
    leaves = (footer.schema.column(at) for at in range(len(footer.schema.names)))
    has_any = any(leaf.physical_type == _INT96 for leaf in leaves)
    return zone if has_any and zone not in ("UTC", "Etc/UTC", "Z", "GMT") else ""


def _parquet_field(field: pa.Field, depth: int, leaves: Iterator[Any], short: list[str]) -> FileField:
    """A field whose parts are `depth` names deep; lists and maps of three levels have two names each."""
    kind = field.type
    parts = parts_of(kind)
    if not parts:
        leaf = next(leaves)
        if len(leaf.path.split(".")) - _dots(leaf.path, field.name) < depth:
            short.append(leaf.path)
        return FileField(field.name, kind, _INT96 if leaf.physical_type == _INT96 else "")
    below = depth + (1 if pa.types.is_struct(kind) else 2)
    return FileField(
        field.name, kind, "", tuple(_parquet_field(part, below, leaves, short) for part in parts)
    )


def _dots(path: str, name: str) -> int:
    """Dots in the last name do not count."""
    return name.count(".") if path.endswith(name) else 0


def _has_id(field: pa.Field) -> bool:
    return _ID in (field.metadata or {}) or any(_has_id(part) for part in parts_of(field.type))


def _is_proleptic(footer: pq.FileMetaData) -> bool:
    """Whether the writer is known to count days before 1582-10-15 as Iceberg does."""
    about = footer.metadata or {}
    if about.get(b"writer.date.proleptic") == b"true":
        return True
    version = about.get(b"org.apache.spark.version", b"").split(b".")[0]
    if version.isdigit() and int(version) >= 3:
        return (
            b"org.apache.spark.legacyDateTime" not in about and b"org.apache.spark.legacyINT96" not in about
        )
    return str(footer.created_by or "").startswith("parquet-cpp")
