"""`coldframe audit DST`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from coldframe.cli.options import add_storage_option, pairs, prints_json
from coldframe.cli.summaries import SUMMARIES


def add_parsers(commands: Any) -> None:
    """Adds `audit` to the commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help=SUMMARIES["audit"],
        description="Compares the length, checksum and number of rows of each file of DST with the record of "
        "its verification. Changes nothing and needs no Spark; needs the source only for --before-delete.",
        epilog="exit codes: 0 no difference; 1 differences; 2 DST is not the destination of a migration",
    )
    parser.add_argument(
        "dst",
        metavar="DST",
        nargs="?",
        help="the destination of a migration, a directory or URL; not needed with a list, which names it",
    )
    add_storage_option(parser)
    add_storage_option(parser, "--source-storage-option", "the same for the sources that a list names")
    parser.add_argument(
        "--before-delete",
        metavar="LIST",
        help="also check a safe-to-delete.txt: each source by its size, time and digest, and by the journal",
    )
    parser.add_argument("--deep", action="store_true", help="also read every value and compare fingerprints")
    prints_json(parser, run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the audit and prints its outcome."""
    from coldframe.byte_size import size_text
    from coldframe.pipeline import audit
    from coldframe.pipeline.report.summary import grouped

    if arguments.dst is None and arguments.before_delete is None:
        print("coldframe audit: expected DST, or a list with --before-delete", file=sys.stderr)
        return 2
    report = audit(
        arguments.dst,
        deep=arguments.deep,
        before_delete=arguments.before_delete,
        storage_options=pairs(arguments.storage_option, "--storage-option") or None,
        source_storage_options=pairs(arguments.source_storage_option, "--source-storage-option") or None,
    )
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1))
        return report.exit_code
    for line in grouped(
        (fault.kind, fault.file + (f" (of {fault.source})" if fault.source else ""), fault.reason)
        for fault in report.faults
    ):
        print(line)
    for table in report.tables:
        if table["rows_now"] is not None:
            own = f"{table['path']} ({table['to']}, {table['version']}): {table['rows_now']:,} rows"
            print(f"{own} by its own log, {table['rows_verified']:,} by the journal")
    if report.interrupted:
        print("the last run was interrupted: start it again")
    if report.listed is not None:
        broken = sum(fault.kind == "line" for fault in report.faults)
        print(f"{report.listed - broken:,} of {report.listed:,} lines of the list are true")
    print(f"{report.files:,} files, {report.rows:,} rows, {size_text(report.bytes)}: {report.verdict.text}")
    return report.exit_code
