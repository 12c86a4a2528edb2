"""Migrates whole directory trees: finds tables, converts them, verifies every row, and reports.

    from coldframe.pipeline import migrate

    report = migrate(spark, "/warehouse", "/lake", to="parquet", on_error="quarantine")
    report.exit_code, report.rows, report.verified

A file of the source goes through these packages, from top to bottom:

    source/    the contents of the source: listing, tables.toml, a metastore's definitions
    plan/      the work to do: comparison with the state, columns, splits, groups
    work/      tasks that convert and verify in any process; commits of their outcomes
    state/     what is kept between runs: the journal; lists that are too long for memory
    adopt/     in place of all this: Iceberg tables over files that stay where they are
    sink/      the target: a directory or store, Parquet and ORC files, Delta and Iceberg tables
    report/    output for people: the verdict, pages, progress, the list of what is safe to delete

`records` defines the data that passes between them. `scheduling` runs the tasks, on Spark's executors or in
threads.

`coldframe migrate` on the command line does the same with its own Spark session. This package's `__main__` is
a script for `spark-submit`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from coldframe._coldframe import NotFoundError, UnsupportedError
from coldframe.hive.addresses import is_metastore
from coldframe.pipeline.adopt import REPORT as ADOPTIONS
from coldframe.pipeline.adopt import Adoption
from coldframe.pipeline.adopt import adopt as run_adoption
from coldframe.pipeline.adopt.spark_proof import reader_of
from coldframe.pipeline.adopt.switching import unswitch as unswitch_adopted
from coldframe.pipeline.file_access import StorageOptions, root_of
from coldframe.pipeline.options import Options, minutes_of
from coldframe.pipeline.plan.plan_tables import in_order, plan_tables
from coldframe.pipeline.plan.reconcile import compare
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.adoption_audit import audit_adoption
from coldframe.pipeline.report.adoption_page import write_page
from coldframe.pipeline.report.audit import Audit
from coldframe.pipeline.report.deletion import Deleter, Deletion, preview
from coldframe.pipeline.report.files import write_definitions, write_report
from coldframe.pipeline.report.last_look import look_again, report_partial, write_safe_list
from coldframe.pipeline.report.left_out import look_for_left_out
from coldframe.pipeline.report.metastore import compare_preview, compare_run
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.preview import Preview, new_preview
from coldframe.pipeline.report.progress import NoProgress, Progress
from coldframe.pipeline.report.status import Status, status_of
from coldframe.pipeline.scheduling import InProcess, Pace, Scheduler, SparkScheduler
from coldframe.pipeline.sink.destination import HOME, Destination, open_destination
from coldframe.pipeline.sink.targets import Target, find_target
from coldframe.pipeline.source.defined import DefinedSource, read_defined
from coldframe.pipeline.source.defined_files import check_apart, look_at_defined
from coldframe.pipeline.source.iceberg_files import tables_in_use
from coldframe.pipeline.source.naming import name_tables
from coldframe.pipeline.source.registered import read_registered, registered_of
from coldframe.pipeline.source.selection import select
from coldframe.pipeline.source.survey import Survey, lay_out, look, roots_of
from coldframe.pipeline.source.tables import TableSpec
from coldframe.pipeline.source.unmatched import unmatched
from coldframe.pipeline.state.journal import Journal, State, read_state
from coldframe.pipeline.work.by_spark import check_spark
from coldframe.pipeline.work.registering import register
from coldframe.pipeline.work.run import Run
from coldframe.pipeline.work.switching import check_unswitched
from coldframe.pipeline.work.switching import switch as switch_names
from coldframe.pipeline.work.switching import unswitch as unswitch_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "InProcess",
    "Options",
    "Report",
    "adopt_in_place",
    "audit",
    "delete",
    "dry_run",
    "migrate",
    "migrate_with",
    "status",
    "unswitch",
]

_Tables = str | os.PathLike[str] | Sequence[TableSpec] | None


def migrate(
    spark: SparkSession | Callable[[], SparkSession] | InProcess,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str = "parquet",
    files: str = "parquet",
    tables: _Tables = None,
    on_error: str = "raise",
    on_vanished: str = "fail",
    most_vanished: float = 0.5,
    archived_rows: str = "ask",
    dropped: Sequence[str] = (),
    on_foreign_changes: str = "refuse",
    leave_behind: Sequence[str] = (),
    allow_loss: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    metastore: str | None = None,
    only: Sequence[str] = (),
    locations: Mapping[str, str] | None = None,
    others: str = "list",
    catalog: str | None = None,
    namespace: str | None = None,
    rename: Mapping[str, str] | None = None,
    suffix: str = "",
    switch: bool = False,
    untyped: bool = False,
    timestamp_unit: str = "us",
    split_bytes: int = 128 << 20,
    target_file_bytes: int = 128 << 20,
    codec: str = "zstd",
    verify: bool = True,
    fresh: bool = False,
    adopt: bool = False,
    prove: str = "pyiceberg",
    detach: Sequence[str] = (),
    order: str = "listed",
    waves: Sequence[str] = (),
    max_bytes_per_second: int | None = None,
    window: str | None = None,
    progress: Progress | None = None,
    source_storage_options: StorageOptions = None,
    target_storage_options: StorageOptions = None,
) -> Report:
    """Converts every table below `src` into a table below `dst`, verified, and reports.

    Args:
        spark: the session whose executors do the work (they must see both directories), or a function that
            starts a session: called when there is work, and again if the JVM has died. `InProcess()` works
            without Spark.
        src: the root of the source, a path or a URL that can be listed; or
            `thrift://host:9083/[database[.table]]`, the tables that a Hive metastore defines; or a file with
            such definitions, that is, a dump of a metastore's database or a script of CREATE TABLE. Nothing
            in the source is changed.
        dst: an empty or new directory, or the target of an earlier run, which is then continued: a path, or a
            URL of HDFS, S3, Google or Azure.
        to: `"parquet"`, `"iceberg"`, `"delta"` or `"orc"`.
        files: the format of an Iceberg table's files: `"parquet"` or `"orc"`.
        tables: a tables.toml, or its entries; None takes `src/tables.toml` if it exists. For tables of a
            metastore, entries may only set their layout as Iceberg tables.
        on_error: what happens to a damaged file. `"raise"` only reports it; `"skip"` converts what can be
            saved and lists the rest; `"quarantine"` does the same and keeps a copy of the file under
            `dst/_coldframe`.
        on_vanished: what happens if sources that an earlier run converted are gone. `"fail"` reports them and
            converts no new files of their tables; `"keep"` keeps their rows; `"remove"` removes their rows
            from the target.
        most_vanished: the largest share of a table that `"remove"` may remove in one run, by the bytes of the
            sources. An empty mount point looks like a source whose every file was deleted.
        archived_rows: what happens to rows of sources that an earlier run listed as safe to delete, if they
            are gone now (and `on_vanished` is `"remove"`), or other files lie under their names: the target
            may have the only copy. `"ask"` keeps the rows, converts no such file and fails; `"keep"` keeps
            the rows of sources that are gone; `"drop"` treats these sources like all others.
        dropped: names, paths or patterns of tables that `"remove"` may remove entirely. If `src` is empty,
            only these are removed.
        on_foreign_changes: what happens to a Delta or Iceberg table that others have written to. `"refuse"`
            leaves it unchanged; `"append"` adds new files.
        leave_behind: parts of a directory of HBase or Kudu that may be missing from the target although the
            directory is listed as safe to delete: `"tables"`, `"snapshots"`, `"older-versions"`, .., or a
            single one: `"tables=ns:old"`.
        allow_loss: changes of values with which a source may still be listed: `"digits-below-microseconds"`,
            `"malformed-text"`, ..
        include, exclude: patterns that select files: see `selection`.
        metastore: `thrift://host:9083` of a Hive metastore. The rows migrated from the location of each table
            and partition are compared with the counts in the metastore.
        only: if `src` is a metastore, patterns `database.table` of the tables to migrate.
        locations: if `src` is a metastore, prefixes of locations and their replacements, for files that were
            copied: `{"hdfs://old/": "/mnt/"}`.
        others: if `src` is a metastore, what happens to partitions in Parquet, Avro, text and SequenceFiles.
            `"list"` leaves them out and reports them; `"spark"` reads them with the session, which needs Hive
            support.
        catalog: where tables are registered. For Iceberg, the name of a catalog in PyIceberg's configuration
            (default: a catalog file below `dst`); for Parquet and Delta, a Hive metastore,
            `thrift://host:9083[/database]`.
        namespace, rename, suffix: the tables' names in that catalog: a namespace for all; `{"old": "new"}`
            for some; a suffix for the others. See docs/catalogs.md.
        switch: gives each verified table the name of the metastore's table that it was made from, which is
            renamed: see `unswitch`.
        untyped: reads tables in formats without types as binary columns if no schema is given.
        timestamp_unit: `"us"`, which Spark, Iceberg and Delta have, or `"ns"` to keep nanoseconds in Parquet
            or ORC.
        split_bytes: about how much of a source file one task converts.
        target_file_bytes: the approximate size of target files. Small sources of a partition are merged, and
            large splits become several files. 0: at least one file for each source.
        codec: compression of Parquet: `"zstd"`, `"snappy"`, `"gzip"` or `"none"`.
        verify: whether everything written is read back and compared.
        fresh: converts again what an earlier run has done. The earlier result stays until the new one is
            complete.
        adopt: makes Iceberg tables over the files where they are, and converts only files that no metadata
            can make right; works in this process, without `spark`: see docs/adopting.md.
        prove: who must read the rows of an adopted table before it is verified: `"pyiceberg"`; or `"spark"`,
            PyIceberg and `spark`, a session with Iceberg's runtime.
        detach: names or patterns of adopted tables whose files in the source are converted as well.
        order: which tables are converted first: as `"listed"`, by `"size"` (the largest first), `"age"` (the
            oldest first) or `"name"`.
        waves: names, paths or patterns of tables that come before all others, in this order.
        max_bytes_per_second: how much of the source tasks may read in a second, on average.
        window: the hours in which tasks start, `"22:00-06:00"` in local time; a run waits for them.
        progress: is notified of each finished file.
        source_storage_options, target_storage_options: credentials and settings for the stores of `src` and
            `dst`, if these are URLs: see docs/stores.md. These options go to the tasks and nowhere else.
    """
    options = Options(
        to=to,
        files=files,
        on_error=on_error,
        on_vanished=on_vanished,
        most_vanished=most_vanished,
        archived_rows=archived_rows,
        dropped=tuple(dropped),
        on_foreign_changes=on_foreign_changes,
        leave_behind=tuple(leave_behind),
        allow_loss=tuple(allow_loss),
        untyped=untyped,
        timestamp_unit=timestamp_unit,
        split_bytes=split_bytes,
        target_file_bytes=target_file_bytes,
        compression=codec,
        verify=verify,
        fresh=fresh,
        adopt=adopt,
        prove=prove,
        detach=tuple(detach),
        metastore=metastore,
        tables=tuple(only),
        locations=dict(locations or {}),
        others=others,
        catalog=catalog,
        namespace=namespace,
        rename=dict(rename or {}),
        suffix=suffix,
        switch=switch,
        order=order,
        waves=tuple(waves),
        max_bytes_per_second=max_bytes_per_second,
        window=window,
        selection=select(include, exclude),
        source_storage_options=source_storage_options,
        target_storage_options=target_storage_options,
    )
    return migrate_with(spark, src, dst, options, tables=tables, progress=progress)


def adopt_in_place(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options,
    *,
    tables: _Tables = None,
    plan: bool = False,
    spark: SparkSession | Callable[[], SparkSession] | InProcess | None = None,
) -> Adoption:
    """The adoption that `options` describe, and its page. `plan`: writes nothing. `spark`: with the option
    `prove="spark"`, the session that reads the new tables.
    """
    reader = None
    if options.prove == "spark" and not plan:
        if spark is None or isinstance(spark, InProcess):
            raise ValueError(
                "prove: Spark is to read the tables: give a session, or a function that starts one"
            )
        reader = reader_of(spark)
        # Without Iceberg's runtime, nothing is decoded in vain.
        _ = reader.spark
    adoption = run_adoption(src, dst, options, tables=tables, plan=plan, spark=reader)
    if not plan:
        write_page(adoption, options)
    return adoption


def migrate_with(
    spark: SparkSession | Callable[[], SparkSession] | InProcess,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options,
    *,
    tables: _Tables = None,
    progress: Progress | None = None,
) -> Report:
    """As `migrate`, with its keyword arguments as an `Options` object."""
    if options.adopt:
        return adopt_in_place(src, dst, options, tables=tables, spark=spark)
    started = time.time()
    target = _target_of(options)
    _check_switch(src, dst, options)
    if options.others == "spark":
        check_spark(spark)
    scheduler = spark if isinstance(spark, InProcess) else SparkScheduler(spark)
    survey = _survey(src, dst, tables, options, scheduler)
    source, goal, inventory, source_tables = survey.source, survey.goal, survey.inventory, survey.tables
    destination = open_destination(goal, options.target_storage_options)
    _check_catalog(target, options, destination)
    report = Report(source, goal, target.name, options.on_error, [], on_vanished=options.on_vanished)
    # Delta and Iceberg list a table's files, so replaced files may stay on disk; in a plain directory, every
    # file is a part of the table.
    with Journal(destination, keep_replaced=target.register is not None) as journal:
        # The list describes the earlier state of the target; until this run ends, nothing is safe to delete.
        destination.delete(safe_list.SAFE)
        if options.fresh:
            journal.begin_fresh()
        name_tables(source_tables, journal.state, inventory)
        chain = journal.state.chain
        if chain.lost:
            report.add_reason("lost_journal", 1, chain.lost)
        if chain.unchained:
            report.add_reason("old_journal", chain.unchained)
        report.add_unmatched(unmatched(inventory, source_tables, journal.state))
        works = compare(inventory, source_tables, journal, options, target)
        report.add_source(inventory, [work.report for work in works])
        window = None if options.window is None else minutes_of(options.window)
        pace = Pace(options.max_bytes_per_second, window)
        run = Run(scheduler, journal, target, options, progress or NoProgress(), pace)
        run.begin(works)
        plan_tables(works, journal.state, target, options, scheduler=scheduler, fail=run.fail)
        run.convert(in_order(works, options))
        journal.end_fresh()
        definitions = {} if survey.defined is None else survey.defined.definitions
        register(works, journal, target, options, source, definitions)
        look_again(works, journal, target, options)
        report_partial(works, options.timestamp_unit)
        if survey.defined is not None and survey.defined.iceberg:
            in_use = tables_in_use(survey.defined, options.locations, options.source_storage_options)
            for work in works:
                if work.table.name in in_use:
                    work.report.add_reason("in_use", 1, in_use[work.table.name])
        if survey.registered is not None:
            report.metastore = compare_run(survey.registered, works, inventory, options)
        if options.switch:
            partitions = {} if survey.defined is None else survey.defined.partitions
            switch_names(works, journal, definitions, partitions)
        report.timeline = run.timeline.to_json()
        left_out = look_for_left_out(works, options)
        report.left_out = [item for items in left_out.values() for item in items]
        report.judge()
        report.safe_to_delete = write_safe_list(works, journal, source, left_out, options, survey.places)
        report.started, report.seconds = started, round(time.time() - started, 3)
        journal.end()
        journal.clear_staging()
        journal.write_manifest()
        write_report(report, destination)
        if survey.defined is not None:
            write_definitions(survey.defined.kept, destination)
        journal.compact()
    return report


def _target_of(options: Options) -> Target:
    return find_target(
        options.to,
        files=options.files,
        compression=options.compression,
        unit=options.timestamp_unit,
    )


def dry_run(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options | None = None,
    *,
    tables: _Tables = None,
    progress: Progress | None = None,
) -> Preview:
    """Previews a run: lists the source, opens the files to convert, and reports what would be refused.

    Writes nothing and starts no Spark. `progress` is notified of each opened file.
    """
    options, progress = options or Options(), progress or NoProgress()
    if options.adopt:
        raise ValueError("adopt: coldframe.pipeline.adopt.adopt(src, dst, options, plan=True) previews it")
    target = _target_of(options)
    survey = _survey(src, dst, tables, options)
    goal, inventory, source_tables = survey.goal, survey.inventory, survey.tables
    destination = open_destination(goal, options.target_storage_options)
    _check_catalog(target, options, destination)
    journal = Journal(destination)
    journal.state, _ = read_state(destination)
    if options.fresh:
        journal.state.begin_fresh()
    name_tables(source_tables, journal.state, inventory)
    works = compare(inventory, source_tables, journal, options, target)
    preview = new_preview(works, inventory, goal, target.name)
    progress.start(
        sum(bool(work.work) for work in works),
        sum(len(work.work) for work in works),
        sum(pending.file.share for work in works for pending in work.work),
    )
    plan_tables(works, journal.state, target, options, fail=preview.refuse, progress=progress)
    preview.describe(works, options, journal.done)
    preview.unmatched = unmatched(inventory, source_tables, journal.state)
    if survey.registered is not None:
        preview.metastore = compare_preview(
            survey.registered, source_tables, inventory, options, preview.findings
        )
    return preview


def audit(
    dst: str | os.PathLike[str] | None = None,
    *,
    deep: bool = False,
    before_delete: str | os.PathLike[str] | None = None,
    storage_options: StorageOptions = None,
    source_storage_options: StorageOptions = None,
) -> Audit:
    """Compares a target with the records of its migration.

    Args:
        dst: the root of the target. May be left out if `before_delete` is given, which names it.
        deep: whether to read every value.
        before_delete: a `safe-to-delete.txt`: each source in it is compared with its line and the journal.
        storage_options: credentials and settings for the store of the target.
        source_storage_options: the same for the stores of the sources.
    """
    listed = None
    if before_delete is not None:
        listed = safe_list.read(os.fspath(before_delete), storage_options)
        dst = dst if dst is not None else str(listed.about.get("target", ""))
    if dst is None:
        raise ValueError("an audit needs the target, or a list that names it")
    destination = open_destination(root_of(dst), storage_options)
    if not destination.has(HOME):
        raise NotFoundError(f"{destination.root}: no migration has been here")
    state, last = read_state(destination)
    if not last and destination.stat(ADOPTIONS) is not None:
        return audit_adoption(destination, source_storage_options, deep=deep)
    result = Audit(destination.root, deep=deep)
    result.check_state(state, has_journal=last > 0)
    result.check_last_run(destination)
    result.check_tables(destination, state)
    result.check_files(destination, state)
    if listed is not None:
        result.check_list(listed, state, source_storage_options)
    return result


def status(dst: str | os.PathLike[str], *, storage_options: StorageOptions = None) -> Status:
    """How far the migration into a target is. It takes no lock, and works beside a run."""
    destination = open_destination(root_of(dst), storage_options)
    if not destination.has(HOME):
        raise NotFoundError(f"{destination.root}: no migration has been here")
    return status_of(destination)


def delete(
    listed: str | os.PathLike[str],
    *,
    to: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    storage_options: StorageOptions = None,
    source_storage_options: StorageOptions = None,
) -> Deletion:
    """Deletes the sources that a `safe-to-delete.txt` names, if they and their rows in the target are as they
    were verified, and records that: no later run takes these rows out of the target. Can be called again
    after it was interrupted.

    Args:
        listed: the list. It names its target.
        to: where to move the sources instead of deleting them, under their paths: a directory or URL.
        dry_run: only compares, and changes nothing.
        storage_options: credentials and settings for the store of the target.
        source_storage_options: the same for the stores of the sources, and of `to`.
    """
    safe = safe_list.read(os.fspath(listed), storage_options)
    destination = open_destination(root_of(str(safe.about.get("target", ""))), storage_options)
    if not destination.has(HOME):
        raise NotFoundError(f"{destination.root}: no migration has been here")
    trash, options = None if to is None else os.fspath(to), source_storage_options
    state, _ = read_state(destination)
    if state.chain.lost:
        raise UnsupportedError(
            f"deleting with the journal of {destination.root}, of which a part is lost: {state.chain.lost}. "
            "Start the migration again, and use its new list"
        )
    if dry_run:
        deleter = Deleter(safe, state, destination, trash, options)
        preview(deleter)
        return deleter.result
    with Journal(destination, keep_replaced=_has_log(state)) as journal:
        deleter = Deleter(safe, journal.state, destination, trash, options)
        # No `end`, which is that of a run: it has looked for files of lost runs.
        if deleter.check():
            deleter.run(journal)
    return deleter.result


def _has_log(state: State) -> bool:
    """Whether replaced files stay, since older versions of the tables list them."""
    return any(find_target(known.to).register is not None for known in state.tables.values())


def _defined(src: str | os.PathLike[str], options: Options) -> DefinedSource | None:
    """The definitions, if the source is a metastore; None if it is a directory."""
    if not is_metastore(src, or_file=True):
        if options.tables or options.locations or options.others != "list":
            raise ValueError("tables, locations and others are for a metastore: thrift://host:9083")
        return None
    if options.metastore is not None:
        raise ValueError("metastore: the source is a metastore itself, and the run is compared with that")
    by_spark = options.others == "spark"
    return read_defined(os.fsdecode(src), options.tables, options.locations, others_by_spark=by_spark)


def _survey(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    tables: _Tables,
    options: Options,
    scheduler: Scheduler | None = None,
) -> Survey:
    """The contents of the source and its definitions in a metastore, before anything is done."""
    defined = _defined(src, options)
    if defined is not None:
        goal = root_of(dst)
        check_apart(defined, goal)
        inventory, source_tables, findings = look_at_defined(defined, options, scheduler)
        lay_out(source_tables, inventory, tables, options)
        return Survey(defined.uri, goal, inventory, source_tables, registered_of(defined, findings), defined)
    source, goal = roots_of(src, dst)
    registered = None
    if options.metastore is not None:
        registered = read_registered(options.metastore, source, options.selection)
    inventory, source_tables = look(source, tables, options, scheduler)
    return Survey(source, goal, inventory, source_tables, registered)


def unswitch(dst: str | os.PathLike[str], *, storage_options: StorageOptions = None) -> list[str]:
    """Undoes `switch`: gives the old tables and the new ones their original names back.

    Returns the names of the old tables. `storage_options` are those of the target's store.
    """
    destination = open_destination(root_of(dst), storage_options)
    if not destination.has(HOME):
        raise NotFoundError(f"{destination.root}: no migration has been here")
    if destination.stat(ADOPTIONS) is not None:
        return unswitch_adopted(destination)
    state, _ = read_state(destination)
    with Journal(destination, keep_replaced=_has_log(state)) as journal:
        return unswitch_names(journal)


def _check_switch(src: str | os.PathLike[str], dst: str | os.PathLike[str], options: Options) -> None:
    """Raises if tables of the metastore are still switched."""
    if not is_metastore(src):
        if options.switch:
            raise ValueError("switch: the source must be a metastore, thrift://host:9083")
        return
    state, _ = read_state(open_destination(root_of(dst), options.target_storage_options))
    check_unswitched(state)


def _check_catalog(target: Target, options: Options, destination: Destination) -> None:
    if options.catalog is not None and target.check_catalog is not None:
        target.check_catalog(options.catalog, destination)
