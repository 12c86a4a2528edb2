"""Planning the tables of a run: their files are opened, then each table gets its columns."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase

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


def in_order(works: Sequence[TableWork], options: Options) -> list[TableWork]:
    """Planned tables in the order in which they are converted: by wave, then by the order asked for."""
    waves = {pattern: number for number, pattern in reversed(list(enumerate(options.waves)))}
    patterns = [pattern for pattern in waves if set(pattern) & set("*?[")]
    used: set[int] = set()

    def wave_of(work: TableWork) -> int:
        names = work.table.name, work.table.path
        matching = [waves[name] for name in names if name in waves]
        matching += [waves[some] for some in patterns if any(fnmatchcase(name, some) for name in names)]
        used.update(matching)
        return min(matching, default=len(options.waves))

    def place_of(work: TableWork) -> tuple[int, float, str]:
        number = 0.0
        if options.order == "size":
            number = -sum(planned.file.share for planned in work.planned)
        elif options.order == "age":
            number = max((planned.file.mtime_ns for planned in work.planned), default=0)
        return wave_of(work), number, "" if options.order == "listed" else work.table.name

    ordered = sorted(works, key=place_of)
    for pattern, number in waves.items():
        if number not in used:
            warnings.warn(f"waves: no table matches {pattern}", stacklevel=3)
    return ordered
