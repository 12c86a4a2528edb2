"""The migration as a whole: the stages one after the other, driven from here.

    inventory -> tables -> compare with the state -> plan -> columns -> (tasks: convert, verify)
        -> commit -> register -> look again -> report

Spark schedules splits and nothing else (`scheduling`). Each source file is committed as soon as its last
split is back (`committing`), so that a run that is killed keeps what it has done.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coldframe._coldframe import ColdframeError, SchemaError, UnsupportedError
from coldframe.file import renamed
from coldframe.pipeline import finishing, safe_list
from coldframe.pipeline.columns import settle_columns
from coldframe.pipeline.committing import Committer, Underway
from coldframe.pipeline.comparing import TableWork, compare
from coldframe.pipeline.conversion import Conversion
from coldframe.pipeline.convert import Cause, describe
from coldframe.pipeline.destination import Destination
from coldframe.pipeline.identity import is_unchanged
from coldframe.pipeline.inventory import TABLES_FILE, Inventory, SourceFile, take_inventory
from coldframe.pipeline.journal import HOME, Journal
from coldframe.pipeline.left_out import look_for_left_out
from coldframe.pipeline.listed import take_listed
from coldframe.pipeline.looks import Looks
from coldframe.pipeline.metastore import hold
from coldframe.pipeline.naming import name_tables
from coldframe.pipeline.options import Options
from coldframe.pipeline.places import StorageOptions, exists, root_of, with_one_name
from coldframe.pipeline.plan import PlannedFile
from coldframe.pipeline.planning import plan_table
from coldframe.pipeline.progress import NoProgress, Progress, Timeline
from coldframe.pipeline.proposing import demand_schemas
from coldframe.pipeline.registered import Registered, read_registered
from coldframe.pipeline.report import FileReport, Report, TableReport
from coldframe.pipeline.report_files import write_report
from coldframe.pipeline.scheduling import InProcess, Scheduler, SparkScheduler
from coldframe.pipeline.selection import select
from coldframe.pipeline.shared import SharedByTables
from coldframe.pipeline.stored import open_destination
from coldframe.pipeline.tables import Table, TableSpec, find_tables, load_tables
from coldframe.pipeline.targets import Target, find_target
from coldframe.pipeline.unmatched import unmatched
from coldframe.sources import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def migrate(
    spark: SparkSession | Callable[[], SparkSession] | InProcess,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str = "parquet",
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None = None,
    on_error: str = "raise",
    on_vanished: str = "fail",
    most_vanished: float = 0.5,
    dropped: Sequence[str] = (),
    on_foreign_changes: str = "refuse",
    leave_behind: Sequence[str] = (),
    allow_loss: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    metastore: str | None = None,
    untyped: bool = False,
    timestamp_unit: str = "us",
    split_bytes: int = 128 << 20,
    target_file_bytes: int = 128 << 20,
    codec: str = "zstd",
    verify: bool = True,
    fresh: bool = False,
    progress: Progress | None = None,
    source_storage_options: StorageOptions = None,
    target_storage_options: StorageOptions = None,
    timestamps: str | None = None,
    compression: str | None = None,
) -> Report:
    """Converts every table below `src` into a table below `dst`, verified, and reports.

    Args:
        spark: the session whose executors do the work (they must see both directories), or a function that
            starts one, which is called if there is work, and again when its JVM has died. `InProcess()` works
            without Spark.
        src: the source's root: a path, or a URL that can be listed. Nothing in it is changed.
        dst: an empty or new directory, or that of an earlier run, which is then resumed: a path, or a URL of
            HDFS, S3, Google or Azure.
        to: `"parquet"`, `"iceberg"`, `"delta"` or `"orc"`.
        tables: a tables.toml, or its entries; None takes `src/tables.toml` where there is one.
        on_error: `"raise"`: a damaged file is not converted, only reported; `"skip"`: what can be saved is
            converted, the rest listed; `"quarantine"`: that too, and a copy of the file is kept under
            `dst/_coldframe`.
        on_vanished: sources that an earlier run converted, and that are gone: `"fail"`: the report says so
            and nothing new of their tables is taken; `"keep"`: their rows stay; `"remove"`: their rows are
            taken out of the target.
        most_vanished: of what an earlier run converted of a table, how much may be gone for `"remove"` to
            take it out, by the bytes of the sources: an empty mount point looks like a source whose every
            file was deleted.
        dropped: names or paths of tables, or patterns of them, that may be gone altogether; where SRC is
            empty, only these are taken out.
        on_foreign_changes: a Delta or Iceberg table that others have written to: `"refuse"`: it is left as it
            is; `"append"`: what is new is added to it.
        leave_behind: what of a directory (of HBase, Kudu) need not be in the target for it to be listed as
            safe to delete: `"tables"`, `"snapshots"`, `"older-versions"`, ..; `"tables=ns:old"` is that one.
        allow_loss: changes of values that keep no source off that list: `"digits-below-microseconds"`,
            `"malformed-text"`, ..
        include, exclude: patterns of the files that are meant: see `selection`.
        metastore: `thrift://host:9083` of a Hive metastore: the rows that come from the locations of its
            tables and partitions are held against the numbers that it has of them.
        untyped: columns of binary for tables in formats without types, where no schema is given.
        timestamp_unit: `"us"`, which Spark, Iceberg and Delta have, or `"ns"` to keep nanoseconds in Parquet
            or ORC.
        split_bytes: how much of a source file one task converts, about.
        target_file_bytes: how large files of the target become, about: small sources of a partition are
            merged into one, and of Parquet a split is cut into several. 0: at least one file for each source.
        codec: of Parquet: `"zstd"`, `"snappy"`, `"gzip"` or `"none"`.
        verify: whether what was written is read back and compared.
        fresh: convert again what an earlier run has done; the earlier result stays until the new one stands.
        progress: is told of each finished file.
        source_storage_options, target_storage_options: how the stores of `src` and `dst` are reached, where
            those are URLs: see docs/stores.md. They travel with the tasks, and nowhere else.
        timestamps, compression: the names that `timestamp_unit` and `codec` had; deprecated.
    """
    options = Options(
        to=to,
        on_error=on_error,
        on_vanished=on_vanished,
        most_vanished=most_vanished,
        dropped=tuple(dropped),
        on_foreign_changes=on_foreign_changes,
        leave_behind=tuple(leave_behind),
        allow_loss=tuple(allow_loss),
        untyped=untyped,
        timestamp_unit=renamed("timestamps", timestamps, "timestamp_unit", timestamp_unit),
        split_bytes=split_bytes,
        target_file_bytes=target_file_bytes,
        compression=renamed("compression", compression, "codec", codec),
        verify=verify,
        fresh=fresh,
        metastore=metastore,
        selection=select(include, exclude),
        source_storage_options=source_storage_options,
        target_storage_options=target_storage_options,
    )
    started = time.time()
    target = target_of(options)
    source, goal = roots_of(src, dst)
    registered = registered_of(options, source)
    scheduler = spark if isinstance(spark, InProcess) else SparkScheduler(spark)
    inventory, found = look(source, tables, options, scheduler)
    destination = open_destination(goal, options.target_storage_options)
    run = _Run(scheduler, destination, target, options, progress or NoProgress(), registered)
    # Delta and Iceberg know which files are a table's; of plain directories all are.
    with Journal(run.destination, keep_replaced=target.register is not None) as journal:
        # It is of the target as it was: until this run is through, nothing is promised.
        run.destination.delete(safe_list.SAFE)
        report = run.migrate(inventory, found, journal)
        report.started, report.seconds = started, round(time.time() - started, 3)
        journal.end()
        journal.clear_staging()
        journal.write_manifest()
        write_report(report, run.destination)
        journal.compact()
    return report


def target_of(options: Options) -> Target:
    """The target that is asked for."""
    target = find_target(options.to, compression=options.compression, unit=options.timestamp_unit)
    if options.timestamp_unit == "ns" and not target.nanoseconds:
        raise UnsupportedError(f"nanoseconds in {options.to}: its timestamps are microseconds")
    return target


def roots_of(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> tuple[str, str]:
    """The two roots: absolute paths, or URLs without a slash at their end."""
    source, goal = root_of(src), root_of(dst)
    one, other = (with_one_name(root) + "/" for root in (source, goal))
    if one.startswith(other) or other.startswith(one):
        raise SchemaError(f"source {source} and target {goal} must not contain each other")
    return source, goal


def registered_of(options: Options, source: str) -> Registered | None:
    """What a metastore has below the source, where one is named: before anything is done."""
    if options.metastore is None:
        return None
    return read_registered(options.metastore, source, options.selection)


def look(
    source: str,
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None,
    options: Options,
    scheduler: Scheduler | None = None,
) -> tuple[Inventory, list[Table]]:
    """What lies in the source, and the tables that it makes."""
    storage_options = options.source_storage_options
    specs, tables_file = _specs(tables, source, storage_options)
    named = [spec.path for spec in specs]
    if is_remote(source):
        inventory = take_listed(source, named, options.selection, storage_options, scheduler=scheduler)
    else:
        inventory = take_inventory(source, named, options.selection, scheduler=scheduler)
    found = find_tables(inventory, specs)
    if not options.untyped:
        demand_schemas(found, tables_file=tables_file)
    return inventory, found


def _specs(
    given: str | os.PathLike[str] | Sequence[TableSpec] | None,
    source: str,
    storage_options: StorageOptions,
) -> tuple[list[TableSpec], str | None]:
    if given is None:
        path = f"{source}/{TABLES_FILE}"
        return (load_tables(path, storage_options), path) if exists(path, storage_options) else ([], None)
    if isinstance(given, str | os.PathLike):
        return load_tables(os.fspath(given), storage_options), os.fspath(given)
    return list(given), None


@dataclass
class _Run:
    scheduler: Scheduler
    destination: Destination
    target: Target
    options: Options
    progress: Progress
    registered: Registered | None = None
    timeline: Timeline = field(default_factory=Timeline)

    def migrate(self, inventory: Inventory, tables: list[Table], journal: Journal) -> Report:
        report = Report(inventory.root, self.destination.root, self.target.name, self.options.on_error, [])
        report.on_vanished, report.excluded = self.options.on_vanished, inventory.excluded
        report.unread = inventory.unread
        if self.options.fresh:
            journal.begin_fresh()
        name_tables(tables, journal.state, inventory)
        nowhere = unmatched(inventory, tables, journal.state)
        if nowhere:
            report.tell("unmatched", len(nowhere), ", ".join(nowhere[:3]))
        works = compare(inventory, tables, journal, self.options, self.target, self._live)
        report.tables, report.unknown = [work.report for work in works], sorted(inventory.stray)
        for work in works:
            work.report.allowed = frozenset(self.options.allow_loss)
            self._report_unreadable(work)
            if work.table.files:
                journal.keep_table(work.table.path, self._about(work.table))
        self._plan(works, journal)
        self._convert(works, journal)
        journal.end_fresh()
        finishing.register(works, journal, self.target, self.options)
        finishing.look_again(works, journal, self.target, self.options)
        finishing.tell_partial(works, self.options.timestamp_unit)
        if self.registered is not None:
            report.metastore = hold(self.registered, works, inventory, self.options)
        report.timeline = self.timeline.to_json()
        left_out = look_for_left_out(works, self.options)
        report.left_out = [one for found in left_out.values() for one in found]
        report.hidden, report.hidden_names = inventory.hidden, inventory.hidden_names
        report.safe_to_delete = finishing.write_safe_list(
            works, self.destination, inventory.root, left_out, self.options
        )
        return report

    def _about(self, table: Table) -> dict[str, str]:
        about = {"name": table.name, "to": self.target.name, "unit": self.options.timestamp_unit}
        return {**about, "place": table.place, "format": table.format}

    def _live(self, table: Table) -> set[str] | None:
        return self.target.lists(self.destination, table.name, table.path)

    def _report_unreadable(self, work: TableWork) -> None:
        for file in work.table.empty:
            work.files.append(FileReport(file.relative, "empty", bytes_in=0))
        for file in work.table.damaged:
            reason = f"its bytes are not of the format {work.table.format}, nor of any other that is known"
            same = is_unchanged(file.path, file.identity, file.storage_options)
            self._fail(work, file, reason, "damaged" if same else "changed")

    def _fail(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None:
        """A source is not converted. Only damage of its own is quarantined, where that is asked for."""
        status = "changed" if cause == "changed" else "failed"
        failed = FileReport(file.relative, status, bytes_in=file.size, error=error)
        if self.options.on_error == "quarantine" and cause == "damaged":
            try:
                failed.quarantine = self._quarantine(work.report, file, error, [])
                failed.status = "quarantined"
            except (ColdframeError, OSError) as reason:
                failed.error = f"{error}; no copy of it could be kept: {describe(reason)}"
        work.files.append(failed)

    def _salvaged(self, work: TableWork, planned: PlannedFile, damage: list[Any]) -> str | None:
        if self.options.on_error != "quarantine":
            return None
        try:
            return self._quarantine(work.report, planned.file, None, damage)
        except (ColdframeError, OSError) as error:
            work.report.tell("no_copy", detail=f"{planned.file.relative}: {describe(error)}")
            return None

    def _quarantine(self, report: TableReport, file: SourceFile, error: str | None, damage: list[Any]) -> str:
        """A copy of the file, and what is known of its damage beside it; the source is not touched."""
        place = f"{HOME}/quarantine/{file.relative}"
        self.destination.copy_in(file.path, place, file.storage_options)
        details = {"source": file.path, "table": report.name, "error": error, "damage": damage}
        content = json.dumps(details, indent=2, default=str).encode()
        self.destination.write(f"{place}.damage.json", content)
        return place

    def _plan(self, works: Sequence[TableWork], journal: Journal) -> None:
        """Opens what is to be converted, and gives each table its columns."""
        plan = functools.partial(
            plan_table,
            scheduler=self.scheduler,
            options=self.options,
            fail=self._fail,
            shared=SharedByTables(),
        )
        for work in works:
            plan(work, work.work)
            settle_columns(work, journal.state, self.target, plan, self._fail)

    def _convert(self, works: Sequence[TableWork], journal: Journal) -> None:
        committer = Committer(
            journal,
            extension=self.target.sink.extension,
            fail=self._fail,
            salvaged=self._salvaged,
        )
        for work in works:
            work.left = len(work.planned)
        self.progress.start(
            sum(bool(work.left) for work in works),
            sum(work.left for work in works),
            sum(one.file.size for work in works for one in work.planned),
        )
        under_way: dict[str, Underway] = {}

        def finish(one: Underway) -> None:
            committer.finish(one)
            one.work.left -= 1
            if one.work.careful and not one.work.left:
                committer.publish(one.work)

        conversion = Conversion(self.options, self.target, self.destination, journal, committer, under_way)
        with Looks(finish) as looks:
            self._take(self.scheduler.run(conversion.tasks(works, looks.finish)), under_way, committer, looks)
        for work in works:
            if work.careful and not work.planned:
                committer.publish(work)
        committer.flush()

    def _take(
        self,
        answers: Iterator[dict[str, Any]],
        under_way: dict[str, Underway],
        committer: Committer,
        looks: Looks,
    ) -> None:
        """Takes what comes back, until all of it is."""
        for answer in answers:
            # Sources that share a file of the target come together.
            for outcome in answer.get("sources", [answer]):
                one = under_way.get(outcome["key"])
                if one is None or outcome["number"] in one.outcomes:
                    # Another attempt at what was accepted already.
                    continue
                one.outcomes[outcome["number"]] = outcome
                self._tell(one, outcome)
                if len(one.outcomes) == len(one.planned.parts):
                    looks.finish(under_way.pop(outcome["key"]))
                else:
                    committer.keep(one, outcome["number"])
            looks.settle()
            committer.settle()
        looks.settle(wait_for_all=True)

    def _tell(self, one: Underway, outcome: dict[str, Any]) -> None:
        size, rows = one.planned.file.size // len(one.planned.parts), int(outcome.get("rows", 0))
        self.timeline.add(size, rows)
        self.progress.advance(one.work.table.name, size, rows)
