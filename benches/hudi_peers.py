"""A Hudi table by coldframe, side by side with Hudi's own reader on Spark and with hudi-rs.

    python benches/hudi_peers.py [DIR] [--rows 1000000] [--updates 200000] [--seed N] [--rust PYTHON]

Hudi's writer for Spark makes two tables in DIR (110 MB) on the first run: `mor`, with all updates in
logs, and `cow`. Each reader has a process of its own and reads all columns of all rows, several times; the
table has the median of the processor seconds without the first pass. `--rust`: a Python with the package
`hudi`. Spark is PySpark 3.5 of `.venv-spark35`, on `local[1]`; its seconds are those of the whole JVM.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
SPARK = HERE.parents[1] / ".venv-spark35/bin/python"
ARTIFACT = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1"
PASSES = 5

WRITE = """
import sys
from pyspark.sql import SparkSession, functions as F
jar, folder, rows, updates, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
spark = (SparkSession.builder.master("local[2]").config("spark.jars", jar).config("spark.driver.memory", "3g")
  .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
  .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
  .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
  .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog").getOrCreate())
if rows:
    def frame(ids, ts):
        number = lambda at: F.rand(seed + 10 * ts + at)
        key = F.concat(F.lit("key-"), F.lpad(F.col("id").cast("string"), 9, "0"))
        name = F.concat(F.lit("name "), (number(0) * 100000).cast("int").cast("string"))
        return ids.select(key.alias("id"), F.lit(ts).cast("long").alias("ts"), name.alias("name"),
            number(1).alias("amount"), (number(2) * 1000000).cast("int").alias("n"),
            (number(3) > 0.5).alias("flag"), F.expr("timestamp_seconds(1700000000 + id)").alias("t"),
            F.expr("cast(id as decimal(12, 3))").alias("dec"))
    for kind, name in (("MERGE_ON_READ", "mor"), ("COPY_ON_WRITE", "cow")):
        options = {"hoodie.table.name": name, "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "", "hoodie.metadata.enable": "false",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.bulkinsert.shuffle.parallelism": "4", "hoodie.upsert.shuffle.parallelism": "4"}
        def write(frame, operation):
            how = frame.write.format("hudi").options(**options).mode("append")
            how.option("hoodie.datasource.write.operation", operation).save(f"{folder}/{name}")
        write(frame(spark.range(rows).repartition(4), 1), "bulk_insert")
        if kind[0] == "M":
            write(frame(spark.range(rows).where(f"id % {max(1, rows // updates)} = 0"), 2), "upsert")
"""

COLDFRAME = """
import json, sys, time, coldframe as cf
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    rows = sum(batch.num_rows for batch in cf.open(sys.argv[1], threads=1).to_batches())
    print(json.dumps([rows, time.process_time() - start]), flush=True)
"""

RUST = """
import json, sys, time
from hudi import HudiTableBuilder
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    rows = sum(batch.num_rows for batch in HudiTableBuilder.from_base_uri(sys.argv[1]).build().read())
    print(json.dumps([rows, time.process_time() - start]), flush=True)
"""

READ = """
import json, os, sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[3])
  .config("spark.driver.memory", "3g").config("spark.ui.enabled", "false")
  .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer").getOrCreate())
pid = spark._jvm.java.lang.ProcessHandle.current().pid()
def seconds():
    of_jvm = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(of_jvm[11]) + int(of_jvm[12])) / os.sysconf("SC_CLK_TCK")
for _ in range(int(sys.argv[2])):
    start = seconds()
    spark.read.format("hudi").load(sys.argv[1]).write.format("noop").mode("overwrite").save()
    print(json.dumps([0, seconds() - start]), flush=True)
"""


def median(python: str, program: str, *arguments: str) -> tuple[int, float]:
    """The rows of a pass, and the median of its processor seconds."""
    command = [python, "-c", program, *arguments]
    out = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout
    passes = [json.loads(line) for line in out.splitlines() if line.startswith("[")]
    return passes[-1][0], statistics.median(seconds for _, seconds in passes[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dir", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--rust", help="a Python with the package hudi")
    asked = parser.parse_args()
    folder = asked.dir or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    subprocess.run(fetch, check=True)
    jar = str(next(folder.glob("hudi-spark*.jar")))
    if not (folder / "cow/.hoodie").exists():
        made = [str(number) for number in (asked.rows, asked.updates, asked.seed)]
        subprocess.run(
            [str(SPARK), "-c", WRITE, jar, str(folder), *made], check=True, stderr=subprocess.DEVNULL
        )
    print(f"seed {asked.seed}\n\n| table | reader | rows | processor seconds |\n| --- | --- | --- | --- |")
    for name in ("mor", "cow"):
        table = str(folder / name)
        readers = [("coldframe", sys.executable, COLDFRAME, ""), ("Hudi on Spark", str(SPARK), READ, jar)]
        if asked.rust:
            readers.append(("hudi-rs", asked.rust, RUST, ""))
        for reader, python, program, more in readers:
            rows, seconds = median(python, program, table, str(PASSES), more)
            print(f"| {name} | {reader} | {rows or ''} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
