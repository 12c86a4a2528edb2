"""The end of a run: tables are registered, and what lies there is looked at once more."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterator, Mapping, Sequence

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.plan_files import lacking
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import SourceFile, describe
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import LeftOut
from coldframe.pipeline.report.table_check import standing
from coldframe.pipeline.report.verdict import COMPARED, Verdict, may_be_listed
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.ledger import TableEntries
from coldframe.pipeline.target.committed import CommittedTable
from coldframe.pipeline.target.destination import Destination
from coldframe.pipeline.target.targets import Target


def register(works: Sequence[TableWork], journal: Journal, target: Target, options: Options) -> None:
    """Delta and Iceberg: the finished files become a version of the table, which is read back."""
    if target.register is None:
        return
    for work in works:
        path = work.table.path
        takes_out = bool(work.drops) or work.half_dropped
        if work.report.error is not None or (work.schema is None and not takes_out):
            continue
        entries = TableEntries(journal.done, path)
        if next(iter(entries), None) is None and not takes_out:
            continue
        try:
            _settle_killed(work, journal, target)
            committed = CommittedTable(
                work.table.name,
                path,
                work.schema,
                work.table.partition_fields,
                entries,
                run=journal.run,
                epoch=journal.state.epoch,
                known=frozenset(journal.state.registered.get(path, ())),
                announce=functools.partial(journal.announce, path),
                committed=functools.partial(journal.settle, path, made=True),
            )
            work.report.metadata = target.register(journal.destination, committed, options.on_foreign_changes)
        except Exception as error:
            # The files are right and stay; another run, or another target, can make a table of them.
            work.report.error = f"{target.name}: {describe(error)}"


def _settle_killed(work: TableWork, journal: Journal, target: Target) -> None:
    """A run that was killed while it registered: the table itself says whether it came to it."""
    about = journal.state.registering.get(work.table.path)
    if about is not None and target.runs is not None:
        runs = target.runs(journal.destination, work.table.name, work.table.path)
        journal.settle(work.table.path, made=about.run in runs)


def look_again(works: Sequence[TableWork], journal: Journal, target: Target, options: Options) -> None:
    """The last word: each table as its own engine reads it now, and each of its files with its size."""
    for work in works:
        report, path = work.report, work.table.path
        found = standing(journal.destination, journal.state, target.name, work.table.name, path)
        report.missing += sorted(found.missing)
        report.rows_now = found.rows_now
        report.told += found.reasons(options.on_foreign_changes)
        if found.facts.has_log and options.on_foreign_changes == "append":
            if found.foreign:
                report.tell("known_foreign", len(found.foreign))
        else:
            report.foreign = sorted(found.foreign)


def tell_partial(works: Sequence[TableWork], unit: str) -> None:
    """What sources say that they lack, in each run: what an earlier one took is a part of a table, too."""
    for work in works:
        failed = {file.source for file in work.report.problems if file.status == "failed"}
        files = [file for file in work.table.files if file.relative not in failed]
        work.report.partial = lacking(work.table, files, unit)


def write_safe_list(
    works: Sequence[TableWork],
    destination: Destination,
    source: str,
    left_out: Mapping[str, Sequence[LeftOut]],
    options: Options,
) -> int:
    """Lists the sources that the verdict lets be listed, and that are unchanged until now. Gives how many
    there are.
    """
    verdicts = [work.report.verdict for work in works]

    def digest_of(work: TableWork, verdict: Verdict, file: SourceFile) -> str:
        """What a source is known by; empty where it may not be listed."""
        report = None if verdict.blocks else work.files.get(file.relative)
        # One that cannot be told in a line is not told.
        if report is None or "\n" in file.path:
            return ""
        return report.digest if may_be_listed(verdict, report.facts, work.report.allowed) else ""

    # A directory of several tables is safe when all of them are, and nothing else was to be read from it.
    unsafe = {path for path, found in left_out.items() if any(one.blocks for one in found)}
    unsafe |= {
        file.path
        for work, verdict in zip(works, verdicts, strict=True)
        for file in work.table.files
        if file.is_folder and not digest_of(work, verdict, file)
    }

    def sources() -> Iterator[tuple[SourceFile, str]]:
        told: set[str] = set()
        for work, verdict in zip(works, verdicts, strict=True):
            for file in work.table.files:
                digest = "" if file.path in unsafe or file.path in told else digest_of(work, verdict, file)
                if digest:
                    yield file, digest
                if digest and file.is_folder:
                    told.add(file.path)

    about = {
        "target": destination.root,
        "source": source,
        "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "compared": COMPARED,
        "leave_behind": list(options.leave_behind),
        "left_behind": [f"{path}: {one}" for path, found in left_out.items() for one in found if one.named],
        "allow_loss": list(options.allow_loss),
        "include": list(options.selection.include),
        "exclude": list(options.selection.exclude),
    }
    return safe_list.write(destination, about, sources())
