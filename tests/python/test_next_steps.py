"""The next steps of messages: the command line prints them, docs/messages.md lists them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe.cli import main, parser_of_all
from coldframe.cli.completion import commands_of
from coldframe.cli.next_steps import STEPS, next_step, page
from coldframe.options import declared

DATA = Path(__file__).parents[1] / "data"
DOCS = Path(__file__).parents[2] / "docs"
ROWS = pa.table({"id": range(100), "s": [f"name {i % 7}" for i in range(100)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that cause errors."""
    (tmp_path / "t").mkdir()
    cf.write(ROWS, tmp_path / "t" / "a.orc")
    cf.write(ROWS, tmp_path / "a.rc", serde="text")
    for place in ("several/t", "several/u/p=1"):
        (tmp_path / place).mkdir(parents=True)
        cf.write(ROWS, tmp_path / place / "a.orc")
    (tmp_path / "cut.orc").write_bytes((tmp_path / "t" / "a.orc").read_bytes()[:300])
    (tmp_path / "rows.csv").write_text("id,s\n1,a\n")
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "step"),
    [
        ("head {}/rows.csv", "`--input-format NAME`"),
        ("head {}/rows.parquet", "`convert` also Arrow"),
        ("head {}/nothing.orc", "`coldframe tables DIR`"),
        ("head {}/t --option nope=1", "`coldframe options FORMAT`"),
        ("head {}/cut.orc", "`coldframe salvage FILE OUT.parquet` finds its stripes"),
        ("head {}/a.rc --schema 'id itn'", "SHOW CREATE TABLE"),
        ("head {}/a.rc --schema 'id int, s string' --serde binary", "`--serde` sets it"),
        ("head {}/a.rc --schema 'id int, s string'", "`coldframe schema FILE --as tables`"),
        ("head {}/several", "`coldframe tables DIR`"),
        ("head {}/t --where 'id >'", "a condition in SQL"),
        ("head {}/t --key a=zz", "`--key NAME=HEX`"),
        ("stats --lengths {}/t/a.orc", "`coldframe sizes FILE`"),
        ("diff {}/t {}/a.rc", "`coldframe schema FILE`"),
        ("audit {}/t", "`coldframe migrate SRC DST`"),
        (f"head {DATA}/orc/files/encrypted.orc --option masked=error", "`--key NAME=HEX`"),
        (f"verify {DATA}/kudu/files/log_blocks --option table=nope", "`--option table=NAME`"),
        (f"verify {DATA}/kudu/files/file_blocks --option table=evnts", "did you mean 'events'? `--option"),
        ("head {}/t -c ids", "did you mean 'id'?"),
        ("head {}/t --where 'ID2 > 1'", "did you mean 'id'?"),
        ("count {}/t/a.orc --where 'idx > 1'", "did you mean 'id'?"),
        ("sizes {}/t -c idd", "did you mean 'id'?"),
        ("head foo://x/y", "fsspec"),
    ],
)
def test_the_command_line_prints_the_next_step(
    arguments: str, step: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.replace("{}", str(folder)) for word in shlex.split(arguments)]
    assert main(given) in (1, 2)
    errors = capsys.readouterr().err
    assert step in errors.partition("\n  next: ")[2], errors


def test_a_name_that_resembles_no_other_gets_no_suggestion() -> None:
    assert next_step("no column 'total'; the columns are 'id', 's'") is None
    assert next_step("no column 'Total'; the columns are 'id', 'totals'") == "did you mean 'totals'?"
    assert next_step("no column `a`; there are: b") is None


def test_step_in_the_message_is_not_repeated() -> None:
    assert next_step("x.parquet exists; --overwrite replaces it") is None
    assert next_step("get: orc files have no keys; see head --where") is None
    assert "coldframe salvage" in str(next_step("a.rc: byte 1: row group 0: zlib: it broke", is_damage=True))


def test_steps_name_existing_commands_and_options() -> None:
    commands = set(commands_of(parser_of_all()))
    options = {*declared(), *declared(write=True)}
    for step in STEPS:
        for command in re.findall(r"`coldframe ([a-z]+)", step.command_line):
            assert command in commands, step
        for option in re.findall(r"--option (\w+)=", step.command_line):
            assert option in options, step
        for name in re.findall(r"cf\.(\w+)\(", step.python):
            assert hasattr(cf, name), step
    assert len({step.message for step in STEPS}) == len(STEPS)


def test_page_is_generated_from_the_steps() -> None:
    """To regenerate it: python -c "from coldframe.cli.next_steps import page; print(page(), end='')"."""
    assert (DOCS / "messages.md").read_text(encoding="utf-8") == page()
