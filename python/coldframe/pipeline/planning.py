"""Planning the files of a table: few of them here, many of them by whoever does the work."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

import coldframe
from coldframe.errors import ColdframeError, PartialTableWarning
from coldframe.pipeline.comparing import Due, TableWork
from coldframe.pipeline.convert import Cause, cause_of
from coldframe.pipeline.inventory import SourceFile
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan import FILES_A_TASK, PlannedFile, decoded, open_options, plan_tasks
from coldframe.pipeline.progress import Progress
from coldframe.pipeline.scheduling import Scheduler, Threads
from coldframe.pipeline.scratch import Rows
from coldframe.pipeline.shared import SharedByTables
from coldframe.pipeline.tables import Table
from coldframe.sources import is_remote

FILES_HERE = 2000
"""Files of a table that the driver opens by itself; of more the scheduler does."""
_THREADS = 8
_THREADS_FAR = 64
"""Of the driver, for files of a store: opening one is a few requests, and a handful of memory."""
_FILES_A_THREAD = 8
"""Files that a thread opens one after the other."""

Fail = Callable[[TableWork, SourceFile, str, Cause], None]


def plan_table(
    work: TableWork,
    dues: Rows[Due],
    *,
    scheduler: Scheduler | None,
    options: Options,
    fail: Fail,
    progress: Progress | None = None,
    shared: SharedByTables | None = None,
) -> None:
    """Opens files of a table: what they say of themselves is `planned` then; `fail` is told of the others."""
    if not dues:
        return
    here = scheduler is None or len(dues) <= FILES_HERE
    remote = any(is_remote(due.file.path) for due in itertools.islice(dues, 1))
    doer = Threads(_THREADS_FAR if remote else _THREADS) if here or scheduler is None else scheduler
    given = ((due.file, due.key) for due in dues)
    tasks = plan_tasks(
        given,
        work.table,
        split_bytes=options.split_bytes,
        unit=options.timestamp_unit,
        files_a_task=_FILES_A_THREAD if here else FILES_A_TASK,
        shared=shared,
    )
    for outcome in doer.run(tasks):
        for name, schema in outcome["schemas"].items():
            if name not in work.schemas:
                work.schemas[name] = decoded(schema)
        for found in outcome["files"]:
            due = dues.get(found.pop("relative"))
            if due is None:
                raise AssertionError("a file was planned that nobody asked for")
            if progress is not None:
                progress.advance(work.table.name, due.file.size, int(found.get("rows") or 0))
            if found.get("error") is not None:
                fail(work, due.file, found["error"], cause_of(found))
                continue
            planned = PlannedFile(due.file, due.key, **found)
            names = None if planned.names is None else tuple(planned.names)
            work.planned.append(replace(planned, names=names))


def lacking(table: Table, files: Iterable[SourceFile], unit: str) -> list[str]:
    """What directories that are tables say that they have not: such as tablets that other servers hold."""
    found: list[str] = []
    for file in files:
        if not file.is_folder:
            continue
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", PartialTableWarning)
            # Whether it can be opened, others tell.
            with contextlib.suppress(ColdframeError, OSError, TypeError, ValueError):
                options = open_options(table.format, table.options, unit)
                coldframe.open(
                    file.path, format=table.format, storage_options=file.storage_options, **options
                )
        found += [str(one.message) for one in told if issubclass(one.category, PartialTableWarning)]
    return found
