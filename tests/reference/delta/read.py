"""What Spark with Delta's own reader finds in a table: a JSON object for each requested version.

    python read.py TABLE [VERSION ..]      without versions: the newest

Runs in a Python of its own, with `delta-spark` and the PySpark that it requires.
"""

import json
import sys

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession


def main() -> None:
    """Prints `{"version", "rows", "values"}`: the values of the column `a`, sorted."""
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    table, *versions = sys.argv[1:]
    for version in versions or [None]:
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        values = sorted(row.a for row in reader.load(table).select("a").collect())
        print(json.dumps({"version": version, "rows": len(values), "values": values}), flush=True)


if __name__ == "__main__":
    main()
