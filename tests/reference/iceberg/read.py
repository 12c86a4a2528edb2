"""Prints what Spark reads from an Iceberg table.

python read.py ICEBERG_JAR METADATA_FILE OUT.json
"""

import json
import sys
from pathlib import Path

from make import known, session


def main(jar, metadata, out):
    spark = session(jar)
    rows = spark.read.format("iceberg").load(metadata).toArrow().to_pylist()
    spark.stop()
    Path(out).write_text(json.dumps([known(row) for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
