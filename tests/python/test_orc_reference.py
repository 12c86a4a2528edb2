"""ORC's Java reader reads the files that coldframe writes, also by index. The files are about as large as
Java's.

The Java program is in tests/reference/orc. The first build of the program needs Maven, with a registry or a
filled cache.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.util
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from truth import ROOT, difference

import coldframe as cf

PROGRAM = ROOT / "tests" / "reference" / "orc"
ROWS = 12_000
STRIDE = 1000
TEXTS = ["", "plain", "Grüße", "日本語", "🦀 crab", 'quote " and \\', "line\nfeed", "x" * 2000]


def run(*arguments: str | Path) -> str:
    done = subprocess.run(
        [PROGRAM / "run.sh", *arguments], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    """Builds the program; skips the tests if that is impossible."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"the reference program needs {tool}")
    built = subprocess.run(
        ["mvn", "-B", "-q", "process-classes"],
        cwd=PROGRAM,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if built.returncode and "Could not resolve" in built.stdout + built.stderr:
        pytest.skip("Maven cannot get the reference program's libraries")
    assert built.returncode == 0, built.stdout + built.stderr


def rows_in(path: Path, schema: pa.Schema, *arguments: str) -> pa.Table:
    """The rows that Java reads."""
    spec = importlib.util.spec_from_file_location("orc_truth", PROGRAM / "truth.py")
    assert spec is not None
    assert spec.loader is not None
    truth = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(truth)
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in run("read", path, *arguments).split("\n") if line
    ]
    columns = [truth.column_of(field.type, [row[field.name] for row in rows]) for field in schema]
    return pa.table(columns, names=schema.names)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Every type, with nulls, in several stripes."""
    dice = random.Random(5)
    epoch = dt.date(1970, 1, 1)

    def column(of: pa.DataType, value: Any) -> pa.Array:
        return pa.array([None if dice.random() < 0.1 else value(at) for at in range(ROWS)], of)

    return pa.table(
        {
            "id": pa.array(range(ROWS)),
            "flag": column(pa.bool_(), lambda at: dice.random() < 0.5),
            "tiny": column(pa.int8(), lambda at: dice.randrange(-128, 128)),
            "small": column(pa.int16(), lambda at: at % 300),
            "n": column(pa.int32(), lambda at: dice.randrange(-(2**31), 2**31)),
            "big": column(
                pa.int64(), lambda at: dice.choice([7, 2**63 - 1, -(2**63), dice.randrange(2**40)])
            ),
            "patched": column(pa.int64(), lambda at: 2**45 if at % 41 == 0 else dice.randrange(99)),
            "f": column(pa.float32(), lambda at: dice.randrange(-999, 999) / 8),
            "d": column(pa.float64(), lambda at: dice.choice([float("nan"), float("inf"), dice.random()])),
            "few": column(pa.string(), lambda at: dice.choice(TEXTS)),
            "many": column(pa.string(), lambda at: f"text {at * 7919 % ROWS}"),
            "bytes": column(pa.binary(), lambda at: dice.randbytes(dice.randrange(9))),
            "day": column(
                pa.date32(), lambda at: epoch + dt.timedelta(days=dice.randrange(-300_000, 300_000))
            ),
            "at": column(
                pa.timestamp("ns"),
                lambda at: dice.randrange(-(10**18), 10**18) if at % 3 else at * 10**9 - 6000 * 10**9,
            ),
            "instant": column(pa.timestamp("us", "UTC"), lambda at: dice.randrange(10**15)),
            "p12": column(pa.decimal128(12, 3), lambda at: decimal.Decimal(dice.randrange(10**9)).scaleb(-3)),
            "p38": column(
                pa.decimal128(38, 10),
                lambda at: decimal.Decimal(dice.randrange(-(10**37), 10**37)).scaleb(-10),
            ),
            "tags": column(pa.list_(pa.string()), lambda at: [dice.choice([None, "a", "b"])] * (at % 4)),
            "scores": column(
                pa.map_(pa.string(), pa.int32()), lambda at: [(f"k{n}", at) for n in range(at % 3)]
            ),
            "place": column(
                pa.struct([("x", pa.int64()), ("deep", pa.struct([("y", pa.string())]))]),
                lambda at: {"x": None if at % 5 == 0 else at, "deep": {"y": "z"} if at % 2 else None},
            ),
        }
    )


@pytest.mark.parametrize("codec", ["none", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli"])
def test_java_reads_coldframe_files(table: pa.Table, codec: str, tmp_path: Path) -> None:
    path = tmp_path / "file.orc"
    if codec != "zlib":
        # One codec covers all rows; the others compress a quarter of them, in two stripes.
        table = table.slice(0, ROWS // 4)
    options: dict[str, Any] = {"codec": codec, "row_index_stride": STRIDE}
    options["stripe_rows"] = table.num_rows * 7 // 12
    cf.write(table, path, format="orc", bloom_filter_columns=["id", "many"], **options)
    # Java prints floats as doubles.
    got = rows_in(path, table.schema)
    why = difference(got, table)
    assert why is None, why


@pytest.mark.parametrize("strategy", ["speed", "compression"])
def test_java_finds_row_groups_by_indexes_and_bloom_filters(
    table: pa.Table, strategy: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.orc"
    blooms = ["many", "few"]
    cf.write(
        table,
        path,
        format="orc",
        codec="zstd",
        compression_block_size=4096,
        row_index_stride=STRIDE,
        encoding_strategy=strategy,
        bloom_filter_columns=blooms,
    )
    row = next(at for at in range(9100, ROWS) if table["many"][at].is_valid)
    for wanted in (f"id:{row}", f"many:{table['many'][row].as_py()}"):
        got = rows_in(path, table.schema, f"equals={wanted}")
        assert got.num_rows == STRIDE, wanted
        assert got["id"][0].as_py() == 9000
        why = difference(got, table.slice(9000, STRIDE))
        assert why is None, why
    assert rows_in(path, table.schema, "equals=many:nothing").num_rows == 0


def test_java_reads_unions_empty_tables_and_structs(tmp_path: Path) -> None:
    path = tmp_path / "file.orc"
    union = pa.UnionArray.from_sparse(
        pa.array([0, 1, 1, 0], pa.int8()), [pa.array([1, None, 3, 4]), pa.array(["a", "b", None, "d"])]
    )
    cf.write(pa.table({"u": union}), path, format="orc")
    values = [json.loads(line)["u"] for line in run("read", path).splitlines()]
    assert values == [
        {"tag": 0, "value": 1},
        {"tag": 1, "value": "b"},
        {"tag": 1, "value": None},
        {"tag": 0, "value": 4},
    ]
    cf.write(pa.table({"u": union}).slice(0, 0), path, format="orc")
    assert run("read", path) == ""


@pytest.mark.parametrize("codec", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_files_are_about_as_large_as_javas(table: pa.Table, codec: str, tmp_path: Path) -> None:
    """At most 2 % larger than Java's files of the same rows and settings."""
    ours, javas = tmp_path / "ours.orc", tmp_path / "javas.orc"
    cf.write(table, ours, format="orc", codec=codec)
    run("copy", ours, javas, f"orc.compress={codec.upper()}")
    assert difference(cf.open(javas).read(), table) is None
    ratio = ours.stat().st_size / javas.stat().st_size
    assert ratio < 1.02, ratio


def test_varchar_and_char_are_stored_as_by_java(tmp_path: Path) -> None:
    ours, javas = tmp_path / "ours.orc", tmp_path / "javas.orc"
    texts = [*TEXTS, None, "Grüße, Welt", "日本語の文字列", "🦀🦀🦀🦀🦀🦀", "blanks   ", "a"] * 50
    table = pa.table({"v": texts, "c": texts, "s": [{"c": text} for text in texts]})
    types = {"v": "varchar(5)", "c": "char(7)", "s.c": "char(2)"}
    cf.write(table, ours, format="orc", codec="none", types=types)
    # Java strips the blanks of char when it reads, and pads again when it writes.
    run("copy", ours, javas)
    stored = cf.open(ours).read()
    assert stored.equals(cf.open(javas).read())
    assert cf.open(ours).metadata["types"] == cf.open(javas).metadata["types"]
    read = [json.loads(line) for line in run("read", ours).split("\n") if line]
    assert [row["v"] for row in read] == stored["v"].to_pylist()
    trimmed = [None if text is None else text.rstrip(" ") for text in stored["c"].to_pylist()]
    assert [row["c"] for row in read] == trimmed
