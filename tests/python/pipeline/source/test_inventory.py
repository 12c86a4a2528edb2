"""The inventory of a source tree lists everything that it skips."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from estates import Estate

from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.source.identity import identity_of
from coldframe.pipeline.source.inventory import Inventory, take_inventory
from coldframe.pipeline.source.tables import Table, TableSpec, find_tables

WAREHOUSE = Path(__file__).parents[3] / "data" / "rcfile" / "warehouse"


def unread(inventory: Inventory) -> dict[str, str]:
    return {file.relative: file.reason for file in inventory.unread}


def test_links_and_special_files_are_listed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(WAREHOUSE / "sales", source / "sales")
    shutil.copytree(WAREHOUSE / "sales", tmp_path / "elsewhere")
    files = len(take_inventory(str(source)).files)
    (source / "linked").symlink_to(tmp_path / "elsewhere")
    (source / "sales" / "lost").symlink_to(tmp_path / "nowhere")
    os.mkfifo(source / "sales" / "pipe")
    inventory = take_inventory(str(source))
    assert len(inventory.files) == files
    reasons = unread(inventory)
    assert set(reasons) == {"linked", "sales/lost", "sales/pipe"}
    assert str(tmp_path / "elsewhere") in reasons["linked"]
    assert reasons["sales/lost"] == "a link that leads nowhere"
    report = Report("src", "dst", "parquet", "raise", [], unread=inventory.unread)
    assert report.exit_code == 1
    assert {file["relative"] for file in report.to_json()["unread"]} == set(reasons)


def test_a_directory_or_file_that_cannot_be_read_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "src"
    shutil.copytree(WAREHOUSE / "sales", source / "sales")
    closed = next(path for path in sorted((source / "sales").iterdir()) if path.is_dir())
    broken = max(path for path in (source / "sales").rglob("*") if path.is_file())
    assert closed not in broken.parents
    before = take_inventory(str(source)).files
    scandir, stat = os.scandir, os.stat

    def refuses(path: Any = ".") -> Any:
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    def fails(path: Any, *given: Any, **named: Any) -> Any:
        if str(path) == str(broken):
            raise OSError(5, "Input/output error", str(path))
        return stat(path, *given, **named)

    monkeypatch.setattr(os, "scandir", refuses)
    monkeypatch.setattr(os, "stat", fails)
    inventory = take_inventory(str(source))
    monkeypatch.undo()
    below = f"{closed.relative_to(source)}/"
    rest = [file for file in before if not file.relative.startswith(below) and file.path != str(broken)]
    assert [file.relative for file in inventory.files] == [file.relative for file in rest]
    assert unread(inventory) == {
        str(closed.relative_to(source)): "Permission denied",
        str(broken.relative_to(source)): "Input/output error",
    }


class Counted(SourceFile):
    """Counts the calls of `partition`."""

    asked = 0

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        Counted.asked += 1
        return super().keys


def test_a_table_of_many_files_takes_one_pass() -> None:
    def files(count: int) -> Iterator[SourceFile]:
        for number in range(count):
            yield Counted(f"/src/t/dt={number}/0", f"t/dt={number}/0", 1, 1, "rcfile")

    specs = [TableSpec(f"other{n}", f"other/{n}") for n in range(100)]
    for count in (500, 1000):
        Counted.asked = 0
        inventory = Inventory("/src", list(files(count)))
        (table,) = find_tables(inventory, specs)
        assert [table.partition_fields for _ in range(count)][-1][0].name == "dt"
        assert Counted.asked == count


def test_damaged_and_empty_files_go_to_their_tables() -> None:
    def file(relative: str, format: str | None, size: int = 1) -> SourceFile:
        return SourceFile(f"/src/{relative}", relative, size, 1, format)

    specs = [TableSpec("named", "a/b"), TableSpec("lost", "c", "orc")]
    inventory = Inventory(
        "/src",
        [file("a/b/0", "orc"), file("a/x/0", "orc")],
        [file("a/x/1", None, 0)],
        [file("a/b/k=1/1", None), file("c/0", None), file("d/0", None)],
    )
    # An entry with a format takes files of that format; an entry without a format takes unrecognised files
    # too.
    tables: dict[str, Table] = {table.name: table for table in find_tables(inventory, specs)}
    assert set(tables) == {"named", "a.x"}
    assert [file.relative for file in tables["named"].damaged] == ["a/b/k=1/1"]
    assert [file.relative for file in tables["a.x"].empty] == ["a/x/1"]
    specs = [TableSpec("named", "a/b"), TableSpec("lost", "c")]
    tables = {table.name: table for table in find_tables(inventory, specs)}
    assert [file.relative for file in tables["lost"].damaged] == ["c/0"]


def test_a_table_of_spoilt_files_is_damaged(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.orc("a/part-0.orc", {"a": [1, 2]})
    spoilt = estate.orc("b/part-0.orc", {"a": [3, 4]})
    spoilt.write_bytes(bytes(spoilt.stat().st_size))
    # Names alone say little: these are texts.
    for name in ("c/build.rc", "c/notes.red"):
        (estate.source / name).parent.mkdir(exist_ok=True)
        (estate.source / name).write_text("Some text, in several words.\n")
    report = estate.migrate()
    assert report.exit_code == 1
    assert [failure.source for failure in report.failures] == ["b/part-0.orc"]
    assert report.unknown == ["c/build.rc", "c/notes.red"]
    assert estate.safe() == [str(estate.source / "a/part-0.orc")]
    estate.orc("b/part-0.orc", {"a": [3, 4]})
    assert (estate.migrate().exit_code, estate.values("b")) == (0, [3, 4])


def test_the_identity_of_a_directory_covers_what_its_links_lead_to(tmp_path: Path) -> None:
    root, disk = tmp_path / "root", tmp_path / "disk"
    for folder in (root / "a/b", disk / "x"):
        folder.mkdir(parents=True)
    (root / "a/b/f").write_bytes(b"1")
    (disk / "x/g").write_bytes(b"1")
    before = identity_of(str(root))
    (root / "a/link").symlink_to(disk)
    linked = identity_of(str(root))
    assert linked != before
    (disk / "x/g").write_bytes(b"22")
    assert identity_of(str(root)) != linked
    # Links to a parent folder, directly or through another link, are not followed.
    changed = identity_of(str(root))
    (root / "a/b/up").symlink_to(root / "a")
    (disk / "x/back").symlink_to(root)
    assert identity_of(str(root)) == changed
    (root / "a/link").unlink()
    (root / "a/b/up").unlink()
    assert identity_of(str(root)) == before
