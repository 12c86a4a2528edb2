"""Has Hudi's writer for Spark make tables with random histories, and says what its reader shows of each view.

usage: histories.py BUNDLE.jar DIR SEED TABLES     (with the Python of a PySpark 3.5)

`DIR/views.jsonl` gets a line for each view: the table, the options of `coldframe.open`, and the folder of Parquet with the rows.
"""

from __future__ import annotations

import json
import random
import re
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

COLUMNS = (
    "id string, part string, ts long, name string, amount double, n int, flag boolean, price decimal(20,4), "
    "day date, at timestamp, raw binary, marks array<int>, tags map<string,string>, place struct<x:int,y:string>, "
    "_hoodie_is_deleted boolean"
)
PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "PartialUpdateAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
)
MODEL = "org.apache.hudi.common.model."
PARTITIONS = ("eu", "us", "p=q", "a b", "")
DAYS = ("2020-01-01", "2020-02-29", "1969-12-31")


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
        "spark.executor.heartbeatInterval": "100s",
        "spark.network.timeout": "600s",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Table:
    """A table and its random history."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, seed: str, release: str) -> None:
        self.spark, self.name, self.dice = spark, name, random.Random(seed)
        self.path = str(folder / name)
        self.added = 0
        self.wide = False
        dice = self.dice
        self.merges = dice.random() < 0.75
        self.version = "6" if release.startswith("0.") else dice.choice(["6", "8", "9"])
        self.keeps_deleted = dice.random() < 0.3
        self.partitions: tuple[str, ...] = PARTITIONS
        self.options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merges else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.hive_style_partitioning": dice.choice(["true", "false"]),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.metadata.enable": dice.choice(["true", "false"]),
            "hoodie.parquet.small.file.limit": dice.choice(["0", "104857600"]),
            "hoodie.index.type": dice.choice(["SIMPLE", "SIMPLE", "BLOOM", "BUCKET", "GLOBAL_SIMPLE"]),
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.bulkinsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
            **self.chosen(dice),
        }
        plain = ("hive_style_partitioning", "partitionpath.urlencode")
        if not any(self.options.get(f"hoodie.datasource.write.{name}") == "true" for name in plain):
            # Of a folder `p=q`, Hudi shows `q`.
            self.partitions = tuple(value for value in self.partitions if "=" not in value)
        if not release.startswith("0."):
            self.options |= {"hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false"}

    def chosen(self, dice: random.Random) -> dict[str, str]:
        """What only some tables have."""
        options = {}
        if dice.random() < 0.2:
            options["hoodie.datasource.write.keygenerator.class"] = (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            )
        else:
            options["hoodie.datasource.write.partitionpath.field"] = "part"
            options["hoodie.datasource.write.partitionpath.urlencode"] = dice.choice(
                ["true", "true", "false"]
            )
            if dice.random() < 0.15:
                options |= self.by_month()
        if dice.random() < 0.6:
            options["hoodie.datasource.write.payload.class"] = MODEL + dice.choice(PAYLOADS)
        elif self.version != "6":
            options["hoodie.record.merge.mode"] = dice.choice(["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
        if dice.random() < 0.1:
            options["hoodie.populate.meta.fields"] = "false"
        if self.merges:
            options["hoodie.compact.inline"] = dice.choice(["true", "false"])
            options["hoodie.compact.inline.max.delta.commits"] = "3"
            options["hoodie.compact.schedule.inline"] = "false"
            if options["hoodie.compact.inline"] == "false" and dice.random() < 0.4:
                options["hoodie.compact.schedule.inline"] = "true"
            options["hoodie.logfile.data.block.format"] = dice.choice(["avro", "avro", "parquet"])
            if dice.random() < 0.3:
                options["hoodie.log.compaction.enable"] = "true"
                options["hoodie.log.compaction.inline"] = "true"
                options["hoodie.log.compaction.blocks.threshold"] = "2"
        if dice.random() < 0.2:
            options["hoodie.clustering.inline"] = "true"
            options["hoodie.clustering.inline.max.commits"] = "2"
        if dice.random() < 0.3:
            options["hoodie.clean.commits.retained"] = "1"
            options["hoodie.cleaner.commits.retained"] = "1"
            options["hoodie.keep.min.commits"] = "2"
            options["hoodie.keep.max.commits"] = "3"
        return options

    def by_month(self) -> dict[str, str]:
        """A folder for each month of a column of days."""
        self.partitions = DAYS
        dates = {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd",
            "output.dateformat": "yyyy/MM",
        }
        prefixes = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
        return {
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.datasource.write.hive_style_partitioning": "false",
            "hoodie.datasource.write.partitionpath.urlencode": "false",
            **{prefix + key: value for prefix in prefixes for key, value in dates.items()},
        }

    def value(self, *values: Any) -> Any:
        return self.dice.choice((*values, None))

    def rows(self) -> DataFrame:
        dice = self.dice
        part = dice.choice([2, 2, len(self.partitions)])
        data = [
            (
                f"id-{key:02}",
                self.partitions[key % part],
                dice.randint(1, 9),
                self.value("a", "", "ü"),
                self.value(1.5, -0.0),
                self.value(0, -7),
                self.value(True, False),
                self.value(Decimal("12345678901234.5678"), Decimal("-0.0001")),
                self.value(date(1969, 12, 31), date(2024, 2, 29)),
                self.value(datetime(2020, 1, 1, 12, 30, 0, 123456)),
                self.value(b"\0x", b""),
                self.value([1, 2], []),
                self.value({"k": "v"}, {}),
                self.value((1, "y"), (None, None)),
                self.keeps_deleted and dice.random() < 0.3,
            )
            for key in dice.sample(range(12), dice.randint(1, 8))
        ]
        frame = self.spark.createDataFrame(data, COLUMNS)
        if not self.keeps_deleted:
            frame = frame.drop("_hoodie_is_deleted")
        for number in range(self.added):
            frame = frame.withColumn(
                f"more{number}", functions.expr(f"if(ts % 2 = 0, concat('m', ts + {number}), null)")
            )
        if self.wide:
            frame = frame.withColumn("n", functions.expr("n * 5000000000L"))
        return frame

    def write(self, operation: str, broken: bool = False) -> None:
        frame = self.rows()
        if broken:
            frame = frame.withColumn("name", functions.expr("if(ts > 3, raise_error('broken'), name)"))
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        if operation == "delete_partition":
            hive = self.options["hoodie.datasource.write.hive_style_partitioning"] == "true"
            folder = "2020/01" if self.partitions == DAYS else "eu"
            options["hoodie.datasource.write.partitions.to.delete"] = f"part={folder}" if hive else folder
        frame.write.format("hudi").options(**options).mode("append").save(self.path)

    def step(self, operation: str) -> None:
        """A write, or a change of the table."""
        if operation == "more":
            self.added += 1
            operation = "upsert"
        elif operation == "wider":
            self.wide = True
            operation = "upsert"
        if operation == "broken":
            self.write("upsert", broken=True)
        elif operation == "partial":
            self.sql(
                "merge into {0} t using (select 'id-01' id, 'eu' part, 9L ts, 'merged' name union all "
                "select 'id-02', 'us', 1L, 'low') s on t.id = s.id "
                "when matched then update set ts = s.ts, name = s.name"
            )
        elif operation == "update":
            self.sql("update {0} set amount = 2.5, flag = null where id > 'id-05'")
        elif operation == "delete from":
            self.sql("delete from {0} where id in ('id-03', 'id-04', 'id-08')")
        elif operation in ("compaction", "clustering"):
            self.sql(f"call run_{operation}(op => 'run', path => '{self.path}')")
        elif operation == "savepoint":
            self.sql(f"call create_savepoint(path => '{self.path}', commit_time => '{self.instants()[-1]}')")
        elif operation == "restore":
            points = self.sql(f"call show_savepoints(path => '{self.path}')").collect()
            if points:
                self.sql(
                    f"call rollback_to_savepoint(path => '{self.path}', instant_time => '{points[0][0]}')"
                )
        else:
            self.write(operation)

    def sql(self, statement: str) -> DataFrame:
        self.spark.sql(f"create table if not exists {self.name} using hudi location '{self.path}'")
        return self.spark.sql(statement.format(self.name))

    def live(self) -> list[str]:
        """Writes; returns what was done and what was refused. What a refused write left behind is part of the history."""
        done = []
        steps = [self.dice.choice(["bulk_insert", "insert", "upsert"])]
        kinds = ["upsert"] * 6 + [
            "delete",
            "insert_overwrite",
            "insert_overwrite_table",
            "delete_partition",
            "insert",
        ]
        kinds += [
            "more",
            "wider",
            "broken",
            "partial",
            "update",
            "delete from",
            "compaction",
            "savepoint",
            "restore",
        ]
        steps += self.dice.choices(kinds, k=self.dice.randint(2, 7))
        for operation in steps:
            try:
                self.step(operation)
                done.append(operation)
            except Exception as refusal:
                done.append(f"{operation}: refused: {str(refusal)[:200]}")
        return done

    def instants(self) -> list[str]:
        """The instants of completed writes."""
        return sorted(instant for instant, _ in self.completed())

    def completed(self) -> list[tuple[str, str]]:
        """Instant and completion time of each completed write; the instant twice for older tables."""
        folder = Path(self.path, ".hoodie", *([] if self.version == "6" else ["timeline"]))
        writes = [
            file.name
            for file in folder.glob("*")
            if file.suffix in (".commit", ".deltacommit", ".replacecommit")
        ]
        stems = [name.split(".")[0].split("_") for name in writes]
        return sorted((stem[0], stem[-1]) for stem in stems)

    def views(self) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The options of `coldframe.open`, and Hudi's, of each view."""
        query = "hoodie.datasource.query.type"
        begin, end = (f"hoodie.datasource.read.{side}.instanttime" for side in ("begin", "end"))
        views: list[tuple[dict[str, str], dict[str, str]]] = [
            ({}, {query: "snapshot"}),
            ({"view": "read_optimized"}, {query: "read_optimized"}),
        ]
        known = self.completed()
        views += [({"as_of": instant}, {"as.of.instant": instant}) for instant, _ in known[-4:]]
        # Of encoded partitions, Hudi 1.x shows the names of the folders there, and the values in the other views.
        is_encoded = self.options.get("hoodie.datasource.write.partitionpath.urlencode") == "true"
        if len(known) > 1 and not is_encoded:
            ends = sorted(end for _, end in known)
            low, high = sorted(self.dice.sample(range(len(ends)), 2))
            for first, last in ((ends[low], ends[high]), (ends[0], ends[-1])):
                views.append(
                    (
                        {"view": "incremental", "begin": first, "end": last},
                        {query: "incremental", begin: first, end: last},
                    )
                )
        return views


def main(bundle: str, into: str, seed: str, tables: str) -> None:
    spark = session(bundle)
    spark.sparkContext.setLogLevel("OFF")
    release = re.search(r"_2\.1[23]-([0-9.]+[0-9])", bundle)
    assert release, bundle
    folder = Path(into)
    with (folder / "views.jsonl").open("w") as lines:
        for number in range(int(tables)):
            table = Table(spark, folder, f"t{number}", f"{seed}/{number}", release[1])
            story = table.live()
            for at, (ours, theirs) in enumerate(table.views()):
                truth = f"{table.path}-{at}"
                try:
                    frame: Any = spark.read.format("hudi").options(**theirs).load(table.path)
                    frame.coalesce(1).write.parquet(truth)
                except Exception as refusal:
                    print(f"{table.path} {ours}: Hudi refuses: {str(refusal)[:300]}", file=sys.stderr)
                    continue
                line = {
                    "table": table.path,
                    "options": ours,
                    "truth": truth,
                    "made": table.options,
                    "story": story,
                }
                print(json.dumps(line), file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
