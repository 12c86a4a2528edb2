"""An Iceberg table whose metadata others have written, cut or lost: an error of coldframe names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import ColdframeError, NotFoundError
from coldframe.iceberg.avro import check_frame

catalogs = pytest.importorskip("pyiceberg.catalog.sql")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    catalog = catalogs.SqlCatalog("x", uri=f"sqlite:///{tmp_path}/x.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    rows = pa.table({"id": [1, 2, 3]})
    made = catalog.create_table("n.t", rows.schema)
    made.append(rows)
    return Path(made.location().removeprefix("file://"))


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


MANIFEST, LIST = "metadata/*-m0.avro", "metadata/snap-*.avro"


@pytest.mark.parametrize("pattern", [MANIFEST, LIST, "data/*.parquet"])
def test_what_is_lost_is_named(table: Path, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    lost = only(table, pattern)
    lost.unlink()
    with pytest.raises(NotFoundError, match=lost.name):
        cf.iceberg_table(table).read()
    assert main(["head", str(table)]) == 2
    assert lost.name in capsys.readouterr().err


@pytest.mark.parametrize("pattern", [MANIFEST, LIST])
@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-30],
        lambda content: b"no avro" + content,
        lambda content: content[:8] + b"\xff" * 40 + content[48:],
        lambda content: content.replace(b'{"type"', b"[" * 7, 1),
    ],
    ids=["empty", "start", "cut", "other", "bytes", "json"],
)
def test_what_is_broken_is_named(table: Path, pattern: str, change: Callable[[bytes], bytes]) -> None:
    broken = only(table, pattern)
    content = change(broken.read_bytes())
    assert content != broken.read_bytes()
    broken.write_bytes(content)
    try:
        rows = cf.iceberg_table(table).read()
    except ColdframeError as error:
        assert broken.name in str(error)
        assert "\n" not in str(error)
    else:
        assert rows.num_rows == 3


@pytest.mark.parametrize("pattern", [MANIFEST, LIST])
def test_a_cut_anywhere_is_an_error_of_its_frame(table: Path, pattern: str) -> None:
    content = only(table, pattern).read_bytes()
    check_frame(content)
    for size in range(len(content)):
        # After its header, a file consists of blocks; there may be no blocks.
        if size != content.index(content[-16:]) + 16:
            with pytest.raises(ValueError, match=r"expected|left"):
                check_frame(content[:size])
    for wrong in (b"", b"Obj\x01", b"Obj\x01" + b"\xff" * 40, b"Obj\x01\x02\xfe\xff\xff\xff\x0f"):
        with pytest.raises(ValueError, match=r"expected|left"):
            check_frame(wrong)


def test_files_are_read_where_the_metadata_says(table: Path, tmp_path: Path) -> None:
    """A table's metadata may name any file, so only tables whose writers are trusted should be opened."""
    data = only(table, "data/*.parquet")
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / data.name
    data.rename(moved)
    assert cf.iceberg_table(table, location={str(data): str(moved)}).read().num_rows == 3


def test_a_name_is_no_type(tmp_path: Path) -> None:
    """A column called `wait_ns` says nothing about the unit of timestamps."""
    import datetime as dt

    from estates import Estate

    late = dt.datetime(9999, 12, 31)
    for name in ("wait_s", "wait_ns", "timestamp_ns"):
        estate = Estate(tmp_path / name)
        estate.orc("t/0.orc", {"at": pa.array([late], pa.timestamp("us")), name: [1]})
        assert estate.migrate(to="iceberg", files="orc").exit_code == 0
        assert cf.scan(estate.target / "t").read(["at"]).column("at").to_pylist() == [late]
