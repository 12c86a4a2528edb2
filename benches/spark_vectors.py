"""The connector's NativeVector against Spark's ArrowColumnVector over the same memory: CPU seconds of sums.

    python benches/spark_vectors.py [--batches 500]

Both get batches of 16,384 rows, a tenth of them null, by Arrow's C data interface; the times include
importing and closing. `alone` is a JVM that has seen one kind of column, `together` one that sums all kinds
in turn, as
queries do. Best of three passes. Needs Maven, for arrow-c-data, a JDK 17, PySpark 4 and the jar (make jar).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

import coldframe.spark

KINDS = ["long", "double", "decimal_10", "decimal_38", "string", "list", "struct"]
SOURCE = Path(__file__).parent / "peers" / "vectors" / "Vectors.java"
ROWS = 16_384
OPENED = ("java.base/java.nio", "java.base/sun.nio.ch", "java.base/java.lang", "java.base/java.util")


def c_data(folder: Path, jars: Path) -> Path:
    """The jar arrow-c-data in the version of Spark's Arrow."""
    version = next(jars.glob("arrow-vector-*.jar")).stem.removeprefix("arrow-vector-")
    artifact = f"org.apache.arrow:arrow-c-data:{version}"
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    subprocess.run(copy, check=True, cwd=folder)
    return folder / f"arrow-c-data-{version}.jar"


def measured(classpath: str, vector: str, kinds: list[str], batches: int) -> dict[str, float]:
    """Seconds by kind."""
    opened = [word for package in OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")]
    command = ["java", *opened, "-Xmx1g", "-XX:+UseSerialGC", "-cp", classpath, "io.coldframe.spark.Vectors"]
    done = subprocess.run(
        [*command, vector, ",".join(kinds), str(batches)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    pairs = (line.split() for line in done.stdout.splitlines() if line.split()[0] in KINDS)
    return {kind: float(seconds) for kind, seconds in pairs}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=500)
    batches = parser.parse_args().batches
    jars = Path(pyspark.__file__).parent / "jars"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = [str(folder), coldframe.spark.jar(), str(c_data(folder, jars)), f"{jars}/*"]
        classpath = ":".join(path)
        subprocess.run(["javac", "-nowarn", "-cp", classpath, "-d", made, str(SOURCE)], check=True)
        print(f"CPU seconds for {batches * ROWS / 1e6:.0f} million rows: NativeVector / ArrowColumnVector\n")
        print("| column | alone | together |\n|---|---|---|")
        together = {vector: measured(classpath, vector, KINDS, batches) for vector in ("native", "arrow")}
        for kind in KINDS:
            alone = {vector: measured(classpath, vector, [kind], batches)[kind] for vector in together}
            both = {vector: by_kind[kind] for vector, by_kind in together.items()}
            cells = [f"{some['native']:.2f} / {some['arrow']:.2f}" for some in (alone, both)]
            print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
