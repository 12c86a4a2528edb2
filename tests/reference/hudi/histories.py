"""Has Hudi's writer for Spark make tables with random histories, and says what its reader shows of each view.

usage: histories.py BUNDLE.jar DIR SEED TABLES     (with the Python of a PySpark 3.5)

`DIR/views.jsonl` gets a line for each view: the table, the options of `coldframe.open`, and the folder of Parquet with the rows.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id string, part string, ts long, name string, amount double, n int, flag boolean"


def session(bundle: str) -> SparkSession:
    settings = {
        "spark.jars": bundle,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Table:
    """A table and its random history."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, dice: random.Random) -> None:
        self.spark, self.folder, self.name, self.dice = spark, folder, name, dice
        self.path = str(folder / name)
        self.merges = dice.random() < 0.75
        version = dice.choice(["6", "8", "9"])
        self.options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merges else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.hive_style_partitioning": dice.choice(["true", "false"]),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.record.merge.mode": dice.choice(["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"]),
            "hoodie.write.table.version": version,
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": dice.choice(["true", "false"]),
            "hoodie.compact.inline": dice.choice(["true", "false"]) if self.merges else "false",
            "hoodie.compact.inline.max.delta.commits": "3",
            "hoodie.parquet.small.file.limit": dice.choice(["0", "104857600"]),
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.bulkinsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
        }

    def rows(self) -> DataFrame:
        dice = self.dice
        keys = dice.sample(range(12), dice.randint(1, 8))
        names = ["a", "", "ü", None]
        data = [
            (
                f"id-{key:02}",
                ["eu", "us"][key % 2],
                dice.randint(1, 9),
                dice.choice(names),
                dice.choice([1.5, -0.0, None]),
                dice.choice([0, -7, None]),
                dice.choice([True, False, None]),
            )
            for key in keys
        ]
        return self.spark.createDataFrame(data, COLUMNS)

    def write(self, operation: str) -> None:
        frame = self.rows().write.format("hudi").options(**self.options)
        frame.option("hoodie.datasource.write.operation", operation).mode("append").save(self.path)

    def live(self) -> None:
        self.write(self.dice.choice(["bulk_insert", "insert", "upsert"]))
        for _ in range(self.dice.randint(2, 5)):
            operation = self.dice.choice(["upsert", "upsert", "upsert", "delete", "insert_overwrite"])
            try:
                self.write(operation)
            except Py4JJavaError as refusal:
                # What the refused write left behind is a part of the history.
                print(f"{self.path}: {operation}: {refusal.java_exception}", file=sys.stderr)
                return

    def instants(self) -> list[str]:
        commits = self.spark.read.format("hudi").load(self.path).select("_hoodie_commit_time").distinct()
        return sorted(row[0] for row in commits.collect())

    def views(self) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The options of `coldframe.open`, and Hudi's, of each view."""
        query = "hoodie.datasource.query.type"
        views: list[tuple[dict[str, str], dict[str, str]]] = [
            ({}, {query: "snapshot"}),
            ({"view": "read_optimized"}, {query: "read_optimized"}),
        ]
        known = self.instants()
        views += [({"as_of": instant}, {"as.of.instant": instant}) for instant in known[-2:]]
        return views


def main(bundle: str, into: str, seed: str, tables: str) -> None:
    spark = session(bundle)
    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(into)
    with (folder / "views.jsonl").open("w") as lines:
        for number in range(int(tables)):
            table = Table(spark, folder, f"t{number}", random.Random(f"{seed}/{number}"))
            table.live()
            for at, (ours, theirs) in enumerate(table.views()):
                truth = f"{table.path}-{at}"
                frame: Any = spark.read.format("hudi").options(**theirs).load(table.path)
                frame.coalesce(1).write.parquet(truth)
                line = {"table": table.path, "options": ours, "truth": truth, "made": table.options}
                print(json.dumps(line), file=lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
