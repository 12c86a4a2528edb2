"""Model of directories that hold several tables: if a run lists a directory as safe to delete, the target
has every cell of it.

The expected cells come from reading each table and snapshot with all versions and edits; the actual cells
from reading the target with pyarrow.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest
from estates import Estate
from hbase_roots import add_table, remove_table
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import coldframe as cf
from coldframe._coldframe import tables

DATA = Path(__file__).resolve().parents[2] / "data"
HBASE, KUDU = DATA / "hbase/files/orders", DATA / "kudu/files/file_blocks"
AS_OF = 1_700_000_000_000
MINUTES = float(os.environ.get("COLDFRAME_MODEL_MINUTES", "0"))
EXAMPLES = 15 if not MINUTES else int(MINUTES * 25)
COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "derandomize": not MINUTES,
    "max_examples": EXAMPLES,
    "phases": (Phase.generate, Phase.shrink),
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}
Cell: TypeAlias = tuple[str, bytes, bytes, bytes, int, bytes]
"""The table or snapshot, and the cell."""


@dataclass(frozen=True)
class Entry:
    """An entry of tables.toml."""

    of: str
    view: str = "latest"
    wal: bool = True
    versions: int = 0
    until: int = 0
    """The end of a time range, or 0 for no end."""

    @property
    def name(self) -> str:
        """A name that depends on all options, since each entry has its own target table."""
        text = f"{self.of}_{self.view}_{self.wal}_{self.versions}_{self.until}"
        return text.replace(":", "_").lower()

    @property
    def options(self) -> dict[str, Any]:
        """Options as the format takes them."""
        options: dict[str, Any] = {"view": self.view, "wal": self.wal, "as_of": AS_OF}
        options["table"] = self.of if self.of != "kept" else "shop:orders"
        if self.of == "kept":
            options["snapshot"] = self.of
            del options["wal"]
        if self.versions and self.view == "versions":
            options["versions"] = self.versions
        if self.until:
            options["time_range"] = [0, self.until]
        return options

    def toml(self) -> str:
        """The entry's text in tables.toml."""
        lines = [f"[tables.{self.name}]", 'path = "hbase"']
        lines += [
            f"{key} = {value!r}".replace("True", "true").replace("False", "false")
            for key, value in self.options.items()
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Run:
    """A step: a run with these entries."""

    entries: tuple[Entry, ...]
    leave: tuple[str, ...]
    other: bool
    """Whether the root has the second table at this step."""


def entries() -> st.SearchStrategy[Entry]:
    middle = sorted({cell[4] for cell in cells(Entry("shop:orders", "versions"), HBASE)})
    return st.builds(
        Entry,
        st.sampled_from(["shop:orders", "shop:others", "kept"]),
        st.sampled_from(["latest", "versions", "versions"]),
        st.sampled_from([True, True, False]),
        st.sampled_from([0, 0, 1, 2]),
        st.sampled_from([0, 0, 0, middle[len(middle) // 2]]),
    )


def steps() -> st.SearchStrategy[list[Run]]:
    run = st.builds(
        Run,
        st.lists(entries(), min_size=1, max_size=4, unique_by=lambda entry: entry.name).map(tuple),
        st.sets(st.sampled_from(["tables", "snapshots", "older-versions", "unflushed-edits"])).map(
            lambda names: tuple(sorted(names))
        ),
        st.booleans(),
    )
    return st.lists(run, min_size=1, max_size=4)


@functools.cache
def cells(entry: Entry, root: Path) -> frozenset[Cell]:
    """What an entry reads."""
    return frozenset(cells_of(entry.of, cf.open(root, format="hbase", **entry.options).read().to_pylist()))


def cells_of(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[Cell]:
    for row in rows:
        yield name, row["row"], row["family"], row["qualifier"], int(row["timestamp"]), row["value"]


@dataclass
class World:
    """An estate with an HBase root, and all entries so far."""

    estate: Estate
    names: dict[str, Entry] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    """The paths of the entries' tables."""

    @property
    def root(self) -> Path:
        return self.estate.source / "hbase"

    def run(self, step: Run) -> None:
        has_other = (self.root / "data/shop/others").exists()
        if step.other and not has_other:
            add_table(self.root)
        elif not step.other and has_other:
            remove_table(self.root)
        asked = [entry for entry in step.entries if step.other or entry.of != "shop:others"]
        self.names.update((entry.name, entry) for entry in asked)
        (self.estate.source / "tables.toml").write_text("".join(entry.toml() for entry in asked))
        if asked:
            report = self.estate.migrate(leave_behind=step.leave, on_vanished="keep")
            self.paths.update((table.name, table.path) for table in report.tables)
            listed = self.estate.safe()
            assert report.exit_code or len(listed) == report.safe_to_delete
            if listed:
                self.check_all(step, asked)

    def check_all(self, step: Run, asked: Sequence[Entry]) -> None:
        """Checks that the target has everything, except what the run listed as left behind."""
        there = set(self.target())
        for name in ("shop:orders", "shop:others", "kept"):
            is_asked = any(entry.of == name for entry in asked)
            left = "snapshots" if name == "kept" else "tables"
            if (left in step.leave and not is_asked) or (name == "shop:others" and not step.other):
                continue
            view = "latest" if "older-versions" in step.leave else "versions"
            place = HBASE if name != "shop:others" else self.root
            lacking = cells(Entry(name, view), place) - there
            if "unflushed-edits" in step.leave:
                lacking &= cells(Entry(name, "versions", wal=False), place)
            assert not lacking, f"{name} is listed as safe, and lacks {len(lacking)}: {step}"

    def target(self) -> Iterator[Cell]:
        for name, path in self.paths.items():
            yield from cells_of(self.names[name].of, stored(self.estate, path))


@settings(**COMMON)
@given(steps())
def test_every_cell_of_a_listed_root_is_in_the_target(runs: list[Run]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Estate(Path(folder)))
        shutil.copytree(HBASE, world.root)
        for step in runs:
            world.run(step)


@settings(**COMMON)
@given(st.lists(st.tuples(st.sets(st.integers(0, 1)), st.booleans()), min_size=1, max_size=4))
def test_every_table_of_a_listed_data_directory_is_in_the_target(runs: list[tuple[set[int], bool]]) -> None:
    held = tables(str(KUDU), format="kudu")
    paths: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        estate = Estate(Path(folder))
        shutil.copytree(KUDU, estate.source / "kudu")
        for picked, leave in runs:
            chosen = [item for place, item in enumerate(held) if place in picked]
            # The directory was copied without its logs.
            toml = "".join(
                f'[tables.t{of}]\npath = "kudu"\ntable = "{of}"\nwal = false\n' for of, _ in chosen
            )
            (estate.source / "tables.toml").write_text(toml or '[tables.all]\npath = "kudu"\nwal = false\n')
            behind = ["unflushed-edits", *(["tables"] if leave else [])]
            report = estate.migrate(leave_behind=behind, on_vanished="keep")
            paths.update((table.name.rpartition(".")[2], table.path) for table in report.tables)
            for of, name in held if estate.safe() else []:
                if leave and chosen and of not in {table for table, _ in chosen}:
                    continue
                rows = cf.open(KUDU, table=of).read().num_rows
                assert len(stored(estate, paths[f"t{of}" if chosen else name])) == rows, (of, paths)


def stored(estate: Estate, path: str) -> list[dict[str, Any]]:
    """The rows of a target table, without tables below it."""
    files = sorted((estate.target / path).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_the_model_lists_some_directories(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    world = World(estate)
    shutil.copytree(HBASE, world.root)
    step = Run((Entry("shop:orders", "versions"), Entry("kept", "versions")), (), False)
    world.run(step)
    assert estate.safe() == [str(world.root)]
    world.paths.clear()
    with pytest.raises(AssertionError, match="lacks"):
        world.check_all(step, step.entries)
