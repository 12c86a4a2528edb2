"""`coldframe status DST`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from coldframe.byte_size import size_text
from coldframe.cli import output
from coldframe.cli.options import Commands, add_command, add_storage_option, pairs, prints_json

if TYPE_CHECKING:
    from coldframe.pipeline.report.status import Status


def add_parsers(commands: Commands) -> None:
    """Adds status."""
    parser = add_command(
        commands,
        "status",
        """coldframe status lake/
coldframe status s3://bucket/lake --json
coldframe status lake/ --metrics /var/lib/node_exporter/coldframe.prom""",
    )
    parser.add_argument("dst", metavar="DST", help="the destination of a migration, a directory or URL")
    add_storage_option(parser)
    parser.add_argument(
        "--metrics", metavar="FILE", help="also write the figures to FILE as text for Prometheus; replaces it"
    )
    prints_json(parser, run)


def run(args: argparse.Namespace) -> int:
    """Prints a line for each table. Exit code 1 if a table of the last run is not verified."""
    from coldframe.pipeline import status

    now = status(args.dst, storage_options=pairs(args.storage_option, "--storage-option") or None)
    if args.metrics is not None:
        output.replace_file(args.metrics, now.metrics())
    if args.json:
        print(output.as_json(now.to_json()))
    else:
        _print(now)
    return int(any(table.state == "failed" for table in now.tables))


def _print(now: Status) -> None:
    rows = [
        [
            t.name,
            t.state,
            t.sources,
            t.waiting,
            t.damaged,
            size_text(t.bytes_in),
            size_text(t.bytes_out),
            t.rows,
        ]
        for t in now.tables
    ]
    output.print_table(["table", "state", "files", "waiting", "damaged", "read", "written", "rows"], rows)
    size = size_text(sum(table.bytes_in for table in now.tables))
    files = sum(table.sources for table in now.tables)
    state = "ended"
    if now.is_open:
        ago = max(0, round(time.time() - now.written))
        state = f"goes on, or was stopped: its journal was last written {ago:,} s ago"
    print(f"{files:,} files, {size}; run {now.runs} {state}")
