"""An estate of ORC and Parquet files for tests of adoption, and the tables over it."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from coldframe.pipeline.adopt import adopt
from coldframe.pipeline.options import Options

OPTIONS = Options(to="iceberg", adopt=True)


def ids(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


class Estate:
    """ORC and Parquet files, and the statements that define their tables."""

    def __init__(self, root: Path) -> None:
        self.root, self.target = root / "wh", root / "lake"
        self.statements: list[str] = []

    @property
    def source(self) -> str:
        path = self.root.parent / "tables.hql"
        path.write_text("\n".join(self.statements))
        return str(path)

    def table(self, name: str, columns: str, files: dict[str, pa.Table], keys: str = "") -> None:
        by_parquet = any(file.endswith(".parquet") for file in files)
        for file, content in files.items():
            path = self.root / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            (pq.write_table if by_parquet else po.write_table)(content, str(path))
        partitioned = f"PARTITIONED BY ({keys}) " if keys else ""
        stored = "PARQUET" if by_parquet else "ORC"
        self.statements.append(
            f"CREATE TABLE a.{name} ({columns}) {partitioned}STORED AS {stored} "
            f"LOCATION '{self.root / name}';"
        )

    def partition(self, name: str, spec: str, folder: str) -> None:
        place = self.root / name / folder
        self.statements.append(f"ALTER TABLE a.{name} ADD PARTITION ({spec}) LOCATION '{place}';")

    def reasons(self, name: str) -> dict[str, str]:
        """The reasons for the files of a table by their names, by a plan."""
        planned = adopt(self.source, self.target, OPTIONS, plan=True)
        (table,) = [table for table in planned.adopted if table.name == f"a.{name}"]
        assert not table.refused, table.refused
        return {Path(verdict.path).name: verdict.reason for verdict in table.verdicts}

    def digests(self) -> dict[str, str]:
        files = sorted(file for file in self.root.rglob("*") if file.is_file())
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def loaded(self, name: str):
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("coldframe", uri=f"sqlite:///{self.target}/_coldframe/iceberg.db")
        return catalog.load_table(("a", name))
