"""Runs a query in both readers in one session and compares: the same rows, or the same kind of error."""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

sys.path.append(str(Path(__file__).parent))

from known import reason
from queries import Queries, settings
from tables import Column, Maker, Table, add_samples

READERS = ("orc", "coldframe")
ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe")
"""Time zones of the JVM that writes, and of the one that reads."""
QUERIES_OF_A_TABLE = 25


@dataclass(frozen=True)
class Difference:
    """A query that the readers answer differently. `why`: the reason, if it is a known fault of Spark."""

    seed: int
    number: int
    query: str
    answers: tuple[Any, Any]
    why: str | None

    def __str__(self) -> str:
        shown = [str(answer)[:600] for answer in self.answers]
        head = f"seed {self.seed}, query {self.number}: {self.query}"
        return f"{head}\n  Spark's  {shown[0]}\n  ours     {shown[1]}"


def texts(frame: DataFrame) -> DataFrame:
    """All values as text: Python has no intervals, and no times outside of the years 1 to 9999."""
    kinds = [field.dataType.simpleString() for field in frame.schema]
    renamed = frame.toDF(*(f"c{at}" for at in range(len(kinds))))
    return renamed.selectExpr(
        *(f"hex(c{at})" if kind == "binary" else f"cast(c{at} as string)" for at, kind in enumerate(kinds))
    )


def kind_of(error: Exception) -> str:
    """What an error is about, without its words: Spark's condition, or the class of the exception."""
    text = str(error)
    match = re.search(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\]", text) or re.search(r"(\w+(?:Exception|Error))\b", text)
    return match[1] if match else type(error).__name__


def answer(spark: SparkSession, query: str) -> list[str] | str:
    try:
        rows = texts(spark.sql(query)).collect()
    except Exception as error:
        return f"error {kind_of(error)}"
    return sorted(map(repr, map(tuple, rows)))


def set_zone(spark: SparkSession, zone: str) -> None:
    """Spark's ORC reader and writer take a timestamp as a wall clock in the time zone of the JVM."""
    jvm: Any = spark.sparkContext._jvm
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(zone))


class Session:
    """A table, and its queries, in a session."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.spark, self.seed = spark, seed
        self.folder = folder / f"t{seed}"
        self.random = random.Random(seed * 7919 + 1)
        self.is_merged = False

    def table(self) -> Table:
        """Writes the table, and makes a view of it for each reader."""
        zones = random.Random(self.seed * 31 + 7)
        set_zone(self.spark, zones.choice(ZONES))
        made = Maker(self.spark, self.seed).make(self.folder)
        set_zone(self.spark, zones.choice(ZONES))
        schema = self.schema(made)
        if self.random.random() < 0.1 and schema:
            self.make_tables(made)
            return made
        for by in READERS:
            reader = self.spark.read.format(by)
            if by == "coldframe":
                reader = reader.option("batch_rows", self.random.choice(("100", "4096", "16384")))
                reader = reader.option("split_bytes", self.random.choice(("16k", "128m")))
            reader = reader.schema(schema) if schema else reader
            reader = reader.option("mergeSchema", "true") if self.is_merged else reader
            self.forget(by)
            reader.load(str(self.folder)).createOrReplaceTempView(f"t_{by}")
        add_samples(made, self.spark.table("t_orc"))
        return made

    def schema(self, table: Table) -> str | None:
        """Sometimes a schema to read by: other order and case, more columns, wider types, NOT NULL."""
        chance = self.random.random()
        if len(table.writers) == 1 and chance < 0.6:
            return None
        if chance < 0.3:
            self.is_merged = True
            return None
        wider = {"tinyint": "int", "smallint": "bigint", "int": "bigint", "float": "double"}
        columns: list[Column] = []
        upper = 0 if table.is_sensitive else 0.2
        for column in table.columns:
            kind = column.type
            if self.random.random() < 0.25:
                kind = wider.get(kind, kind)
            columns.append(
                Column(
                    column.name.upper() if self.random.random() < upper else column.name, kind, column.is_key
                )
            )
        of_files = [column for column in columns if not column.is_key]
        if self.random.random() < 0.5:
            self.random.shuffle(of_files)
        keys = [column for column in columns if column.is_key]
        extra = [Column("lacking", "array<int>")] if self.random.random() < 0.4 else []
        table.columns = of_files + extra + keys
        texts = []
        for column in table.columns:
            is_strict = self.random.random() < 0.1 and not column.is_key
            texts.append(f"`{column.name}` {column.type}{' NOT NULL' if is_strict else ''}")
        return ", ".join(texts)

    def forget(self, by: str) -> None:
        self.spark.catalog.dropTempView(f"t_{by}")
        self.spark.sql(f"drop table if exists t_{by}")

    def make_tables(self, table: Table) -> None:
        """Tables of the session's catalog instead of views; some texts are char or varchar."""
        kinds = {"string": ("string", "char(12)", "varchar(400)")}
        columns = [
            f"`{column.name}` {self.random.choice(kinds.get(column.type, (column.type,)))}"
            for column in table.columns
        ]
        keys = ", ".join(f"`{column.name}`" for column in table.columns if column.is_key)
        for by in READERS:
            self.forget(by)
            parts = f"partitioned by ({keys})" if keys else ""
            self.spark.sql(
                f"create table t_{by} ({', '.join(columns)}) using {by} {parts} location '{self.folder}'"
            )
        add_samples(table, self.spark.table("t_orc"))

    def queries(self, table: Table) -> Queries:
        return Queries(table, self.random)

    def again(self, query: str, changed: dict[str, str]) -> list[str] | str:
        """The answer of Spark's reader with other settings."""
        before = {name: self.spark.conf.get(name) for name in changed}
        for name, value in changed.items():
            self.spark.conf.set(name, value)
        answered = self.ask(query, READERS[0])
        for name, known in before.items():
            self.spark.conf.set(name, str(known))
        return answered

    def ask(self, query: str, by: str) -> list[str] | str:
        return answer(self.spark, query.format(t=f"t_{by}"))

    def run(self, only: int | None = None) -> tuple[int, list[Difference]]:
        """The number of queries, and the differences. `only`: the number of the single query to run."""
        differences: list[Difference] = []
        table = self.table()
        queries = self.queries(table)
        for number in range(QUERIES_OF_A_TABLE):
            chosen, query = settings(self.random), queries.make()
            if only is not None and number != only:
                continue
            for name, value in chosen.items():
                self.spark.conf.set(name, value)
            answers = [self.ask(query, by) for by in READERS]
            if answers[0] != answers[1]:
                apart = answers
                if not any(isinstance(value, str) for value in answers):
                    counts = [Counter(value) for value in answers]
                    apart = [
                        [f"of {len(value)} rows", *list((own - other).elements())[:5]]
                        for value, own, other in zip(answers, counts, reversed(counts), strict=True)
                    ]
                why = reason(query, answers[1], partial(self.again, query))
                differences.append(Difference(self.seed, number, query, (apart[0], apart[1]), why))
        for by in READERS:
            self.forget(by)
        for name in (*settings(random.Random(0)), "spark.sql.caseSensitive"):
            self.spark.conf.unset(name)
        shutil.rmtree(self.folder, ignore_errors=True)
        return QUERIES_OF_A_TABLE if only is None else 1, differences
