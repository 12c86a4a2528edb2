"""Log lines of reads: what they contain, and what they never contain."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.logs import safe, step, watched

LOGGER = logging.getLogger("coldframe")
SAMPLE = Path(__file__).parents[1] / "data" / "orc" / "files" / "ints.orc"
TRACE_LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (?P<thread>\S+) (?P<name>[a-z]+)"
    r"(?: #(?P<number>\d+) (?P<kind>begin|end \d+ us))?(?P<fields>(?: .*)?)"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cf.write(pa.table({"id": range(10)}), tmp_path / "a.orc")
    return tmp_path / "a.orc"


def test_the_package_prints_nothing_by_itself(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)
    cf.open(path).read()
    assert capsys.readouterr() == ("", "")


def test_a_read_logs_opening_and_reading(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "coldframe")
    cf.open(path).read()
    lines = [re.sub(r"\d+ ms", "N ms", line) for line in caplog.messages]
    assert lines == [
        f"opening {path}",
        f"opening {path}: done, format orc, N ms",
        f"reading {path}",
        f"reading {path}: first batch, N ms",
        f"reading {path}: done, 10 rows in 1 batches, N ms",
    ]


def test_a_scan_logs_its_files_splits_and_rows(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coldframe")
    table = cf.scan(path.parent)
    (split,) = table.splits()
    split.to_batches().read_all()
    lines = "\n".join(caplog.messages)
    assert f"finding the files of {path.parent}: done, 1 files" in lines
    assert f"planning splits of {path.parent}: done, 1 splits of 1 files" in lines
    assert re.search(rf"reading a split of {path}, .*: done, 10 rows", lines)


def test_a_reader_that_stops_early_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coldframe")
    batches = iter(watched(LOGGER, logging.INFO, "reading %s", "a.orc", batches=[pa.table({"id": [1]})] * 2))
    next(batches)
    del batches
    assert "reading a.orc: stopped by the caller, 1 rows in 1 batches" in caplog.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pass@host/a.orc?sig=abc#x", "https://host/a.orc"),
        ("https://token@host/a.orc", "https://host/a.orc"),
        ("https://host:8443/a.orc?sig=a@secret", "https://host:8443/a.orc"),
        ("s3://key:sec/ret@bucket/a.orc", "s3://***@bucket/a.orc"),
        ("abfss://box@account/a.orc?sig=abc", "abfss://box@account/a.orc"),
        ("ftp://user:p?a=b@host/a.orc", "ftp://***"),
        ("thrift://hive@host:9083", "thrift://hive@host:9083"),
        ("s3://bucket/part-?.orc", "s3://bucket/part-?.orc"),
        ("/data/a?b=c.orc", "/data/a?b=c.orc"),
        ("a\nb\x1b[2J", "a\\u000ab\\u001b[2J"),
        (17, 17),
    ],
)
def test_secrets_of_urls_are_not_logged(url: object, shown: object) -> None:
    assert safe(url) == shown


def test_a_source_that_cannot_be_opened_logs_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "coldframe")
    with pytest.raises(cf.ColdframeError):
        cf.open("nosuch://user:hunter2@host/a.orc?token=hunter3", storage_options={"key": "hunter4"})
    assert "opening nosuch://host/a.orc: UnsupportedError" in caplog.text
    assert "hunter" not in caplog.text


def test_a_failed_step_logs_the_class_of_its_error_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coldframe")
    with pytest.raises(ValueError, match="hunter2"), step(LOGGER, logging.INFO, "calling %s", "host"):
        raise ValueError("hunter2")
    assert "calling host: ValueError, " in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("arguments", "levels"),
    [
        (["count", "FILE"], set()),
        (["-v", "head", "FILE"], {"INFO"}),
        (["head", "FILE", "-v"], {"INFO"}),
        (["-v", "head", "FILE", "--verbose"], {"INFO", "DEBUG"}),
        (["head", "-vv", "FILE"], {"INFO", "DEBUG"}),
    ],
)
def test_the_command_line_logs_to_standard_error(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], levels: set[str]
) -> None:
    before = (LOGGER.level, list(LOGGER.handlers))
    assert main([str(path) if word == "FILE" else word for word in arguments]) == 0
    out, err = capsys.readouterr()
    assert "opening" not in out
    lines = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) coldframe\S*: \S", err, re.MULTILINE)
    assert set(lines) == levels
    assert (LOGGER.level, LOGGER.handlers) == before


NAMES = {"open", "plan", "unit", "decode", "fetch"}


def traced_lines(value: str | None, *arguments: str) -> list[str]:
    """Standard error of the command `verify` on a reference file, with this value of COLDFRAME_TRACE."""
    environment = {name: text for name, text in os.environ.items() if name != "COLDFRAME_TRACE"}
    if value is not None:
        environment["COLDFRAME_TRACE"] = value
    command = [sys.executable, "-m", "coldframe", "verify", *arguments, str(SAMPLE)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout
    return run.stderr.splitlines()


def test_the_environment_turns_the_trace_on() -> None:
    parsed = [TRACE_LINE.fullmatch(line) for line in traced_lines("1")]
    lines = [match.groupdict() for match in parsed if match is not None]
    assert len(lines) == len(parsed)
    assert {line["name"] for line in lines} == NAMES
    # Each span that began has ended, with the same number.
    begun = [line["number"] for line in lines if line["kind"] == "begin"]
    ended = [line["number"] for line in lines if line["kind"] != "begin" and line["number"] is not None]
    assert sorted(begun) == sorted(ended)
    ends = {line["name"]: line["fields"] for line in lines if (line["kind"] or "").startswith("end ")}
    assert f'path="{SAMPLE}"' in ends["open"]
    assert 'format="orc"' in ends["open"]
    assert re.search(r" rows=\d+", ends["unit"])
    assert re.search(r" busy_us=\d+", ends["decode"])


@pytest.mark.parametrize("value", [None, "", "0"])
def test_there_is_no_trace_by_default(value: str | None) -> None:
    assert traced_lines(value) == []


def test_the_trace_is_on_at_debug_level_only() -> None:
    assert not any(TRACE_LINE.fullmatch(line) for line in traced_lines(None, "-v"))
    matches = [TRACE_LINE.fullmatch(line) for line in traced_lines(None, "-vv")]
    assert {match["name"] for match in matches if match is not None} == NAMES


def test_the_import_loads_no_more_than_logging() -> None:
    code = (
        "import sys, coldframe; print(*sorted({'logging', 'pyarrow', 'coldframe.logs'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["logging"]
