"""The migration as a whole: the stages one after the other, driven from here.

    inventory -> tables -> plan -> (tasks: convert, verify) -> commit -> report

Spark schedules splits and nothing else (`scheduling`). Each source file is committed as soon as its last
split is back, so that a run that is killed keeps what it has done.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from coldframe._coldframe import SchemaError, UnsupportedError
from coldframe.file import renamed
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.convert import Task, describe
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
from coldframe.pipeline.scheduling import InProcess, Scheduler, SparkScheduler
from coldframe.pipeline.tables import Table, TableSpec, demand_schemas, find_tables, load_tables
from coldframe.pipeline.targets import Target, find_target
from coldframe.pipeline.widening import shape_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_ERROR = ("raise", "skip", "quarantine")


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
    schema: pa.Schema
    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)


def migrate(
    spark: SparkSession | Callable[[], SparkSession] | InProcess,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str = "parquet",
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None = None,
    on_error: str = "raise",
    untyped: bool = False,
    timestamp_unit: str = "us",
    split_bytes: int = 128 << 20,
    compression: str = "zstd",
    verify: bool = True,
    fresh: bool = False,
    progress: Progress | None = None,
    timestamps: str | None = None,
) -> Report:
    """Converts every table below `src` into a table below `dst`, verified, and reports.

    Args:
        spark: the session whose executors do the work (they must see both directories), or a function that
            starts one, which is called if there is work, and again when its JVM has died. `InProcess()` works
            without Spark.
        src: the source's root. Nothing in it is changed.
        dst: an empty or new directory, or that of an earlier run, which is then resumed.
        to: `"parquet"`, `"iceberg"`, `"delta"` or `"orc"`.
        tables: a tables.toml, or its entries; None takes `src/tables.toml` where there is one.
        on_error: `"raise"`: a damaged file is not converted, only reported; `"skip"`: what can be saved is
            converted, the rest listed; `"quarantine"`: that too, and a copy of the file is kept under
            `dst/_coldframe`.
        untyped: columns of binary for tables in formats without types, where no schema is given.
        timestamp_unit: `"us"`, which Spark, Iceberg and Delta have, or `"ns"` to keep nanoseconds in Parquet
            or ORC.
        split_bytes: how much of a source file one task converts, about.
        compression: of Parquet.
        verify: whether what was written is read back and compared.
        fresh: convert again what an earlier run has done.
        progress: is told of each finished file.
        timestamps: the name that `timestamp_unit` had; deprecated.
    """
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
    timestamp_unit = renamed("timestamps", timestamps, "timestamp_unit", timestamp_unit)
    if timestamp_unit not in ("us", "ns"):
        raise ValueError(f"timestamp_unit must be 'us' or 'ns', not {timestamp_unit!r}")
    target = find_target(to, compression=compression, unit=timestamp_unit)
    if timestamp_unit == "ns" and not target.nanoseconds:
        raise UnsupportedError(f"nanoseconds in {to}: its timestamps are microseconds")
    source, goal = _roots(src, dst)
    started = time.time()
    specs, tables_file = _specs(tables, source)
    inventory = take_inventory(source, [spec.path for spec in specs])
    found = find_tables(inventory, specs)
    if not untyped:
        demand_schemas(found, tables_file=tables_file)
    scheduler = spark if isinstance(spark, InProcess) else SparkScheduler(spark)
    run = _Run(
        scheduler, goal, target, on_error, timestamp_unit, split_bytes, verify, fresh, progress or NoProgress()
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
    scheduler: Scheduler
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
        self._register(planned_tables, journal, reports)
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

    def _report_failure(
        self, report: TableReport, file: SourceFile, error: str, *, changed: bool = False
    ) -> None:
        status = "changed" if changed else "failed"
        failed = FileReport(file.relative, status, bytes_in=file.size, error=error)
        if self.on_error == "quarantine" and not changed:
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
                report = reports[planned.table.path]
                self._report_failure(report, planned.file, planned.error, changed=planned.changed)
        return ready

    def _schemas(
        self,
        tables: Sequence[Table],
        planned: Sequence[PlannedFile],
        journal: Journal,
        reports: dict[str, TableReport],
    ) -> list[PlannedTable]:
        """The columns of each table, by the files that it has now: those of earlier runs count with what they
        had in the source, and are converted again where they lie in another type.
        """
        result: list[PlannedTable] = []
        by_table: dict[str, list[PlannedFile]] = {}
        for one in planned:
            by_table.setdefault(one.table.path, []).append(one)
        for table in tables:
            files = by_table.get(table.path, [])
            done = self._done_files(table, files, journal)
            if not files and not done:
                continue
            schemas: dict[str, tuple[str, pa.Schema]] = {}
            for file, entry in done:
                known = str(entry.details["schema"])
                schemas.setdefault(known, (file.relative, _decoded(journal.schemas[known])))
            for one in files:
                if one.schema is not None:
                    schemas.setdefault(_schema_id(one.schema), (one.file.relative, one.schema))
            try:
                schema = table_schema(
                    table, schemas.values(), partitions_inside=self.target.partitions_inside
                )
                for one in files:
                    partition_values(one.file, table)
            except SchemaError as error:
                for one in files:
                    self._report_failure(reports[table.path], one.file, f"SchemaError: {error}")
                if not files:
                    reports[table.path].error = f"SchemaError: {error}"
                continue
            files += self._outdated(table, schema, done, journal, reports[table.path])
            result.append(PlannedTable(table, schema, files))
        return result

    def _done_files(
        self, table: Table, files: Sequence[PlannedFile], journal: Journal
    ) -> list[tuple[SourceFile, Entry]]:
        """The table's files that an earlier run has converted."""
        again = {one.file.relative for one in files}
        done = ((file, journal.done.get(file.relative)) for file in table.files)
        return [(file, entry) for file, entry in done if entry is not None and file.relative not in again]

    def _outdated(
        self,
        table: Table,
        schema: pa.Schema,
        done: Sequence[tuple[SourceFile, Entry]],
        journal: Journal,
        report: TableReport,
    ) -> list[PlannedFile]:
        """Files that were written in other types than the table has by now, planned once more.

        Readers take a table's types from one of its files: what lies beside it must have them too.
        """
        now = _schema_id(schema)
        late = [
            (file, table, entry.key)
            for file, entry in done
            if entry.parts and entry.details["written"] != now and self._must_rewrite(entry, schema, journal)
        ]
        names = {file.relative for file, _, _ in late}
        report.files = [one for one in report.files if one.source not in names]
        return self._plan(late, {table.path: report}) if late else []

    def _must_rewrite(self, entry: Entry, schema: pa.Schema, journal: Journal) -> bool:
        before, now = (
            {field.name: shape_of(field.type) for field in one}
            for one in (_decoded(journal.schemas[entry.details["written"]]), schema)
        )
        # Delta and Iceberg have the columns by themselves: a file may lack some.
        return before != now if self.target.register is None else bool(before.items() - now.items())

    def _tasks(
        self, tables: Sequence[PlannedTable], under_way: dict[str, _Work], journal: Journal
    ) -> Iterator[Task]:
        salvage = "raise" if self.on_error == "raise" else "skip"
        for table in tables:
            for planned in table.files:
                under_way[planned.key] = _Work(planned, table.schema)
                inside = self.target.partitions_inside
                constants = partition_values(planned.file, table.table) if inside else ()
                for number, split in enumerate(planned.splits):
                    name = f"{planned.key}-{number:04d}.{self.target.sink.extension}"
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
                        bytes=planned.file.size // len(planned.splits),
                        source=planned.file.path,
                        identity=planned.file.identity,
                    )

    def _convert(
        self, tables: Sequence[PlannedTable], journal: Journal, reports: dict[str, TableReport]
    ) -> None:
        under_way: dict[str, _Work] = {}
        for outcome in self.scheduler.run(self._tasks(tables, under_way, journal)):
            work = under_way.get(outcome["key"])
            if work is None or outcome["number"] in work.outcomes:
                # Another attempt at what was accepted already.
                continue
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
        errors = errors or _losses(planned, outcomes)
        if errors:
            for outcome in outcomes:
                _discard(outcome.get("staged"))
            changed = any(outcome.get("changed") for outcome in outcomes)
            self._report_failure(report, planned.file, "; ".join(errors), changed=changed)
        else:
            entry = self._entry(work, outcomes, journal)
            damage = entry.details["damage"]
            if damage and self.on_error == "quarantine":
                entry.details["quarantine"] = self._quarantine(report, planned.file, None, damage)
            journal.commit(entry)
            report.files.append(FileReport.of_entry(entry, planned.file.size))
        self.progress.advance(planned.file.relative, planned.file.size)

    def _entry(self, work: _Work, outcomes: list[dict[str, Any]], journal: Journal) -> Entry:
        planned, before = work.planned, journal.done.get(work.planned.file.relative)
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
            "schema": _keep(journal, planned.schema),
            "written": _keep(journal, work.schema),
        }
        replaces = () if before is None else tuple(part.final for part in before.parts)
        return Entry(planned.key, planned.file.relative, planned.table.path, tuple(parts), replaces, details)

    def _register(
        self, tables: Sequence[PlannedTable], journal: Journal, reports: dict[str, TableReport]
    ) -> None:
        """Delta and Iceberg: the finished files become a version of the table."""
        if self.target.register is None:
            return
        by_table: dict[str, list[Entry]] = {}
        for entry in journal.done.values():
            by_table.setdefault(entry.table, []).append(entry)
        for planned in tables:
            table, entries = planned.table, by_table.get(planned.table.path, [])
            if not entries:
                continue
            committed = CommittedTable(
                table.name,
                table.path,
                planned.schema,
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


def _losses(planned: PlannedFile, outcomes: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with a file as a whole whose every part is right in itself."""
    rows = sum(outcome["rows"] for outcome in outcomes)
    damaged = any(outcome["damage"] for outcome in outcomes)
    if damaged and not rows:
        reasons = [f"{lost['structure']}: {lost['reason']}" for one in outcomes for lost in one["damage"]]
        return [f"CorruptFileError: none of its rows could be saved; {reasons[0]}"]
    if not damaged and planned.rows is not None and rows != planned.rows:
        return [
            f"VerificationError: {planned.file.relative} has {planned.rows} rows, as it says; "
            f"{rows} were decoded"
        ]
    return []


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


def _schema_id(schema: pa.Schema) -> str:
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()[:16]


def _keep(journal: Journal, schema: pa.Schema) -> str:
    """Remembers columns once, and gives the name under which files have them."""
    name = _schema_id(schema)
    journal.keep_schema(name, _encoded(schema))
    return name


def _discard(path: str | None) -> None:
    if path is not None and os.path.exists(path):
        os.unlink(path)
