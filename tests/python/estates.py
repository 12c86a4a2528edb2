"""Small source trees, and their migration in this process."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

import coldframe as cf
from coldframe.pipeline import migrate
from coldframe.pipeline.report import Report
from coldframe.pipeline.scheduling import InProcess


class Estate:
    """A source tree of ORC files, and where it goes."""

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
        return migrate(InProcess(), self.source, self.target, **options)

    def read(self, table: str) -> pa.Table:
        return pads.dataset(self.target / table, format="parquet", partitioning="hive").to_table()

    def files(self, table: str) -> list[Path]:
        return sorted((self.target / table).rglob("*.parquet"))

    def values(self, table: str = "t", column: str = "a") -> list[Any]:
        """What a reader of the table finds, sorted."""
        found: list[Any] = sorted(self.read(table)[column].to_pylist()) if self.files(table) else []
        return found

    def tree(self) -> dict[str, str]:
        """Every visible file of the tables, and what is in it."""
        return {
            str(path.relative_to(self.target)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.target.rglob("*.parquet"))
            if "_coldframe" not in path.parts
        }
