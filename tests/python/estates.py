"""Small source trees and their migration in this process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import coldframe as cf
from coldframe.file import Split, raw_scan
from coldframe.pipeline import migrate
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.scheduling import InProcess


class Estate:
    """A source tree of ORC files, and its target."""

    def __init__(self, root: Path) -> None:
        self.source, self.target = root / "src", root / "dst"
        self.source.mkdir(parents=True, exist_ok=True)

    def orc(self, name: str, rows: Any, schema: pa.Schema | None = None) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = rows if isinstance(rows, pa.Table) else pa.table(rows, schema=schema)
        cf.write(table, path, format="orc")
        return path

    def rc(self, name: str, rows: dict[str, Any]) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cf.write(pa.table(rows), path, format="rcfile", serde="binary")
        return path

    def migrate(self, **options: Any) -> Report:
        """Migrates. By default, sources that are gone or changed are taken for Hive's work."""
        given = {"archived_rows": "drop", **options}
        return migrate(InProcess(), self.source, self.target, **given)

    def read(self, table: str) -> pa.Table:
        return pads.dataset(self.target / table, format="parquet", partitioning="hive").to_table()

    def files(self, table: str) -> list[Path]:
        return sorted((self.target / table).rglob("*.parquet"))

    def values(self, table: str = "t", column: str = "a") -> list[Any]:
        """The values that a reader of the table gets, sorted."""
        values: list[Any] = sorted(self.read(table)[column].to_pylist()) if self.files(table) else []
        return values

    def safe(self) -> list[str]:
        """The sources that the last run listed as safe to delete."""
        listed = safe_list.read(str(self.target / "_coldframe/safe-to-delete.txt"))
        assert listed.is_whole
        return [line.path for line in listed.lines]

    def unchain(self) -> None:
        """Makes the journal one without a chain, whose segments may be changed."""
        home = self.target / "_coldframe"
        for path in (home / "state").iterdir():
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            lines[0].pop("after", None)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        (home / "head.json").unlink()

    def tree(self) -> dict[str, str]:
        """Every visible file of the tables, with its content."""
        return {
            str(path.relative_to(self.target)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.target.rglob("*.parquet"))
            if "_coldframe" not in path.parts
        }


class Scan:
    """Rows in the shape of a core scan: a stream, and the damage."""

    def __init__(self, rows: pa.RecordBatchReader, damage: Callable[[], list[dict[str, Any]]]) -> None:
        self._rows, self.damage = rows, damage

    def passed_over(self) -> dict[str, int]:
        return {}

    def changes(self) -> dict[str, int]:
        return {}

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def changed(rows: Any, change: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]) -> Scan:
    """The rows of a scan, with its batches passed through `change`."""
    reader = pa.RecordBatchReader.from_stream(rows)
    return Scan(pa.RecordBatchReader.from_batches(reader.schema, iter(change(reader))), rows.damage)


def scanning(
    change: Callable[[Split, Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    damage: Sequence[dict[str, Any]] = (),
) -> Callable[..., Scan]:
    """Replaces `raw_scan` by a faulty reader: `change` alters the batches of a split."""

    def scan(split: Split, **named: Any) -> Scan:
        rows = changed(raw_scan(split, **named), lambda batches: change(split, batches))
        if damage:
            rows.damage = lambda: list(damage)
        return rows

    return scan


def torn(ending: str) -> Callable[..., Scan]:
    """Replaces `raw_scan` by a reader that fails on paths with this ending."""

    def fail(split: Split, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        if split.path.endswith(ending):
            raise OSError(5, "Input/output error", split.path)
        return batches

    return scanning(fail)


def rewritten(path: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replaces a written file by a changed file."""
    pq.write_table(change(pq.read_table(path)), path, write_page_checksum=True)
