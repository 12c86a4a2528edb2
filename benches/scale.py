"""How a migration's cost grows with the number of files: `scale.py [--files 1000,10000,100000]`.

Files of about 1 kB in tables of 10,000 files and 20 partitions each. Each figure is measured in a separate
process, which is the driver:

plan      everything before the first task: listing, formats, state, footers, columns
driver    a whole run in which the tasks cost nothing (a file is copied instead of converted): what the driver
          adds to the work of the cluster, the commits and the report
nothing   a second run, which has nothing to do

`--convert N` also converts N files for real, in one process.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import coldframe as cf
from coldframe.pipeline import dry_run, migrate
from coldframe.pipeline.options import Options
from coldframe.pipeline.records import MergeOutcome, Outcome
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.work.convert import Task
from coldframe.pipeline.work.merging import MergeTask

CONTENTS = 16


class Copying(InProcess):
    """Converts each distinct content once, and copies the result from then on."""

    def __init__(self) -> None:
        self._made: dict[bytes, tuple[bytes, Outcome]] = {}

    def run(self, works: Iterator[Any]) -> Iterator[Any]:
        """Returns outcomes like the outcomes of real tasks."""
        for work in works:
            if isinstance(work, MergeTask):
                yield self._merged(work)
            elif isinstance(work, Task):
                yield self._copied(work, work.staged)
            else:
                yield work.run()

    def _copied(self, work: Task, staged: str) -> Outcome:
        # Iceberg's files contain the values of their partition.
        content = Path(work.source).read_bytes() + repr(work.constants).encode()
        if content not in self._made:
            outcome = work.run()
            written = Path(outcome.files[0].staged)
            self._made[content] = (written.read_bytes(), outcome)
            written.unlink()
        written_bytes, outcome = self._made[content]
        os.makedirs(os.path.dirname(staged), exist_ok=True)
        Path(staged).write_bytes(written_bytes)
        file = replace(outcome.files[0], staged=staged)
        return replace(outcome, key=work.key, number=work.number, files=(file,))

    def _merged(self, merge: MergeTask) -> MergeOutcome:
        """Copies one file, and reports that it has the rows of all files."""
        outcomes = [self._copied(task, merge.staged) for task in merge.tasks]
        size, of = os.path.getsize(merge.staged), sum(outcome.rows for outcome in outcomes)
        name, first = f"{merge.stem}-{merge.tasks[0].key[:12]}", 0
        merged = []
        for outcome in outcomes:
            file = replace(outcome.files[0], bytes=size, first=first, of=of, name=name)
            merged.append(replace(outcome, files=(file,)))
            first += outcome.rows
        return MergeOutcome(tuple(merged))


def make(root: Path, files: int) -> None:
    """Creates a source with `files` files."""
    contents = []
    for content in range(CONTENTS):
        ids = range(content * 20, content * 20 + 20)
        rows = {"id": ids, "name": [f"customer {n}" for n in ids], "amount": [n / 4 for n in ids]}
        path = root.with_suffix(".one")
        cf.write(pa.table(rows), path, format="orc")
        contents.append(path.read_bytes())
        path.unlink()
    for number in range(files):
        folder = root / f"t{number // 10_000:02d}" / f"p={number // 500 % 20}"
        if number % 500 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:07d}_0").write_bytes(contents[number % CONTENTS])


def measured(work: Callable[[], None]) -> dict[str, float]:
    """Seconds, CPU seconds and peak MiB of a process that does only this."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def run() -> None:
        started = time.perf_counter()
        work()
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = time.perf_counter() - started
        theirs.send((seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))

    process = context.Process(target=run)
    process.start()
    theirs.close()
    seconds, cpu, memory = ours.recv()
    process.join()
    return {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "MiB": round(memory)}


def growth(rows: list[dict[str, Any]], name: str) -> float:
    """The growth exponent between the smallest and the largest number of files, by CPU seconds."""
    first, last = rows[0], rows[-1]
    more = math.log(last["files"] / first["files"])
    return math.log(last[name]["cpu"] / max(0.01, first[name]["cpu"])) / more


def main() -> None:
    """Prints a line per number of files, and the exponents."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", default="1000,10000,100000")
    parser.add_argument("--target-file-bytes", type=int, default=128 << 20, help="0: a file for each source")
    parser.add_argument("--to", default="parquet", help="delta and iceberg: with --target-file-bytes 0")
    parser.add_argument("--convert", type=int, default=0, metavar="N")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="coldframe-scale-") as place:
        for files in map(int, given.files.split(",")):
            source, target = Path(place) / f"src{files}", Path(place) / f"dst{files}"
            make(source, files)

            def run(source: Path = source, target: Path = target) -> None:
                report = migrate(
                    Copying(), source, target, to=given.to, target_file_bytes=given.target_file_bytes
                )
                assert report.exit_code == 0

            row: dict[str, Any] = {
                "files": files,
                "plan": measured(lambda source=source: dry_run(source, place + "/none", Options())),
                "driver": measured(run),
                "nothing": measured(run),
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
            shutil.rmtree(target)
            if files != given.convert:
                shutil.rmtree(source)
        if given.convert:
            source = Path(place) / f"src{given.convert}"
            if not source.exists():
                make(source, given.convert)
            whole = measured(lambda: migrate(InProcess(), source, place + "/dst"))
            print(json.dumps({"files": given.convert, "convert": whole}))
    if len(rows) > 1:
        print(
            json.dumps(
                {f"growth of {name}": round(growth(rows, name), 3) for name in ("plan", "driver", "nothing")}
            )
        )


if __name__ == "__main__":
    main()
