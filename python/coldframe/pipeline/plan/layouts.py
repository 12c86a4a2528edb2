"""Checks, before anything is written, that readers will see all of a table's folders.

    t/f.orc beside t/p=1/g.orc          Spark reads the partitions alone
    t/p=1/.. and t/p=1/q=2/..           Spark reads nothing
    t/p=1/q=2/.. and t/q=2/p=1/..       the same
    t/City=x/.. and t/city=x/..         the same: the columns differ in case only
    t/p=1/p=2/..                        a duplicated column
    t/c=/..                             Spark reads nothing; Delta takes it for null
    t/x/.. beside t/.., both tables     readers of t take x for a part of it, a vacuum of t deletes x

Delta and Iceberg record each file's partition values, so the order of folders does not matter to them.
Iceberg also stores the values in the files, so it needs no folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coldframe.pipeline.plan.table_work import Pending, TableWork
from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import Journal

_Shape = tuple[str, ...]


def nested(works: Sequence[TableWork], journal: Journal) -> Mapping[str, str]:
    """Why nested tables cannot be written, by the path of the refused table.

    Of an existing and a new table, the new table is refused; of two new tables, the outer table.
    """
    there = set(journal.done.tables())
    paths = there.union(work.table.path for work in works if work.table.files)
    refusals: dict[str, str] = {}
    for path in sorted(paths):
        outer = next((ancestor for ancestor in _above(path) if ancestor in paths), None)
        if outer is None:
            continue
        refused, other = (path, outer) if outer in there and path not in there else (outer, path)
        refusals.setdefault(
            refused,
            f"its directory {refused} and that of table {other} are nested: readers of {outer} would take "
            f"both for one table. Merge them by an entry of tables.toml with path '{outer}', or leave one "
            "out and migrate it into another directory",
        )
    return refusals


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def unreadable(work: TableWork, target: Target) -> Iterator[tuple[Pending, str]]:
    """Files that would make a table unreadable as a whole, with reasons."""
    rivals = _shapes(_written(work), target) or _shapes(_new(work), target)
    for pending in _new(work):
        reason = _wrong_by_itself(pending.file, target)
        mine = _shape(pending.file, target)
        other = None if reason else next((shape for shape in rivals if _clash(shape, mine, target)), None)
        if other is not None:
            reason = (
                f"{_described(pending.file.relative, mine)}, and {_described(rivals[other], other)}: readers "
                "of the table would not find all of its rows. Leave one of the two out, and migrate it into "
                "another directory"
            )
        if reason:
            yield pending, f"not converted: {reason}"


def _new(work: TableWork) -> Iterator[Pending]:
    for rows in (work.work, work.held):
        yield from rows


def _written(work: TableWork) -> Iterator[Pending]:
    """Earlier results in the target that stay there."""
    drops = set(work.drops)
    for rows in (work.done, work.stays):
        yield from (pending for pending in rows if pending.has_parts and pending.file.relative not in drops)


def _shapes(rows: Iterator[Pending], target: Target) -> dict[_Shape, str]:
    """The shapes of partition folders, each with the first file that has it."""
    shapes: dict[_Shape, str] = {}
    for pending in rows:
        shapes.setdefault(_shape(pending.file, target), pending.file.relative)
    return shapes


def _shape(file: SourceFile, target: Target) -> _Shape:
    names = [key for key, _ in file.keys]
    return tuple(names if target.register is None else sorted(names))


def _clash(shape: _Shape, other: _Shape, target: Target) -> bool:
    if not target.partitions_inside:
        return shape != other
    exact = set(other)
    folded = {name.lower() for name in other}
    return any(name.lower() in folded and name not in exact for name in shape)


def _wrong_by_itself(file: SourceFile, target: Target) -> str:
    names = [key.lower() for key, _ in file.keys]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return f"its folders have two values for {twice}"
    empty = next((key for key, value in file.keys if not value), None)
    if empty is not None and not target.partitions_inside:
        return f"folder {empty}= has no value, which Spark cannot read"
    return ""


def _described(file: str, shape: _Shape) -> str:
    return f"{file} lies in folders of {', '.join(shape)}" if shape else f"{file} lies in no partition folder"
