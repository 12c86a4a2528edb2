"""Reads and changes an adopted table by Spark with Iceberg, and prints what it gets.

python adoption_job.py REST_CATALOG ICEBERG_JAR TABLE
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

CATALOG = "spark.sql.catalog.lake"


def session(catalog: str, jar: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "1",
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{CATALOG}.type": "rest",
        f"{CATALOG}.uri": catalog,
        f"{CATALOG}.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(catalog: str, jar: str, table: str) -> None:
    spark = session(catalog, jar)

    def ids(where: str = "true") -> list[int]:
        return [row.id for row in spark.sql(f"select id from {table} where {where} order by id").collect()]

    def call(what: str) -> str:
        try:
            spark.sql(f"call lake.system.{what}").collect()
        except Exception as error:
            return str(error)
        return ""

    name = table.removeprefix("lake.")
    answers = {
        "rows": [repr(tuple(row)) for row in spark.sql(f"select * from {table} order by id").collect()],
        "by partition": ids("p = 1"),
        "by value": ids("v = 'b'"),
        "by time": ids("t = timestamp_ntz'2020-07-01 10:00:00'"),
    }
    spark.sql(f"delete from {table} where id = 1")
    spark.sql(f"update {table} set v = 'new' where id = 2")
    answers["changed"] = ids("v = 'new' or id = 1")
    answers["compaction"] = call(
        f"rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    answers["expiry"] = call(f"expire_snapshots(table => '{name}', retain_last => 1)")
    answers["orphans"] = call(f"remove_orphan_files(table => '{name}')")
    answers["left"] = ids()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
