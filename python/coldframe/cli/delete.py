"""`coldframe delete LIST`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from coldframe.cli.options import add_storage_option, pairs, prints_json
from coldframe.cli.summaries import SUMMARIES


def add_parsers(commands: Any) -> None:
    """Adds `delete` to the commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "delete",
        help=SUMMARIES["delete"],
        description="Compares each source of LIST, and every file of the target with its rows, with what was "
        "verified. If all are the same, deletes the sources and records that, so that no later run takes "
        "their rows out of the target. After an interruption, run it again.",
        epilog="exit codes: 0 all are deleted; 1 a source or the target differs: nothing is deleted, or all "
        "but a source that changed meanwhile; 2 wrong usage; 3 stopped by a disk, a permission, a store or "
        "another migration: run it again",
    )
    parser.add_argument(
        "list", metavar="LIST", help="DST/_coldframe/safe-to-delete.txt, which names its target"
    )
    parser.add_argument(
        "--to", metavar="TRASH", help="move the sources below this directory or URL instead of deleting them"
    )
    parser.add_argument("--dry-run", action="store_true", help="only compare; change nothing")
    add_storage_option(parser)
    add_storage_option(
        parser, "--source-storage-option", "the same for the stores of the sources and of TRASH"
    )
    prints_json(parser, run)


def run(arguments: argparse.Namespace) -> int:
    """Deletes, and prints a line for each source."""
    from coldframe.byte_size import size_text
    from coldframe.cli.stopping import ERRORS, stopped
    from coldframe.pipeline import delete

    try:
        result = delete(
            arguments.list,
            to=arguments.to,
            dry_run=arguments.dry_run,
            storage_options=pairs(arguments.storage_option, "--storage-option") or None,
            source_storage_options=pairs(arguments.source_storage_option, "--source-storage-option") or None,
        )
    except ERRORS as error:
        return stopped("delete", error)
    if arguments.json:
        print(json.dumps(result.to_json(), indent=1))
        return result.exit_code
    for item in result.items:
        print(item.text)
    for fault in result.faults:
        print(f"TARGET: {fault}")
    taken = [item for item in result.items if item.fate]
    size = size_text(sum(item.line.size for item in taken))
    what = "to delete" if arguments.dry_run else "deleted"
    reasons = "" if not result.exit_code else f"; {result.verdict.text}"
    print(f"{len(taken):,} of {len(result.items):,} sources {what}, {size}{reasons}")
    return result.exit_code
