"""Reads a target with each engine: rows by table, as plain values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
from model.tree import Keys

HOME = "_coldframe"


@dataclass(frozen=True)
class Seen:
    """A row as an engine reads it."""

    id: int
    tag: str
    v: int | None
    w: str | None
    keys: Keys


@dataclass
class Read:
    """All tables of a target."""

    tables: dict[str, list[Seen]] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    """Plain directories that Spark or Hive would not read completely or correctly, with the reason."""
    broken: dict[str, str] = field(default_factory=dict)
    """Tables that the engine cannot open."""

    @property
    def rows(self) -> list[Seen]:
        return [row for rows in self.tables.values() for row in rows]


def read(root: Path, to: str) -> Read:
    """Reads every table."""
    result = Read()
    if not root.is_dir():
        return result
    if to == "delta":
        for path in sorted(log.parent for log in root.rglob("_delta_log") if log.is_dir()):
            _read_table(result, str(path.relative_to(root)), lambda path=path: _delta(path))
    elif to == "iceberg":
        for path, table in iceberg_tables(root).items():
            _read_table(result, path, lambda table=table: _rows(table.scan().to_arrow(), ()))
    else:
        _plain(root, to, result)
    return result


def _read_table(result: Read, path: str, read: Any) -> None:
    try:
        result.tables[path] = read()
    except Exception as error:
        result.tables[path] = []
        result.broken[path] = f"{type(error).__name__}: {error}"


def delta_table(path: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(path))


def _delta(path: Path) -> list[Seen]:
    table = delta_table(path)
    return _rows(pa.table(table.to_pyarrow_table()), (), partitions=table.metadata().partition_columns)


def iceberg_tables(root: Path) -> dict[str, Any]:
    """The tables of the catalog, by their source directories."""
    from coldframe.pipeline.sink.iceberg import open_catalog

    if not (root / HOME / "iceberg.db").exists():
        return {}
    catalog = open_catalog(str(root))
    if not catalog.namespace_exists("migrated"):
        return {}
    loaded = (catalog.load_table(name) for name in catalog.list_tables("migrated"))
    return {table.properties["coldframe.source"]: table for table in loaded}


def visible(root: Path, to: str) -> list[Path]:
    """The data files that readers of plain directories find."""
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)
    ]


def _plain(root: Path, to: str, result: Read) -> None:
    """Reads plain directories by the rules of Hive and Spark: the partition begins at the first `key=value`
    directory, and all files have the same columns and partition columns.
    """
    shapes: dict[str, set[str]] = defaultdict(set)
    tables: dict[str, list[Seen]] = defaultdict(list)
    for path in visible(root, to):
        folders = path.relative_to(root).parts[:-1]
        cut = next((at for at, name in enumerate(folders) if "=" in name), len(folders))
        table, below = "/".join(folders[:cut]), folders[cut:]
        keys = tuple((key, value) for key, equals, value in (name.partition("=") for name in below) if equals)
        try:
            rows = pq.ParquetFile(path).read() if to == "parquet" else pyarrow.orc.ORCFile(str(path)).read()
        except Exception as error:
            tables[table] += []
            result.broken[table] = f"{type(error).__name__}: {error}"
            continue
        tables[table] += _rows(rows, keys)
        columns = ", ".join(f"{column.name} {column.type}" for column in rows.schema)
        shapes[table].add(f"({columns}) by ({', '.join(key for key, _ in keys)})")
        if len(keys) < len(below):
            result.odd[table] = f"{path}: a directory below a partition without `key=value`"
    for table, several in shapes.items():
        if len(several) > 1:
            result.odd[table] = f"files of different shapes: {sorted(several)}"
    for table in shapes:
        if any(other != table and other.startswith(f"{table}/") for other in shapes) and any(
            not shape.endswith("by ()") for shape in shapes[table]
        ):
            result.odd[table] = "another table lies below one with partitions"
    result.tables = dict(tables)


def _rows(table: pa.Table, keys: Keys, partitions: Iterable[str] = ()) -> list[Seen]:
    names = {name.lower(): name for name in table.schema.names}
    if "_c0" in names:
        names = {"id": "_c0", "tag": "_c1", "v": "_c2", **({"w": "_c3"} if "_c3" in names else {})}
    own = {"id", "tag", "v", "w"}
    inside = [name for name in names if name not in own and not name.startswith("_c")]
    rows = []
    for row in table.to_pylist():
        where = keys or tuple((key, _text(row[names[key]])) for key in inside if row[names[key]] is not None)
        rows.append(
            Seen(
                int(_plain_value(row[names["id"]]) or 0),
                str(_plain_value(row[names["tag"]])),
                _number(row[names["v"]]) if "v" in names else None,
                _text(row[names["w"]]) if "w" in names and row[names["w"]] is not None else None,
                tuple(sorted((key.lower(), value) for key, value in where)),
            )
        )
    return rows


def _plain_value(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _text(value: Any) -> str:
    return str(_plain_value(value))


def _number(value: Any) -> int | None:
    return None if value is None else int(re.sub(r"\.0+$", "", str(_plain_value(value))))
