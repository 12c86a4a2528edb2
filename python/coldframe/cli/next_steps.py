"""The next steps for frequent errors, on the command line and in Python.

The command line prints the step below the message. docs/messages.md lists them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A message and its next step."""

    message: str
    """A part of the message; `..` matches any text."""
    command_line: str
    python: str

    def fits(self, message: str) -> bool:
        """Whether an error has this message."""
        return re.search(".*".join(map(re.escape, self.message.split(".."))), message, re.DOTALL) is not None


STEPS = [
    Step(
        "expected the magic of a known format",
        "if it is one of these formats, its ends are damaged: `--input-format NAME` opens it; "
        "`convert` and `sql` read CSV, JSON lines and Parquet",
        'if it is one of these formats, its ends are damaged: `format="orc"`; `pyarrow` reads the others',
    ),
    Step(
        "files; this build knows:",
        "`coldframe sql` and `convert` read Parquet; `convert` also Arrow, CSV and JSON lines",
        "use `pyarrow.parquet.read_table`, `pyarrow.ipc` or another reader",
    ),
    Step(
        "expected a table directory",
        "name the directory of the files, or a pattern: `coldframe tables DIR` lists the tables below",
        "`cf.scan(dir)` reads a directory of files; `cf.tables(dir)` lists the tables below",
    ),
    Step(
        "expected files with the same partition columns",
        "if these are several tables: `coldframe tables DIR` lists them; name the directory of one",
        "if these are several tables: `cf.tables(dir)` lists them; name the directory of one",
    ),
    Step(
        "does not state which SerDe",
        "`coldframe schema FILE --as tables` guesses it, `--serde text` or `--serde binary` sets it",
        "`cf.open(path).proposal()` guesses it, `serde=` sets it",
    ),
    Step(
        'table ".."; the directory has:',
        "`--option table=NAME` with one of these names",
        '`table="name"` with one of these names',
    ),
    Step(
        "no such file or directory",
        "`coldframe tables DIR` lists the tables below a directory",
        "`cf.tables(dir)` lists the tables below a directory",
    ),
    Step(
        "no files to scan",
        "empty files and names that begin with `_` or `.` are skipped: name such a file explicitly",
        "empty files and names that begin with `_` or `.` are skipped: name such a file explicitly",
    ),
    Step(
        "Permission denied",
        "run it as a user who may read the file; on HDFS `--storage-option user=NAME`",
        'run it as a user who may read the file; on HDFS `storage_options={"user": "name"}`',
    ),
    Step(
        "the store refuses this",
        "give credentials, region or endpoint by `--storage-option KEY=VALUE`: docs/stores.md lists them",
        "give credentials, region or endpoint in `storage_options={..}`: docs/stores.md lists them",
    ),
    Step(
        "another host than the store's",
        "if you trust that host: `--storage-option redirect_hosts=HOST`; S3 redirects to the bucket's "
        "region: `--storage-option region=NAME`",
        'if you trust that host: `storage_options={"redirect_hosts": "host"}`; S3 redirects to the bucket\'s '
        "region: `region`",
    ),
    Step(
        "no file system for scheme",
        "install the fsspec package of that scheme; `s3://`, `gs://`, `abfss://`, `hdfs://` need none",
        "install the fsspec package of that scheme, or give `filesystem=`",
    ),
    Step(
        "is encrypted; it needs the key",
        "give the key by `--key NAME=HEX`, or leave the column out by `-c`",
        'give it by `keys={"name": key}`, or leave the column out by `columns=`',
    ),
    Step(
        "non-hexadecimal number",
        "`--key NAME=HEX` takes the key itself, in hexadecimal digits",
        '`keys={"name": key}` takes the key itself, as bytes or hexadecimal digits',
    ),
    Step(
        "has no option",
        "`coldframe options FORMAT` lists the options, with types and defaults",
        "docs/options.md lists the options, with types and defaults",
    ),
    Step(
        "expected a Hive type",
        "write the columns as SHOW CREATE TABLE does: `--schema 'id bigint, tags array<string>'`",
        'write the columns as SHOW CREATE TABLE does: `schema="id bigint, tags array<string>"`',
    ),
    Step(
        "cell: expected the end",
        "the SerDe or a type may differ: `coldframe schema FILE --as tables` guesses them, `--serde` sets it",
        "the SerDe or a type may differ: `f.proposal()` guesses them, `serde=` sets it",
    ),
    Step(
        "expected a literal",
        "a filter is a condition in SQL: `--where \"id > 5 and name like 'a%'\"`",
        'a filter is a condition in SQL or a list: `filter=[("id", ">", 5)]`',
    ),
    Step(
        "with `acid` false",
        "leave `--option acid=false` out: the directory is read as its live rows",
        "leave `acid=False` out: the directory is read as its live rows",
    ),
    Step(
        "the file was changed since",
        "it was replaced while it was read: run the command again",
        "it was replaced since it was opened: open it again",
    ),
    Step(
        "a write is publishing its files",
        "wait for that write, or repeat it: then the directory is whole",
        "wait for that write, or repeat it: then the directory is whole",
    ),
    Step(
        "no column is in both",
        "`coldframe schema FILE` shows the columns; `--schema` or a tables.toml names those of RCFiles",
        "`cf.read_schema(path)` shows the columns; `schema=` names those of RCFiles",
    ),
    Step(
        "no migration has been here",
        "name the target DST of `coldframe migrate SRC DST`",
        "name the target of `coldframe.pipeline.migrate`",
    ),
    Step(
        "must not contain each other",
        "use a target beside the source, or another bucket",
        "use a target beside the source, or another bucket",
    ),
    Step(
        "lengths of keys and values in",
        "`coldframe sizes FILE` shows the bytes of each column, `stats` the stored statistics",
        "`f.statistics()` returns the stored statistics",
    ),
    Step(
        "postscript: ",
        "an ORC file has lost its end: `coldframe salvage FILE OUT.parquet` finds its stripes, with the "
        "columns of an intact file beside it",
        'an ORC file has lost its end: `recover=True, schema_from="whole.orc"`, then `on_error="skip"`',
    ),
]

_DAMAGED = Step(
    "any other damage",
    "`coldframe verify FILE` lists the damage, `coldframe salvage FILE OUT.parquet` saves the readable rows",
    '`f.read(on_error="skip")` reads past it, `f.damage` lists the losses',
)


_MISSING = re.compile(
    r"""(?:no\ column|names\ column|\btable)\ (?P<quote>['"`])(?P<name>.+?)(?P=quote)[;:]
    .*?(?:the\ columns\ are|there\ are:|the\ directory\ has:)\ (?P<known>.+)""",
    re.VERBOSE | re.DOTALL,
)


def _meant(message: str) -> str | None:
    """The nearest name, if a message says that one is missing and lists those that exist."""
    from coldframe.cli.commands import nearest

    missing = _MISSING.search(message)
    if missing is None:
        return None
    return nearest(missing["name"], [name.strip("'\"` ") for name in missing["known"].split(", ")])


def next_step(message: str, *, is_damage: bool = False) -> str | None:
    """The next step for an error of a command; None if the message names an option, or no advice is known."""
    meant = _meant(message)
    question = "" if meant is None else f"did you mean {meant!r}?"
    if " --" in message:
        return question or None
    for step in STEPS:
        if step.fits(message):
            return f"{question} {step.command_line}".lstrip()
    if question:
        return question
    return _DAMAGED.command_line if is_damage else None


def page() -> str:
    """docs/messages.md."""
    rows = [f"| `{step.message}` | {step.command_line} | {step.python} |" for step in STEPS]
    rows.append(f"| {_DAMAGED.message} | {_DAMAGED.command_line} | {_DAMAGED.python} |")
    table = "\n".join(row.replace("|'", "\\|'") for row in rows)
    return f"""# Messages and their next steps

An error names the file, the place in it, what was expected and what was found. The command line prints the
next step below it; this page has it for Python, too. `..` matches any text.

| message | on the command line | in Python |
|---|---|---|
{table}
"""
