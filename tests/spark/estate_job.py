"""Prints the rows that Spark reads from an estate: with Hive's readers, and with Iceberg's.

python estate_job.py METASTORE REST_CATALOG ICEBERG_JAR TABLES_OF_HIVE TABLES_OF_ICEBERG     lists with commas
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import DataFrame, SparkSession

CATALOG = "spark.sql.catalog.lake"


def session(metastore: str, catalog: str, jar: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore,
        # Hive's own ORC reader, with the SerDes of the partitions.
        "spark.sql.hive.convertMetastoreOrc": "false",
        "spark.jars": jar,
        CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{CATALOG}.type": "rest",
        f"{CATALOG}.uri": catalog,
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows(frame: DataFrame) -> list[str]:
    # HBase cells that Hive does not map have no order.
    names = sorted(name for name in frame.columns if name != "rest")
    return sorted(repr(tuple(row)) for row in frame.select(*names).collect())


def main(metastore: str, catalog: str, jar: str, of_hive: str, of_iceberg: str) -> None:
    spark = session(metastore, catalog, jar)
    answers = {
        "hive": {name: rows(spark.table(f"spark_catalog.cold.{name}")) for name in of_hive.split(",")},
        "iceberg": {name: rows(spark.table(f"lake.cold.{name}")) for name in of_iceberg.split(",")},
        "about": {
            name: [[row.col_name, row.data_type, row.comment] for row in described.collect()]
            for name in of_iceberg.split(",")
            if (described := spark.sql(f"describe table extended lake.cold.{name}"))
        },
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
