"""The migration as a whole: the stages one after the other, driven from here.

    inventory -> tables -> plan -> (tasks: convert, verify) -> commit -> report

Spark schedules splits and nothing else: a job is a wave of tasks, two waves are under way at any time, and
each source file is committed as soon as its last split is back, so that a run that is killed keeps what it
has done.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import pickle
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from coldframe._coldframe import SchemaError, UnsupportedError
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.convert import RESULT_SCHEMA, Task, describe, partition_function
from coldframe.pipeline.inventory import TABLES_FILE, Inventory, SourceFile, is_partition, take_inventory
from coldframe.pipeline.journal import HOME, Entry, Journal, Part
from coldframe.pipeline.plan import (
    PlannedFile,
    PlannedTable,
    file_key,
    partition_values,
    plan_files,
    table_schema,
)
from coldframe.pipeline.report import FileReport, Report, TableReport
from coldframe.pipeline.report_files import write_report
from coldframe.pipeline.session import parallelism
from coldframe.pipeline.tables import Table, TableSpec, demand_schemas, find_tables, load_tables
from coldframe.pipeline.targets import Target, find_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_ERROR = ("raise", "skip", "quarantine")
WAVES = 2
"""Jobs at once: while the slowest task of one ends, the next one fills the other cores."""
WAVE_TASKS = 4
"""Tasks of a wave for each core."""


class Progress(Protocol):
    """Is told how the work goes on."""

    def start(self, files: int, size: int) -> None: ...
    def advance(self, file: str, size: int) -> None: ...


class NoProgress:
    """Tells nobody."""

    def start(self, files: int, size: int) -> None:
        """Nothing."""

    def advance(self, file: str, size: int) -> None:
        """Nothing."""


@dataclass
class _Work:
    """A source file under way."""

    planned: PlannedFile
    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)


def migrate(
    spark: SparkSession | Callable[[], SparkSession],
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str = "parquet",
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None = None,
    on_error: str = "raise",
    untyped: bool = False,
    timestamps: str = "us",
    split_bytes: int = 128 << 20,
    compression: str = "zstd",
    verify: bool = True,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Converts every table below `src` into a table below `dst`, verified, and reports.

    Args:
        spark: the session whose executors do the work (they must see both directories), or a function that
            starts one, which is called only if there is work.
        src: the source's root. Nothing in it is changed.
        dst: an empty or new directory, or that of an earlier run, which is then resumed.
        to: `"parquet"`, `"iceberg"`, `"delta"` or `"orc"`.
        tables: a tables.toml, or its entries; None takes `src/tables.toml` where there is one.
        on_error: `"raise"`: a damaged file is not converted, only reported; `"skip"`: what can be saved is
            converted, the rest listed; `"quarantine"`: that too, and a copy of the file is kept under
            `dst/_coldframe`.
        untyped: columns of binary for tables in formats without types, where no schema is given.
        timestamps: `"us"`, which Spark, Iceberg and Delta have, or `"ns"` to keep nanoseconds in Parquet or
        ORC.
        split_bytes: how much of a source file one task converts, about.
        compression: of Parquet.
        verify: whether what was written is read back and compared.
        fresh: convert again what an earlier run has done.
        progress: is told of each finished file.
    """
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
    if timestamps not in ("us", "ns"):
        raise ValueError(f"timestamps must be 'us' or 'ns', not {timestamps!r}")
    target = find_target(to, compression=compression)
    if timestamps == "ns" and not target.nanoseconds:
        raise UnsupportedError(f"nanoseconds in {to}: its timestamps are microseconds")
    source, goal = _roots(src, dst)
    started = time.time()
    specs, tables_file = _specs(tables, source)
    inventory = take_inventory(source, [spec.path for spec in specs])
    found = find_tables(inventory, specs)
    if not untyped:
        demand_schemas(found, tables_file=tables_file)
    run = _Run(
        spark, goal, target, on_error, timestamps, split_bytes, verify, fresh, progress or NoProgress()
    )
    # Delta and Iceberg know which files are a table's; of plain directories all are.
    with Journal(goal, keep_replaced=target.register is not None) as journal:
        report = run.migrate(inventory, found, journal)
        report.started, report.seconds = started, round(time.time() - started, 3)
        journal.clear_staging()
        journal.write_manifest()
        write_report(report, os.path.join(goal, HOME))
    return report


def _roots(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> tuple[str, str]:
    roots = []
    for given in (src, dst):
        text = os.fspath(given).removeprefix("file://")
        if "://" in text:
            raise UnsupportedError(f"{text}: migrate works on file systems that all executors mount")
        roots.append(os.path.realpath(text))
    source, goal = roots
    if goal == source or goal.startswith(source + os.sep) or source.startswith(goal + os.sep):
        raise SchemaError(f"source {source} and target {goal} must not contain each other")
    return source, goal


def _specs(
    given: str | os.PathLike[str] | Sequence[TableSpec] | None, source: str
) -> tuple[list[TableSpec], str | None]:
    if given is None:
        path = os.path.join(source, TABLES_FILE)
        return (load_tables(path), path) if os.path.isfile(path) else ([], None)
    if isinstance(given, str | os.PathLike):
        return load_tables(os.fspath(given)), os.fspath(given)
    return list(given), None


@dataclass
class _Run:
    spark: SparkSession | Callable[[], SparkSession]
    goal: str
    target: Target
    on_error: str
    unit: str
    split_bytes: int
    verify: bool
    fresh: bool
    progress: Progress

    def migrate(self, inventory: Inventory, tables: list[Table], journal: Journal) -> Report:
        reports = {table.path: TableReport(table.name, table.path, table.format) for table in tables}
        report = Report(inventory.root, self.goal, self.target.name, self.on_error, list(reports.values()))
        assigned = {file.relative for table in tables for file in (*table.damaged, *table.empty)}
        report.unknown = [file.relative for file in inventory.unknown if file.relative not in assigned]
        report.unread = inventory.unread
        for table in tables:
            self._report_unreadable(table, reports[table.path])
        work = self._pending(tables, journal, reports)
        planned = self._plan(work, reports)
        planned_tables = self._schemas(tables, planned, journal, reports)
        size = sum(file.file.size for table in planned_tables for file in table.files)
        self.progress.start(sum(len(table.files) for table in planned_tables), size)
        self._convert(planned_tables, journal, reports)
        self._register(tables, journal, reports)
        self._check_files(tables, journal, reports)
        return report

    def _settings(self) -> dict[str, Any]:
        """What makes two conversions of one file different."""
        return {"to": self.target.name, "sink": repr(self.target.sink), "unit": self.unit}

    def _report_unreadable(self, table: Table, report: TableReport) -> None:
        for file in table.empty:
            report.files.append(FileReport(file.relative, "empty", bytes_in=0))
        for file in table.damaged:
            reason = f"its bytes are not those of a {table.format} file, nor of any other known format"
            self._report_failure(report, file, reason)

    def _report_failure(self, report: TableReport, file: SourceFile, error: str) -> None:
        failed = FileReport(file.relative, "failed", bytes_in=file.size, error=error)
        if self.on_error == "quarantine":
            failed.status = "quarantined"
            failed.quarantine = self._quarantine(report, file, error, [])
        report.files.append(failed)

    def _quarantine(self, report: TableReport, file: SourceFile, error: str | None, damage: list[Any]) -> str:
        """A copy of the file, and what is known of its damage beside it; the source is not touched."""
        place = os.path.join(HOME, "quarantine", *file.relative.split("/"))
        path = os.path.join(self.goal, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(file.path):
            shutil.copytree(file.path, path, dirs_exist_ok=True)
        else:
            shutil.copy2(file.path, path)
        details = {"source": file.path, "table": report.name, "error": error, "damage": damage}
        with open(path + ".damage.json", "w", encoding="utf-8") as out:
            json.dump(details, out, indent=2, default=str)
        return place.replace(os.sep, "/")

    def _pending(
        self, tables: Sequence[Table], journal: Journal, reports: dict[str, TableReport]
    ) -> list[tuple[SourceFile, Table, str]]:
        work: list[tuple[SourceFile, Table, str]] = []
        for table in tables:
            for file in table.files:
                key = file_key(file, table, self._settings())
                before = journal.done.get(file.relative)
                if before is not None and before.key == key and not self.fresh:
                    reports[table.path].files.append(FileReport.of_entry(before, file.size, earlier=True))
                else:
                    work.append((file, table, key))
        return work

    def _plan(
        self, work: list[tuple[SourceFile, Table, str]], reports: dict[str, TableReport]
    ) -> list[PlannedFile]:
        ready: list[PlannedFile] = []
        for planned in plan_files(work, split_bytes=self.split_bytes, unit=self.unit):
            if planned.error is None:
                ready.append(planned)
            else:
                self._report_failure(reports[planned.table.path], planned.file, planned.error)
        return ready

    def _schemas(
        self,
        tables: Sequence[Table],
        planned: Sequence[PlannedFile],
        journal: Journal,
        reports: dict[str, TableReport],
    ) -> list[PlannedTable]:
        result: list[PlannedTable] = []
        for table in tables:
            files = [file for file in planned if file.table is table]
            if not files:
                continue
            known = journal.schemas.get(table.path)
            schemas = [] if known is None else [_decoded(known)]
            schemas += [file.schema for file in files if file.schema is not None]
            try:
                schema = table_schema(table, schemas, partitions_inside=self.target.partitions_inside)
                for file in files:
                    partition_values(file.file, table)
            except SchemaError as error:
                for file in files:
                    self._report_failure(reports[table.path], file.file, f"SchemaError: {error}")
                continue
            journal.keep_schema(table.path, _encoded(schema))
            result.append(PlannedTable(table, schema, files))
        return result

    def _tasks(
        self, tables: Sequence[PlannedTable], under_way: dict[str, _Work], journal: Journal
    ) -> Iterator[Task]:
        salvage = "raise" if self.on_error == "raise" else "skip"
        for table in tables:
            for planned in table.files:
                under_way[planned.key] = _Work(planned)
                inside = self.target.partitions_inside
                constants = partition_values(planned.file, table.table) if inside else ()
                for number, split in enumerate(planned.splits):
                    name = f"{planned.key}-{number:04d}-{uuid.uuid4().hex[:8]}.{self.target.sink.extension}"
                    yield Task(
                        key=planned.key,
                        number=number,
                        split=split,
                        schema=table.schema,
                        names=planned.names,
                        constants=constants,
                        staged=os.path.join(journal.staging, name),
                        sink=self.target.sink,
                        on_error=salvage,
                        unit=self.unit,
                        verify=self.verify,
                    )

    def _convert(
        self, tables: Sequence[PlannedTable], journal: Journal, reports: dict[str, TableReport]
    ) -> None:
        under_way: dict[str, _Work] = {}
        tasks = self._tasks(tables, under_way, journal)
        first = next(tasks, None)
        outcomes: Iterator[dict[str, Any]] = iter(())
        if first is not None:
            spark = self.spark() if callable(self.spark) else self.spark
            outcomes = run_tasks(spark, itertools.chain([first], tasks))
        for outcome in outcomes:
            work = under_way[outcome["key"]]
            work.outcomes[outcome["number"]] = outcome
            if len(work.outcomes) == len(work.planned.splits):
                self._finish(under_way.pop(outcome["key"]), journal, reports)
        # What remains has no split at all: a file without rows.
        for work in under_way.values():
            self._finish(work, journal, reports)

    def _finish(self, work: _Work, journal: Journal, reports: dict[str, TableReport]) -> None:
        planned = work.planned
        report = reports[planned.table.path]
        outcomes = [work.outcomes[number] for number in sorted(work.outcomes)]
        errors = list(dict.fromkeys(outcome["error"] for outcome in outcomes if "error" in outcome))
        if errors:
            for outcome in outcomes:
                _discard(outcome["staged"])
            self._report_failure(report, planned.file, "; ".join(errors))
        else:
            entry = self._entry(planned, outcomes, journal.done.get(planned.file.relative))
            damage = entry.details["damage"]
            if damage and self.on_error == "quarantine":
                entry.details["quarantine"] = self._quarantine(report, planned.file, None, damage)
            journal.commit(entry)
            report.files.append(FileReport.of_entry(entry, planned.file.size))
        self.progress.advance(planned.file.relative, planned.file.size)

    def _entry(self, planned: PlannedFile, outcomes: list[dict[str, Any]], before: Entry | None) -> Entry:
        folder = _target_folder(planned)
        stem = _stem(planned.file.relative)
        parts: list[Part] = []
        for outcome in outcomes:
            if not outcome["rows"]:
                continue
            name = f"{stem}-{planned.key[:12]}-{outcome['number']:04d}.{self.target.sink.extension}"
            staged = os.path.relpath(outcome["staged"], self.goal)
            final = os.path.join(folder, name)
            checks, verified = outcome["checks"], outcome["verified"]
            parts.append(Part(staged, final, outcome["rows"], outcome["bytes"], checks, verified))
        damage = [lost for outcome in outcomes for lost in outcome["damage"]]
        details = {
            "bytes": planned.file.size,
            "rows": sum(outcome["rows"] for outcome in outcomes),
            "damage": damage,
            "verified": all(outcome["verified"] for outcome in outcomes),
            "seconds": round(sum(outcome["seconds"] for outcome in outcomes), 3),
        }
        replaces = () if before is None else tuple(part.final for part in before.parts)
        return Entry(planned.key, planned.file.relative, planned.table.path, tuple(parts), replaces, details)

    def _register(self, tables: Sequence[Table], journal: Journal, reports: dict[str, TableReport]) -> None:
        """Delta and Iceberg: the finished files become a version of the table."""
        if self.target.register is None:
            return
        for table in tables:
            if table.path not in journal.schemas:
                continue
            entries = [entry for entry in journal.done.values() if entry.table == table.path]
            committed = CommittedTable(
                table.name,
                table.path,
                _decoded(journal.schemas[table.path]),
                table.partition_fields,
                sorted(entries, key=lambda entry: entry.source),
            )
            try:
                reports[table.path].metadata = self.target.register(self.goal, committed)
            except Exception as error:
                # The files are right and stay; another run, or another target, can make a table of them.
                reports[table.path].error = f"{self.target.name}: {describe(error)}"

    def _check_files(
        self, tables: Sequence[Table], journal: Journal, reports: dict[str, TableReport]
    ) -> None:
        """The last word: each file of the table is there, with the size it had when it was verified."""
        for table in tables:
            for entry in journal.done.values():
                if entry.table == table.path:
                    reports[table.path].missing += [
                        part.final
                        for part in entry.parts
                        if not os.path.isfile(os.path.join(self.goal, part.final))
                        or os.path.getsize(os.path.join(self.goal, part.final)) != part.bytes
                    ]


def run_tasks(spark: SparkSession, tasks: Iterator[Task]) -> Iterator[dict[str, Any]]:
    """Runs tasks on the executors, and gives their outcomes as the waves come back."""
    size = WAVE_TASKS * parallelism(spark)
    with ThreadPoolExecutor(WAVES) as threads:
        flying: set[Future[list[dict[str, Any]]]] = set()
        while True:
            while len(flying) < WAVES and (wave := list(itertools.islice(tasks, size))):
                flying.add(threads.submit(_run_wave, spark, wave))
            if not flying:
                return
            landed, flying = wait(flying, return_when=FIRST_COMPLETED)
            for future in landed:
                yield from future.result()


def _run_wave(spark: SparkSession, wave: Sequence[Task]) -> list[dict[str, Any]]:
    try:
        return _run_job(spark, wave)
    except Exception as error:
        # A task reports its own errors: this is a worker that died, or Spark itself. Each task alone tells
        # which.
        if len(wave) > 1:
            return [outcome for task in wave for outcome in _run_wave(spark, [task])]
        task = wave[0]
        first = (str(error) or type(error).__name__).splitlines()[0][:500]
        reason = f"the worker process failed: {first}"
        return [
            {"key": task.key, "number": task.number, "staged": task.staged, "seconds": 0.0, "error": reason}
        ]


def _run_job(spark: SparkSession, wave: Sequence[Task]) -> list[dict[str, Any]]:
    # One row and one Spark task for each of ours. Their numbers are all that passes through the JVM.
    numbers = spark.range(0, len(wave), 1, len(wave))
    function: Callable[..., Any] = partition_function([pickle.dumps(task) for task in wave])
    with warnings.catch_warnings():
        # PySpark warns of the newest pandas, which has no part in this.
        warnings.simplefilter("ignore", FutureWarning)
        answers = numbers.mapInArrow(function, RESULT_SCHEMA)
    outcomes = [json.loads(row.result) for row in answers.collect()]
    if len(outcomes) != len(wave):
        raise RuntimeError(f"{len(wave)} tasks gave {len(outcomes)} outcomes")
    return outcomes


def _target_folder(planned: PlannedFile) -> str:
    """The table's directory and the partition's, as they are named in the source."""
    return os.path.join(planned.table.path, *(name for name in planned.file.folders if is_partition(name)))


def _stem(relative: str) -> str:
    name = relative.rsplit("/", 1)[-1]
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    # Not hidden from readers of the table, and short enough for every file system.
    return safe.lstrip("_.")[:80] or "file"


def _encoded(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode("ascii")


def _decoded(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _discard(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
