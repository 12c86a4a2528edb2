"""The Hive rule on and off: tables of a metastore, read by the connector and by the reader it replaces."""

from __future__ import annotations

import random
import re
from pathlib import Path

from pyspark.sql import SparkSession
from queries import Queries
from tables import Column, Maker, Table, add_samples

from beside import READERS, ZONES, Session, answer, set_zone

_NOT_OF_HIVE = re.compile("interval|timestamp_ntz")
KEYS = ("int", "string", "date", "bigint", "boolean", "smallint")


class HiveSession(Session):
    """A table of Hive, and its queries: `orc` is the rule off, `coldframe` is the rule on."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        super().__init__(spark, folder, seed)
        self.taken = 0

    def table(self) -> Table:
        zones = random.Random(self.seed * 31 + 7)
        set_zone(self.spark, zones.choice(ZONES))
        made = Maker(self.spark, self.seed, "orc", KEYS).make(self.folder)
        made.columns = [column for column in made.columns if not _NOT_OF_HIVE.search(column.type)]
        of_files = [column for column in made.columns if not column.is_key] or [Column("lacking", "int")]
        keys = [column for column in made.columns if column.is_key]
        made.columns = of_files + keys
        self.create(of_files, keys)
        set_zone(self.spark, zones.choice(ZONES))
        self.spark.conf.set("spark.sql.hive.convertMetastoreOrc", zones.choice(("true", "true", "false")))
        self.spark.conf.set("spark.coldframe.hive", "off")
        add_samples(made, self.spark.table("t_hive"))
        return made

    def create(self, columns: list[Column], keys: list[Column]) -> None:
        """The files of the Maker as a table; or an RCFile table with the same rows."""
        for name in ("t_hive", "t_files"):
            self.spark.sql(f"drop table if exists {name}")
        texts = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        parts = ", ".join(f"`{column.name}` {column.type}" for column in keys)
        by = f"partitioned by ({parts})" if parts else ""
        is_text = self.random.random() < 0.4
        name = "t_files" if is_text else "t_hive"
        self.spark.sql(f"create external table {name} ({texts}) {by} stored as orc location '{self.folder}'")
        if parts:
            self.spark.sql(f"msck repair table {name}")
        if is_text:
            kind = self.random.choice(("ColumnarSerDe", "LazyBinaryColumnarSerDe"))
            serde = f"row format serde 'org.apache.hadoop.hive.serde2.columnar.{kind}'"
            where = f"location '{self.folder}-rc'"
            self.spark.sql(f"create external table t_hive ({texts}) {by} {serde} stored as rcfile {where}")
            self.spark.sql("insert into t_hive select * from t_files")

    def queries(self, table: Table) -> Queries:
        return Queries(table, self.random, has_files=False)

    def ask(self, query: str, by: str) -> list[str] | str:
        self.spark.conf.set("spark.coldframe.hive", "on" if by == READERS[1] else "off")
        whole = query.format(t="t_hive")
        if by == READERS[1]:
            self.taken += self.is_taken(whole)
        return answer(self.spark, whole)

    def is_taken(self, query: str) -> bool:
        try:
            plan = self.spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()
        except Exception:
            return False  # the comparison has the error
        return "RelationV2[" in plan

    def forget(self, by: str) -> None:
        self.spark.sql("drop table if exists t_hive")
