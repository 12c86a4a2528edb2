"""A migration compared with the same work in Spark SQL: `python benches/migrate_peers.py [--mb 500]`.

Converts RCFile of text and ORC, written by this project, to Parquet with zstd. The figures are CPU seconds,
since coldframe and Spark SQL both use all cores: for coldframe the seconds of its process (which decodes,
fingerprints, writes, reads back and commits), for Spark SQL the seconds of the JVM on `local[2]` without its
start-up (the smaller of two passes). Spark SQL verifies nothing. Start-up costs are listed separately:
`whole` is `coldframe migrate --master local[2]` with its JVM and workers, from the shell to the report;
`in_process` the same with `--master in-process[2]`; `spark_start` what a JVM needs before Spark SQL's first
query, `spark_first` the start and the first pass. `times_whole` compares the two totals.

The profile of a task runs its steps one after another, over one split.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import coldframe as cf
from coldframe._coldframe import RawFingerprint, RawObserved, RawShape
from coldframe.file import raw_scan
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.sink.sinks import ParquetSink

COLUMNS = (
    "id bigint, kind int, amount double, price decimal(12,2), "
    "name string, note string, at timestamp, day date"
)
FILE_ROWS = 1_000_000
WHOLE = {"whole": "local[2]", "in_process": "in-process[2]"}


def rows(start: int, count: int) -> pa.Table:
    """A typical warehouse table."""
    chance = np.random.default_rng(start)
    ids = np.arange(start, start + count)
    names = np.char.add("customer ", (ids % 50_021).astype(str))
    notes = np.char.add(np.char.add("order ", ids.astype(str)), " of a warehouse that is switched off")
    seconds = 1_388_534_400 + chance.integers(0, 3 * 365 * 86_400, count)
    return pa.table(
        {
            "id": ids,
            "kind": pa.array(chance.integers(0, 40, count), pa.int32()),
            "amount": chance.normal(100, 30, count),
            "price": pa.array(chance.integers(0, 1_000_000, count), pa.int64())
            .cast(pa.decimal128(19, 0))
            .cast(pa.decimal128(12, 0)),
            "name": pa.array(names),
            "note": pa.array(notes),
            "at": pa.array(seconds * 1_000_000, pa.timestamp("us")),
            "day": pa.array((seconds // 86_400).astype("int32"), pa.date32()),
        }
    ).cast(pa.schema(_fields()))


def _fields() -> list[tuple[str, pa.DataType]]:
    kinds = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "decimal(12,2)": pa.decimal128(12, 2),
        "string": pa.string(),
        "timestamp": pa.timestamp("us"),
        "date": pa.date32(),
    }
    return [(name, kinds[kind]) for name, kind in (column.split(" ") for column in COLUMNS.split(", "))]


def make(root: Path, mb: int) -> dict[str, int]:
    """Creates the two sources, each of `mb` megabytes; returns their row counts."""
    counts: dict[str, int] = {}
    for name, options in (("rcfile", {"serde": "text"}), ("orc", {"codec": "snappy"})):
        folder = root / name / "t"
        folder.mkdir(parents=True)
        size = count = 0
        while size < mb << 20:
            path = folder / f"{count // FILE_ROWS:06d}_0"
            cf.write(rows(count, FILE_ROWS), path, format=name, **options)
            size += path.stat().st_size
            count += FILE_ROWS
        counts[name] = count
    (root / "rcfile" / "tables.toml").write_text(f'[tables.t]\nschema = "{COLUMNS}"\nserde = "text"\n')
    return counts


def ours(source: Path, target: Path, verify: bool) -> float:
    """CPU seconds of a migration in this process."""
    started = time.process_time()
    report = migrate(InProcess(), source, target, verify=verify)
    assert report.exit_code == 0
    return time.process_time() - started


def whole(source: Path, target: Path, master: str) -> float:
    """CPU seconds of a migration from the shell to the report, with Spark's JVM and workers."""
    import psutil

    command = [sys.executable, "-m", "coldframe", "migrate", str(source), str(target), "--master", master]
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used: dict[int, float] = {}
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            for member in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    used[member.pid] = sum(member.cpu_times()[:2])
        time.sleep(0.05)
    assert process.returncode == 0
    return sum(used.values())


def spark(source: Path, name: str, target: Path) -> dict[str, float]:
    """CPU seconds of the JVM for the same work in Spark SQL: the better pass, the start, and their sum."""
    import psutil
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.parquet.compression.codec", "zstd")
    with tempfile.TemporaryDirectory() as scratch:
        builder = builder.config("spark.sql.warehouse.dir", f"{scratch}/warehouse").config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            f"jdbc:derby:;databaseName={scratch}/metastore;create=true",
        )
        session = (builder.enableHiveSupport() if name == "rcfile" else builder).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        if name == "rcfile":
            session.sql(
                f"create external table t ({COLUMNS}) row format serde "
                "'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe' stored as rcfile "
                f"location '{source / 't'}'"
            )
        process = psutil.Process(session.sparkContext._gateway.proc.pid)
        start = sum(process.cpu_times()[:2])
        passes = []
        for number in range(2):
            before = sum(process.cpu_times()[:2])
            frame = session.table("t") if name == "rcfile" else session.read.orc(str(source / "t"))
            frame.write.parquet(f"{target}-{number}")
            passes.append(sum(process.cpu_times()[:2]) - before)
        session.stop()
    return {"spark": min(passes), "spark_start": start, "spark_first": start + passes[0]}


def profile(source: Path, name: str) -> dict[str, float]:
    """CPU seconds of the steps of one task."""
    path = next(iter(sorted((source / "t").iterdir())))
    options = {"schema": COLUMNS, "serde": "text"} if name == "rcfile" else {}
    split = cf.open(path, format=name, **options).splits(128 << 20)[0]
    seconds: dict[str, float] = {}

    def timed(what: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        answer = work()
        seconds[what] = round(time.process_time() - started, 3)
        return answer

    batches = timed("decode", lambda: list(split.to_batches(batch_size=65_536)))
    schema, sink = batches[0].schema, ParquetSink()
    fingerprint, observed = RawFingerprint(schema), RawObserved(split.witness().names)
    timed("fingerprint", lambda: [fingerprint.add(batch) for batch in batches])
    timed("statistics", lambda: [observed.add(batch) for batch in batches])
    with tempfile.TemporaryDirectory() as scratch:
        out, bare = f"{scratch}/x.parquet", RawShape(schema, verify=False)
        timed("write", lambda: sink.convert(pa.Table.from_batches(batches), bare, out))
        written = timed("read back", lambda: list(sink.open(out)[1]))
        again = RawFingerprint(schema, rows_only=True)
        timed("its fingerprint", lambda: [again.add(batch) for batch in written])
        # All steps in one call, as in a task.
        whole = RawShape(schema, stated=split.witness().names)
        scan = raw_scan(split, batch_size=65_536, on_error="raise")
        timed("convert", lambda: sink.convert(scan, whole, out))
        timed("verify", lambda: sink.read(out, schema, rows_only=True))
    seconds["rows"] = sum(batch.num_rows for batch in batches)
    return seconds


def apart(*what: str) -> Any:
    """Runs this script in a process of its own and returns its answer."""
    done = subprocess.run([sys.executable, __file__, *what], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Prints a line per format, and the profiles."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--part", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        what, source, name, target = given.part[0], Path(given.part[1]), given.part[2], Path(given.part[3])
        if what == "profile":
            print(json.dumps(profile(source, name)))
        elif what == "spark":
            print(json.dumps(spark(source, name, target)))
        elif what in WHOLE:
            print(json.dumps(whole(source, target, WHOLE[what])))
        else:
            print(json.dumps(ours(source, target, what == "ours")))
        return
    print(json.dumps({"date": str(datetime.date.today()), "version": cf.__version__}))
    with tempfile.TemporaryDirectory(prefix="coldframe-migrate-") as place:
        for name, count in make(Path(place), given.mb).items():
            source = f"{place}/{name}"
            seconds = {
                what: apart("--part", what, source, name, f"{place}/{name}-{what}")
                for what in ("ours", "unverified", *WHOLE)
            }
            seconds |= apart("--part", "spark", source, name, f"{place}/{name}-spark")
            seconds = {what: round(took, 2) for what, took in seconds.items()}
            times = {
                "times": round(seconds["spark"] / seconds["ours"], 2),
                "times_whole": round(seconds["spark_first"] / seconds["in_process"], 2),
            }
            print(json.dumps({"format": name, "rows": count, **seconds, **times}), flush=True)
            print(json.dumps({"task": apart("--part", "profile", source, name, "-")}), flush=True)


if __name__ == "__main__":
    main()
