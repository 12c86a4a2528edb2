"""What could be read from a source directory but was not requested.

HBase root directories, Kudu data directories and the like hold more than a single request reads: other
tables, snapshots, older versions, edits that are only in a log. Such a directory is safe to delete if all of
it was taken, or if the user named the parts that may be left behind:

    --leave-behind older-versions            of every table
    --leave-behind tables=ns:old,snapshots   this table, and all snapshots

A directory is also left off the list if it holds files that belong to no table, since their rows were not
read.

Content that the engine does not show to readers (deleted cells, archives) is reported, but does not keep the
directory off the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from coldframe import _coldframe
from coldframe._coldframe import ColdframeError
from coldframe.pipeline.options import LEAVABLE, OTHER_FILES, Options
from coldframe.pipeline.plan.plan_files import open_options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.report.model import FileReport, LeftOut
from coldframe.pipeline.source.inventory import TABLES_FILE
from coldframe.sources import text_options

_NAMES = {kind: name for name, kind in LEAVABLE.items()}
_COUNTED = frozenset({"versions", "times", "columns", "regions", "edits"})
"""Kinds of content that are counted only by reading: how much of them was skipped."""
_NAMED = 3
"""The maximum number of files of no table that are named."""
_UNITS = {"regions": "folders of regions", "edits": "regions"}


class Content(TypedDict, total=False):
    """Something in a directory, as `_coldframe.contents` reports it."""

    kind: str
    of: str
    name: str
    visible: bool
    taken: bool | None
    count: int | None
    unit: str | None
    note: str | None


@dataclass
class _Item:
    """Something in a directory, according to all requests that read it."""

    about: Content
    taken: bool | None
    count: int | None

    def add(self, taken: bool | None, count: int | None) -> None:
        """Adds another request's result: one request that takes the item is enough."""
        if self.taken is True or taken is True:
            self.taken = True
        elif self.taken is None or taken is None:
            self.taken = None
        if count is not None:
            self.count = count


def look_for_left_out(works: Sequence[TableWork], options: Options) -> dict[str, list[LeftOut]]:
    """What was not requested from each source directory, by path."""
    requests: dict[str, list[tuple[TableWork, SourceFile]]] = {}
    for work in works:
        for file in work.table.files:
            # For directories that Spark reads the other content is unknown; the verdict has a reason for
            # this.
            if file.is_folder and work.table.reading_of(file).by_spark is None:
                requests.setdefault(file.path, []).append((work, file))
    return {
        path: [*_of_directory(path, asked, options), *_unclaimed(path, *asked[0], options)]
        for path, asked in requests.items()
    }


def _unclaimed(path: str, work: TableWork, file: SourceFile, options: Options) -> Iterator[LeftOut]:
    """The files of a directory that belong to none of its tables."""
    reading = work.table.reading_of(file)
    try:
        files = _coldframe.unclaimed(
            file.path,
            format=reading.format,
            storage_options=text_options(file.storage_options),
            keys=reading.options.get("keys"),
        )
    except (ColdframeError, OSError, ValueError) as error:
        yield LeftOut(path, OTHER_FILES, note=f"whether it holds other files is unknown: {error}")
        return
    names = [name for name, _ in files if name != TABLES_FILE]
    if names:
        shown = f"{', '.join(names[:_NAMED])}{', ..' if names[_NAMED:] else ''}"
        named = options.leaves_behind(OTHER_FILES, "")
        yield LeftOut(path, OTHER_FILES, "", "", len(names), "files", f"of no table: {shown}", named=named)


def _of_directory(
    path: str, asked: Sequence[tuple[TableWork, SourceFile]], options: Options
) -> Iterator[LeftOut]:
    items: dict[tuple[str, str], _Item] = {}
    for work, file in asked:
        try:
            contents = _contents(work, file, options)
        except (ColdframeError, OSError, ValueError) as error:
            yield LeftOut(path, "contents", note=f"its contents cannot be listed: {error}")
            continue
        for content in contents:
            taken, count = _taken(content, work.files.get(file.relative))
            key = (str(content["kind"]), str(content["of"]))
            if key in items:
                items[key].add(taken, count)
            else:
                items[key] = _Item(content, taken, count)
    for (kind, of), item in items.items():
        if item.taken is True:
            continue
        name = _NAMES.get(kind, kind)
        about = item.about
        yield LeftOut(
            path,
            name,
            of,
            str(about["name"]),
            item.count if item.count is not None else about.get("count"),
            _UNITS.get(kind, "cells") if item.count is not None else str(about.get("unit") or ""),
            str(about.get("note") or ""),
            visible=bool(about["visible"]),
            named=options.leaves_behind(name, of),
        )


def _contents(work: TableWork, file: SourceFile, options: Options) -> list[Content]:
    reading = work.table.reading_of(file)
    given = open_options(reading.format, reading.options, options.timestamp_unit)
    contents: list[Any] = _coldframe.contents(
        file.path,
        format=reading.format,
        storage_options=text_options(file.storage_options),
        verify_checksums=given.pop("verify_checksums", True),
        keys=given.pop("keys", None),
        options=given,
    )
    return contents


def _taken(content: Content, report: FileReport | None) -> tuple[bool | None, int | None]:
    """Whether a request takes something, and how many cells it skipped, if reading counts them."""
    taken = content["taken"]
    if taken is not None or content["kind"] not in _COUNTED or report is None or report.passed_over is None:
        return taken, None
    count = report.passed_over.get(str(content["kind"]), 0)
    return count == 0, count
