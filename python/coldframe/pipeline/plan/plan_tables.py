"""Planning the tables of a run: their files are opened, then each table gets its columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.columns import settle_columns
from coldframe.pipeline.plan.plan_files import plan_table
from coldframe.pipeline.plan.table_work import Fail, TableWork
from coldframe.pipeline.report.progress import Progress
from coldframe.pipeline.scheduling import Scheduler
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.directory_logs import SharedByTables
from coldframe.pipeline.state.journal import State


def plan_tables(
    works: Sequence[TableWork],
    state: State,
    target: Target,
    options: Options,
    *,
    fail: Fail,
    scheduler: Scheduler | None = None,
    progress: Progress | None = None,
) -> None:
    """Opens the files to convert, and gives each table its columns. Calls `fail` for files that cannot be
    converted; without a `scheduler`, opens the files in this process.
    """
    plan = functools.partial(
        plan_table,
        scheduler=scheduler,
        options=options,
        fail=fail,
        progress=progress,
        shared=SharedByTables(),
    )
    for work in works:
        plan(work, work.work)
        settle_columns(work, state, target, plan, fail)
