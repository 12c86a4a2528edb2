"""The end of a run: checks the target once more, and lists what is safe to delete."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.plan_files import lacking
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import LeftOut
from coldframe.pipeline.report.table_check import check_table
from coldframe.pipeline.report.verdict import COMPARED, Verdict, may_be_listed
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.identity import traces_of
from coldframe.pipeline.state.journal import Journal


def look_again(works: Sequence[TableWork], journal: Journal, target: Target, options: Options) -> None:
    """The final check: each table according to its log, and each file with its size."""
    for work in works:
        report, path = work.report, work.table.path
        check = check_table(journal.destination, journal.state, target.name, work.table.name, path)
        report.missing += sorted(check.missing)
        report.rows_now = check.rows_now
        report.reasons += check.reasons(options.on_foreign_changes)
        if check.target.has_log and options.on_foreign_changes == "append":
            if check.foreign:
                report.add_reason("known_foreign", len(check.foreign))
        else:
            report.foreign = sorted(check.foreign)


def report_partial(works: Sequence[TableWork], unit: str) -> None:
    """Reports sources whose own metadata says that they hold only a part of their table; also for earlier
    results.
    """
    for work in works:
        failed = {file.source for file in work.report.problems if file.status == "failed"}
        files = [file for file in work.table.files if file.relative not in failed]
        work.report.partial = lacking(work.table, files, unit)


def write_safe_list(
    works: Sequence[TableWork],
    journal: Journal,
    source: str,
    left_out: Mapping[str, Sequence[LeftOut]],
    options: Options,
    places: Sequence[tuple[str, str, int]] = (),
) -> int:
    """Lists the unchanged sources that the verdict allows, and records that. Returns their number.

    `places`: see `Survey.places`.
    """
    verdicts = [work.report.verdict for work in works]

    def digest_of(work: TableWork, verdict: Verdict, file: SourceFile) -> str:
        """The digest of a source; empty if it may not be listed."""
        report = None if verdict.blocks else work.files.get(file.relative)
        # A path that does not fit on a line is not listed.
        if report is None or "\n" in file.path:
            return ""
        return report.digest if may_be_listed(verdict, report.summary, work.report.allowed) else ""

    # A directory of several tables is safe if all of its tables are safe, and it has no other content to
    # read.
    folders = [
        (work, verdict, file)
        for work, verdict in zip(works, verdicts, strict=True)
        for file in work.table.files
        if file.is_folder
    ]
    unsafe = {path for path, items in left_out.items() if any(item.blocks for item in items)}
    unsafe |= {file.path for work, verdict, file in folders if not digest_of(work, verdict, file)}
    # A later run must never lose rows of sources that were deleted because the list names them.
    directories = {file.relative: file for _, _, file in folders if file.path not in unsafe}

    def sources() -> Iterator[tuple[SourceFile, str]]:
        listed: set[str] = set()
        for work, verdict in zip(works, verdicts, strict=True):
            for file in work.table.files:
                digest = "" if file.path in unsafe or file.path in listed else digest_of(work, verdict, file)
                if digest:
                    yield file, digest
                if digest and file.is_folder:
                    listed.add(file.path)

    def traces(source: str) -> tuple[str, ...]:
        file = directories.get(source)
        return () if file is None else traces_of(file.path, file.storage_options)

    journal.list_as_safe(
        (
            file.relative
            for work, verdict in zip(works, verdicts, strict=True)
            for file in work.table.files
            if (file.relative in directories if file.is_folder else digest_of(work, verdict, file))
        ),
        traces,
    )
    destination = journal.destination
    about = {
        "target": destination.root,
        "journal": journal.state.target,
        "source": source,
        "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "compared": COMPARED,
        "leave_behind": list(options.leave_behind),
        "left_behind": [
            f"{path}: {item}" for path, items in left_out.items() for item in items if item.named
        ],
        "allow_loss": list(options.allow_loss),
        "include": list(options.selection.include),
        "exclude": list(options.selection.exclude),
        **({"places": places} if places else {}),
    }
    return safe_list.write(destination, about, sources())
