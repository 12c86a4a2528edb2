"""Whatever is removed from a directory that an engine wrote, or emptied: no row is missing without a word.

For each entry of a small directory of each engine in turn: if fewer or other rows are read than before, then
an error, damage or a warning says so, and a migration with fewer rows does not list the directory.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import tarfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate
from hudi_tables import hudi_table

import coldframe as cf
from coldframe.table_listing import survey

DATA = Path(__file__).resolve().parents[1] / "data"
RUNS = 6
"""Migrations for each engine: most of the time."""
WROTE = "/tmp/coldframe-iceberg/warehouse/t/equality"
"""Where the Iceberg table was made."""
ROWS = pa.table({"id": range(40), "s": [f"name {i % 7}" for i in range(40)]})


@dataclass
class Engine:
    """A directory of an engine, and how it is read and migrated."""

    name: str
    build: Callable[[Path], object]
    options: dict[str, Any] = field(default_factory=dict)
    open: Callable[..., Any] = cf.open
    leave_behind: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    """Entries of which nothing else in the directory tells: the engine itself cannot miss them."""
    plain: tuple[str, ...] = ()
    """Entries without which the directory is one of plain files, all of which are listed and read."""


def copy(name: str) -> Callable[[Path], object]:
    return lambda path: shutil.copytree(DATA / name, path)


def redfiles(path: Path) -> None:
    path.mkdir(parents=True)
    files = []
    for part in ("part-0.redelm", "part-1.redelm"):
        cf.write(ROWS, path / part, format="redfile")
        data = (path / part).read_bytes()
        footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
        uri = f"hdfs://host/job/{part}".encode()
        files.append(len(uri).to_bytes(2, "big") + uri + footer)
    (path / "_RedElmSummary").write_bytes(len(files).to_bytes(4, "big") + b"".join(files))


def iceberg(name: str) -> Callable[[Path], object]:
    def build(path: Path) -> None:
        pytest.importorskip("pyiceberg")
        with tarfile.open(DATA / "iceberg/tables.tar.gz") as tar:
            tar.extractall(path.parent, filter="data")
        (path.parent / f"warehouse/t/{name}").rename(path)
        shutil.rmtree(path.parent / "warehouse")

    return build


ENGINES = (
    Engine(
        "hbase",
        copy("hbase/files/orders"),
        {"complete": True},
        leave_behind=("snapshots", "older-versions"),
        # Without a store file tracker, HBase lists the folders of families.
        untold=("without data/*/[fg]", "without data/*/[fg]/*"),
    ),
    Engine("kudu", copy("kudu_wal/files/lz4"), {"complete": True, "table": "trips"}),
    Engine(
        "acid",
        copy("hive/files/changes"),
        {"complete": True},
        # Only later deletes of its rows tell of a delta, and nothing tells of deletes.
        untold=("without delta_*", "without delete_delta_*"),
    ),
    Engine(
        "streamed",
        copy("hive/files/streamed"),
        {"complete": True},
        untold=("without delta_*", "without delete_delta_*"),
    ),
    Engine("redfile", redfiles, plain=("without _RedElmSummary",)),
    Engine(
        "iceberg",
        iceberg("equality"),
        open=lambda path: cf.iceberg_table(path, location={WROTE: str(path)}),
    ),
    Engine(
        "hudi",
        lambda path: hudi_table(path, {"20240101000000000": [1.0, 2.0], "20240102000000000": [1.0, 3.0]}),
    ),
)


def hurt(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each way to lose an entry below `path`."""
    for folder, folders, files in os.walk(path):
        place = Path(folder)
        for name in sorted(folders):
            entry = place / name
            yield f"without {entry.relative_to(path)}", partial(shutil.rmtree, entry)
        for name in sorted(files):
            entry = place / name
            yield f"without {entry.relative_to(path)}", partial(entry.unlink)
            if entry.stat().st_size:
                yield f"empty {entry.relative_to(path)}", partial(entry.write_bytes, b"")
                yield (
                    f"zeros {entry.relative_to(path)}",
                    partial(entry.write_bytes, bytes(entry.stat().st_size)),
                )


def read(path: Path, engine: Engine) -> tuple[list[str] | None, bool]:
    """The rows of a directory, sorted, and whether reading it said anything; no rows if it fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            opened = engine.open(path, **engine.options)
            rows = opened.to_table() if isinstance(opened, cf.Dataset) else opened.read()
        except (cf.ColdframeError, OSError):
            return None, True
    return sorted(map(repr, rows.to_pylist())), bool(caught)


def is_listed_as_whole(path: Path) -> bool:
    """Whether `coldframe tables` lists the directory's tables and nothing of what they lack."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estate = survey(str(path.parent), storage_options=None, rows=True)
    return bool(estate.tables) and not estate.unread and not any(table.is_wrong for table in estate.tables)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_no_half_is_missed_without_a_word(engine: Engine, tmp_path: Path) -> None:
    healthy = tmp_path / "healthy" / "t"
    healthy.parent.mkdir()
    engine.build(healthy)
    whole, warned = read(healthy, engine)
    assert whole
    assert not warned
    assert is_listed_as_whole(healthy)
    estate = Estate(tmp_path / "whole")
    shutil.copytree(healthy, estate.source / "t")
    migrated = estate.migrate(leave_behind=list(engine.leave_behind)).rows
    silent, runs = [], 0
    for number, (what, _) in enumerate(hurt(healthy)):
        estate = Estate(tmp_path / str(number))
        path = estate.source / "t"
        shutil.copytree(healthy, path, symlinks=True)
        next(act for name, act in hurt(path) if name == what)()
        rows, warned = read(path, engine)
        if rows == whole:
            shutil.rmtree(tmp_path / str(number))
            continue
        is_untold = any(fnmatch.fnmatchcase(what, pattern) for pattern in (*engine.untold, *engine.plain))
        # Zeros of the right length are seen by those who read them.
        if not is_untold and not what.startswith("zeros") and is_listed_as_whole(path):
            silent.append(f"tables: {what}")
        if not warned:
            if not any(fnmatch.fnmatchcase(what, pattern) for pattern in engine.untold):
                silent.append(what)
        elif what.startswith("without") and runs < RUNS:
            runs += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                report = estate.migrate(leave_behind=list(engine.leave_behind))
            listed = [place for place in estate.safe() if place.startswith(str(path))]
            if listed and report.rows < migrated:
                silent.append(f"migrate: {what}")
        shutil.rmtree(tmp_path / str(number))
    assert silent == []
