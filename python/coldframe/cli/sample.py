"""`coldframe sample DIR`: a small estate of every format that coldframe writes, to try the commands on."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from coldframe.arrow import pa
from coldframe.cli import output
from coldframe.cli.options import Commands, add_command
from coldframe.errors import ColdframeError
from coldframe.writing import write

ROWS = 10_000
DAYS = ("2014-01-01", "2014-01-02", "2014-01-03")
DAMAGED = "warehouse/payments/000001_0"

_SALES = "id bigint, channel string, amount decimal(10,2), sold_at timestamp"
_EVENTS = "id bigint, what string, tags array<string>"
_PAYMENTS = "id bigint, paid double, note string"
_TABLES = {
    "events": {"path": "warehouse/events", "schema": _EVENTS, "serde": "text"},
    "payments": {"path": "warehouse/payments", "schema": _PAYMENTS, "serde": "binary"},
}


def add_parsers(commands: Commands) -> None:
    """Adds sample."""
    parser = add_command(
        commands,
        "sample",
        """coldframe sample estate && coldframe tables estate
coldframe migrate estate lake --master in-process --on-error quarantine""",
    )
    parser.add_argument("dir", metavar="DIR", help="a directory that does not exist yet, or is empty")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    make_sample(args.dir)
    place = output.name_of(args.dir)
    tries = {
        f"coldframe tables {place}": "what lies there",
        f"coldframe head {place}/warehouse/sales": "partitions of ORC as one table",
        f"coldframe head {place}/warehouse/events": "an RCFile, with the columns of tables.toml",
        f"coldframe verify {place}/{DAMAGED}": "the damaged file",
        f"coldframe get {place}/hbase/users/3f2a9c user-000017": "one row of an HFile",
        f"coldframe tables {place}/tables.hql": "the same tables as Hive's statements define them",
        f"coldframe migrate {place} lake --master in-process --on-error quarantine": "verified Parquet",
    }
    width = max(map(len, tries))
    for command, what in tries.items():
        print(f"{command:{width}}  {what}")


def make_sample(root: str) -> None:
    """Writes the estate: it is the same each time."""
    if os.path.isdir(root) and os.listdir(root):
        raise ColdframeError(f"{root} is not empty: name a new directory")
    for place, rows, options in _files():
        path = os.path.join(root, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(rows, path, **options)
    _damage(os.path.join(root, DAMAGED))
    texts = {
        "warehouse/countries/000000_0": "de\tGermany\nfr\tFrance\nit\tItaly\n",
        "tables.toml": "\n".join(_entries()),
        "tables.hql": "\n".join(_statements(os.path.abspath(root))),
    }
    for place, text in texts.items():
        path = os.path.join(root, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        output.write_new(path, text)


def _files() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Place, rows and options of each file."""
    numbers = range(ROWS)
    began = dt.datetime(2014, 1, 1)
    sales = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "channel": [("web", "shop", "app")[n % 3] for n in numbers],
            "amount": pa.array([Decimal(n * 7 % 90_000) / 100 for n in numbers], pa.decimal128(10, 2)),
            "sold_at": pa.array([began + dt.timedelta(seconds=n * 25) for n in numbers], pa.timestamp("ns")),
        }
    )
    share = -(-ROWS // len(DAYS))
    for at, day in enumerate(DAYS):
        part = sales.slice(at * share, share)
        yield f"warehouse/sales/dt={day}/000000_0", part, {"format": "orc", "codec": "zlib"}
    events = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "what": [f"event {n % 50}" for n in numbers],
            "tags": [["new", "paid", "late"][: n % 4] for n in numbers],
        }
    )
    text = {"format": "rcfile", "serde": "text", "codec": "gzip"}
    yield "warehouse/events/000000_0", events, text
    payments = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "paid": [n / 4 for n in numbers],
            "note": [None if n % 10 == 0 else f"note {n}" for n in numbers],
        }
    )
    binary = {"format": "rcfile", "serde": "binary", "codec": "zlib", "record_interval": 1000}
    for at in range(2):
        yield f"warehouse/payments/00000{at}_0", payments, binary
    users = pa.table(
        {"key": [f"user-{n:06}" for n in numbers], "value": [f"name {n}".encode() for n in numbers]}
    )
    yield "hbase/users/3f2a9c", users, {"format": "hfile", "view": "kv"}
    yield "kudu/0109656425709121", pa.table({"value": pa.array(numbers, pa.int64())}), {"format": "cfile"}
    yield "archive/documents/part-00000", events, {"format": "redfile"}


def _damage(path: str) -> None:
    """Overwrites a few bytes in the middle of a file, as a bad disk does."""
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"\xff" * 16)


def _entries() -> Iterator[str]:
    for name, entry in _TABLES.items():
        yield f"[tables.{name}]"
        yield from (f"{key} = {json.dumps(value)}" for key, value in entry.items())
        yield ""


def _statements(root: str) -> Iterator[str]:
    columnar = "org.apache.hadoop.hive.serde2.columnar"
    storage = {
        "sales": f"({_SALES})\nPARTITIONED BY (dt date)\nSTORED AS ORC",
        "events": f"({_EVENTS})\nROW FORMAT SERDE '{columnar}.ColumnarSerDe'\nSTORED AS RCFILE",
        "payments": f"({_PAYMENTS})\nROW FORMAT SERDE '{columnar}.LazyBinaryColumnarSerDe'\nSTORED AS RCFILE",
    }
    for name, text in storage.items():
        yield f"CREATE EXTERNAL TABLE {name} {text}\nLOCATION 'file:{root}/warehouse/{name}';\n"
