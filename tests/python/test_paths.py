"""Valid paths: any bytes that the file system accepts, or a `file://` URL; and invalid paths."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from truth import same

import coldframe as cf
from coldframe.sources import options_for

TABLE = pa.table({"n": pa.array(range(10), pa.int64())})


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """The path of a file, not in UTF-8."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe caf\xe9.red")
    cf.write(TABLE, path, format="redfile")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe caf\xe9.red"]
    return path


def test_a_path_need_not_be_text(odd: str) -> None:
    assert cf.detect(odd) == "redfile"
    for given in (odd, Path(odd)):
        file = cf.open(given)
        assert file.path == odd
        assert same(file.read(), TABLE)
    again = [pickle.loads(pickle.dumps(split)) for split in cf.open(odd).splits()]
    assert same(pa.concat_tables(split.to_batches().read_all() for split in again), TABLE)


def test_non_utf8_path_is_scanned_among_others(odd: str, tmp_path: Path) -> None:
    cf.write(TABLE, tmp_path / "other.red", format="redfile")
    for sources in (tmp_path, str(tmp_path / "*.red"), [odd, tmp_path / "other.red"]):
        dataset = cf.scan(sources)
        assert dataset.count() == 20
        assert set(dataset.files) == {odd, str(tmp_path / "other.red")}


def test_errors_show_a_non_utf8_path(odd: str) -> None:
    Path(odd).write_bytes(b"RED1 and nothing else")
    with pytest.raises(cf.CorruptFileError) as caught:
        cf.open(odd)
    str(caught.value).encode()
    assert "caf\ufffd.red" in str(caught.value)
    with pytest.raises(cf.NotFoundError):
        cf.open(odd + "x")


def test_partition_values_are_text(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/k=\xff"
    os.mkdir(folder)
    cf.write(TABLE, os.fsdecode(folder) + "/a.red", format="redfile")
    with pytest.raises(cf.SchemaError, match="UTF-8"):
        cf.scan(tmp_path)


def test_the_command_line_prints_it(odd: str) -> None:
    run = subprocess.run([sys.executable, "-m", "coldframe", "detect", odd], capture_output=True, check=True)
    assert run.stdout == os.fsencode(odd) + b": redfile\n"


def test_file_urls_are_paths(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/a%20b%C3%A9.red"
    cf.write(TABLE, url, format="redfile")
    assert os.listdir(tmp_path) == ["a b\u00e9.red"]
    assert cf.detect(url) == "redfile"
    assert same(cf.open(url).read(), TABLE)
    assert same(cf.scan(url).to_table(), TABLE)
    assert same(cf.open(f"file://localhost{tmp_path}/a%20b%C3%A9.red").read(), TABLE)
    raw = f"file://{tmp_path}/%FF.red"
    cf.write(TABLE, raw, format="redfile")
    assert same(cf.open(raw).read(), TABLE)
    assert os.fsencode(tmp_path) + b"/\xff.red" in {os.fsencode(path) for path in tmp_path.iterdir()}


def test_invalid_destinations_are_refused(tmp_path: Path) -> None:
    cf.write(TABLE, os.fsencode(tmp_path / "bytes.red"), format="redfile")
    assert same(cf.open(tmp_path / "bytes.red").read(), TABLE)
    for contents in (bytearray(b"path"), memoryview(b"path"), 3):
        with pytest.raises(TypeError, match="dest: expected a path"):
            cf.write(TABLE, contents, format="redfile")  # type: ignore[arg-type]
    with pytest.raises(cf.UnsupportedError, match="http://"):
        cf.write(TABLE, "http://127.0.0.1:9/a.red", format="redfile")


def test_bytes_are_a_path_if_no_format_recognises_them(tmp_path: Path) -> None:
    path = tmp_path / "a.red"
    cf.write(TABLE, path, format="redfile")
    for given in (os.fsencode(path), os.fsencode(os.path.relpath(path)), os.fsencode(path.as_uri())):
        assert cf.detect(given) == "redfile"
        assert same(cf.open(given).read(), TABLE)
        assert same(cf.read_table(given), TABLE)
        assert same(cf.scan(given).to_table(), TABLE)
        assert cf.scan([given, path]).count() == 20
    assert same(cf.scan(os.fsencode(tmp_path)).to_table(), TABLE)
    assert same(pickle.loads(pickle.dumps(cf.open(os.fsencode(path)))).read(), TABLE)
    with pytest.raises(cf.NotFoundError, match=r"nothing\.red"):
        cf.open(b"nothing.red")


def test_contents_are_read_as_files(tmp_path: Path) -> None:
    path = tmp_path / "a.red"
    cf.write(TABLE, path, format="redfile")
    content = path.read_bytes()
    for given in (content, bytearray(content), memoryview(content), pa.py_buffer(content)):
        assert same(cf.open(given).read(), TABLE)
        assert same(cf.scan(given).to_table(), TABLE)
    for given in (b"", b"RED1 and\0 nothing else", b"x" * 5000, memoryview(b"no path")):
        with pytest.raises(cf.CorruptFileError):
            cf.open(given)


def test_options_of_several_stores_stay_apart() -> None:
    given = {"s3.region": "eu", "hdfs": {"user": "bob"}, "timeout": "5s", "client_kwargs": {"a": 1}}
    both = {"timeout": "5s", "client_kwargs": {"a": 1}}
    assert options_for("s3a://b/x", given) == {"region": "eu", **both}
    assert options_for("hdfs://nn/x", given) == {"user": "bob", **both}
    assert options_for("/x", given) == both
    assert options_for("s3://b", None) is None
