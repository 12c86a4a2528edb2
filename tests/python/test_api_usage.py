"""Usage from Python: type checkers, origin columns, notebooks, file objects."""

from __future__ import annotations

import importlib.util
import io
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import coldframe as cf
from coldframe._coldframe import formats
from coldframe.literals import FormatName, WrittenFormat

ROWS = pa.table({"id": range(100), "s": [f"name {i % 7}" for i in range(100)]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two files in partitions."""
    for part in (1, 2):
        folder = tmp_path / "t" / f"p={part}"
        folder.mkdir(parents=True)
        cf.write(ROWS.slice(part * 10, 30), folder / "part-0.orc")
    return tmp_path / "t"


def test_argument_literals_match_the_formats() -> None:
    known = formats()
    assert set(get_args(FormatName)) == set(known)
    assert set(get_args(WrittenFormat)) == {
        name for name, about in known.items() if about["capabilities"]["written"]
    }


SNIPPET = """
import coldframe as cf

f = cf.open("a.orc", format="orc")
reveal_type(f.schema)
reveal_type(f.read(["id"], on_error="skip"))
reveal_type(f.to_batches(filter=[("id", ">", 5)]))
reveal_type(f.head())
reveal_type(f.num_rows)
reveal_type(f.column_names)
d = cf.scan("folder", file_path="path", row_index="n")
reveal_type(d.to_table())
reveal_type(d.schema)
reveal_type(cf.read_table("a.orc"))
reveal_type(cf.read_schema("a.orc"))
reveal_type(cf.tables("folder"))
cf.write(d, "b.orc")
cf.open("a.orc", format="ork")
f.read(on_error="ignore")
"""
REVEALED = [
    *("pyarrow.Schema", "pyarrow.Table", "pyarrow.RecordBatchReader", "pyarrow.Table", "int | None"),
    *("list[str]", "pyarrow.Table", "pyarrow.Schema", "pyarrow.Table", "pyarrow.Schema"),
    "list[coldframe.table_listing.FoundTable]",
]


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_type_checker_infers_return_types(tmp_path: Path) -> None:
    stubs = tmp_path / "stubs" / "pyarrow"
    stubs.mkdir(parents=True)  # pyarrow is untyped; its stubs use these names
    names = ("Table", "Schema", "RecordBatchReader", "RecordBatch")
    classes = "".join(f"class {name}: ...\n" for name in names)
    (stubs / "__init__.pyi").write_text(
        f"from typing import Any\n{classes}def __getattr__(name: str) -> Any: ...\n"
    )
    (tmp_path / "snippet.py").write_text(SNIPPET)
    # The types need no other package, and PySpark alone would take half the time.
    others = ",".join(f"{name}.*" for name in ("pyspark", "pyiceberg", "numpy", "pandas", "polars", "rich"))
    config = f"[mypy]\nmypy_path = {stubs.parent}\nfollow_imports = silent\n"
    (tmp_path / "mypy.ini").write_text(f"{config}[mypy-{others}]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "snippet.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    lines = done.stdout.splitlines()
    types = [line.split('"')[1] for line in lines if "Revealed type" in line]
    assert [
        name.replace("builtins.", "").replace("Union[int, None]", "int | None") for name in types
    ] == REVEALED
    errors = [line for line in lines if ": error:" in line]
    assert len(errors) == 2, errors
    assert "ork" in errors[0]
    assert "ignore" in errors[1]


def test_file_path_and_row_index_become_columns(table: Path) -> None:
    dataset = cf.scan(table, file_path="path", row_index="n")
    assert dataset.schema.names == ["id", "s", "p", "path", "n"]
    rows = dataset.to_table()
    assert rows["n"].to_pylist() == list(range(60))
    paths = [str(table / f"p={part}" / "part-0.orc") for part in (1, 2)]
    assert rows["path"].to_pylist() == [paths[0]] * 30 + [paths[1]] * 30
    assert rows.drop_columns(["path", "n"]).equals(cf.scan(table).to_table())
    # Filters do not change row numbers.
    kept = dataset.to_table(["n", "id"], filter="id >= 35 and n < 35", limit=7)
    assert kept.to_pydict() == {"n": [25, 26, 27, 28, 29], "id": [35, 36, 37, 38, 39]}
    assert dataset.to_table(["id"], filter=[("path", "=", paths[1])], limit=2)["id"].to_pylist() == [20, 21]
    assert dataset.count("p = 2") == 30
    assert dataset.count() == 60
    assert pickle.loads(pickle.dumps(dataset)).to_table().equals(rows)
    assert dataset.to_dataset().to_table(["n"], filter=pc.field("n") >= 58)["n"].to_pylist() == [58, 59]
    with pytest.raises(cf.SchemaError, match="need another name"):
        _ = cf.scan(table, file_path="id").schema
    with pytest.raises(cf.UnsupportedError, match=r"Split\.path"):
        dataset.splits()


def test_fragments_are_files(table: Path) -> None:
    dataset = cf.scan(table).to_dataset()
    fragments = list(dataset.get_fragments())
    assert [fragment.path for fragment in fragments] == [
        str(table / f"p={part}/part-0.orc") for part in (1, 2)
    ]
    assert pa.concat_tables([fragment.to_table() for fragment in fragments]).equals(dataset.to_table())
    [second] = dataset.get_fragments(filter=pc.field("p") == 2)
    assert second.count_rows() == 30
    assert second.partition_expression.equals((pc.field("p") == 2) & pc.scalar(True)) or "p" in str(
        second.partition_expression
    )
    [whole] = cf.open(fragments[0].path).to_dataset().get_fragments()
    assert whole.head(1).num_rows == 1
    assert whole.physical_schema.names == ["id", "s"]


def test_notebooks_show_rows_and_damage(table: Path) -> None:
    file = cf.open(table / "p=1" / "part-0.orc")
    text = file._repr_html_()
    assert "rows <b>30</b>" in text
    assert "<td style='text-align:left'>id</td>" in text
    assert "files <b>2</b>" in cf.scan(table)._repr_html_()
    data = bytearray((table / "p=1" / "part-0.orc").read_bytes())
    data[5:15] = bytes(10)
    broken = cf.open(bytes(data))
    broken.read(on_error="skip")
    assert bool(broken.damage) == ("The last read lost" in broken._repr_html_())


def test_a_file_can_be_closed(table: Path) -> None:
    file = cf.open(table / "p=1" / "part-0.orc")
    assert file.column_names == ["id", "s"] == cf.scan(table).column_names[:2]
    assert not file.closed
    file.close()
    file.close()
    assert file.closed
    assert "closed" in repr(file)
    assert file.schema.names == ["id", "s"]
    with pytest.raises(ValueError, match="the file is closed"):
        file.read()


def test_extension_sets_the_format_and_file_objects_are_written(tmp_path: Path) -> None:
    for ending, format in {"orc": "orc", "rc": "rcfile", "redelm": "redfile"}.items():
        cf.write(ROWS, tmp_path / f"a.{ending}")
        assert cf.detect(tmp_path / f"a.{ending}") == format
    with pytest.raises(ValueError, match="give format="):
        cf.write(ROWS, tmp_path / "a.parquet")
    sink = io.BytesIO()
    report = cf.write(ROWS, sink, format="orc")
    assert report["rows"] == 100
    assert cf.open(sink.getvalue()).read().equals(ROWS)
    with pytest.raises(ValueError, match="a file object needs format="):
        cf.write(ROWS, io.BytesIO())
    assert textwrap.dedent(cf.write.__doc__ or "")
