"""The end of a run: tables are registered, and what lies there is looked at once more."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.comparing import TableWork
from coldframe.pipeline.convert import describe
from coldframe.pipeline.destination import Destination
from coldframe.pipeline.identity import is_unchanged
from coldframe.pipeline.inventory import SourceFile
from coldframe.pipeline.journal import HOME, Entry, Journal
from coldframe.pipeline.options import Options
from coldframe.pipeline.report import TableReport
from coldframe.pipeline.targets import Target

SAFE = f"{HOME}/safe-to-delete.txt"


def entries_by_table(journal: Journal) -> dict[str, list[Entry]]:
    """What is done, by the tables' paths."""
    found: dict[str, list[Entry]] = {}
    for entry in journal.done.values():
        found.setdefault(entry.table, []).append(entry)
    return found


def register(works: Sequence[TableWork], journal: Journal, target: Target, options: Options) -> None:
    """Delta and Iceberg: the finished files become a version of the table, which is read back."""
    if target.register is None:
        return
    by_table = entries_by_table(journal)
    for work in works:
        entries = by_table.get(work.table.path, [])
        if work.schema is None and not work.drops:
            continue
        if work.report.error is not None or not (entries or work.drops):
            continue
        path = work.table.path
        try:
            _settle_killed(work, journal, target)
            committed = CommittedTable(
                work.table.name,
                path,
                work.schema,
                work.table.partition_fields,
                sorted(entries, key=lambda entry: entry.source),
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
        journal.settle(work.table.path, made=about["run"] in runs)


def look_again(
    works: Sequence[TableWork], journal: Journal, target: Target, live: Callable[[TableWork], set[str] | None]
) -> None:
    """The last word: each file of a table is there, with the size it had when it was verified, and no other
    file that a reader would take for a part of it.
    """
    known = {part.final for entry in journal.done.values() for part in entry.parts}
    by_table = entries_by_table(journal)
    for work in works:
        report, listed = work.report, live(work)
        there = {found.name: found.size for found in journal.destination.list(work.table.path)}
        for entry in by_table.get(work.table.path, []):
            for part in entry.parts:
                # What others took out of a Delta or Iceberg table is not missing.
                if (listed is None or part.final in listed) and there.get(part.final) != part.bytes:
                    report.missing.append(part.final)
        if target.register is None:
            report.foreign = foreign_files(there, known, work.table.path)


def foreign_files(there: Iterable[str], known: set[str], table: str) -> list[str]:
    """Those that readers see and the state does not know."""
    prefix = f"{table}/"
    return sorted(
        name
        for name in there
        if name not in known
        and not any(part.startswith(("_", ".")) for part in name.removeprefix(prefix).split("/"))
    )


def write_safe_list(works: Sequence[TableWork], destination: Destination) -> int:
    """Lists the sources whose every row lies in the target: converted without loss, read back, of a table
    with nothing wrong, and unchanged until now. Gives how many there are.
    """
    good: dict[str, bool] = {}
    files: dict[str, SourceFile] = {}
    for work in works:
        fine = _is_fine(work.report)
        states = {report.source: report for report in work.report.files}
        for file in work.table.files:
            report = states.get(file.relative)
            safe = (
                fine
                and report is not None
                and report.status == "converted"
                and report.verified
                # One that cannot be told in a line is not told.
                and "\n" not in file.path
            )
            # A directory of several tables is safe when all of them are.
            good[file.path] = good.get(file.path, True) and safe
            files[file.path] = file
    lines = [path for path, safe in sorted(good.items()) if safe and _still_there(files[path])]
    text = "".join(line + "\n" for line in lines)
    destination.write(SAFE, text.encode(errors="surrogateescape"))
    return len(lines)


def _still_there(file: SourceFile) -> bool:
    return is_unchanged(file.path, file.identity, file.storage_options)


def _is_fine(report: TableReport) -> bool:
    return report.error is None and not report.missing and not report.foreign
