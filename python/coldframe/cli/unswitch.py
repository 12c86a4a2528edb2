"""`coldframe unswitch DST`."""

from __future__ import annotations

import argparse
from typing import Any

from coldframe.cli.options import add_storage_option, pairs
from coldframe.cli.summaries import SUMMARIES


def add_parsers(commands: Any) -> None:
    """Adds `unswitch` to the commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "unswitch",
        help=SUMMARIES["unswitch"],
        description="Gives the tables that `migrate --switch` renamed their former names back. Changes no "
        "files and no rows.",
        epilog="exit codes: 0 done, or nothing was switched; 2 not possible: the reason is printed",
    )
    parser.add_argument("dst", metavar="DST", help="the destination of a migration, a directory or URL")
    add_storage_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Undoes the switch and prints the tables with their former names."""
    from coldframe.cli.stopping import ERRORS, stopped
    from coldframe.pipeline import unswitch

    options = pairs(arguments.storage_option, "--storage-option") or None
    try:
        names = unswitch(arguments.dst, storage_options=options)
    except ERRORS as error:
        return stopped("unswitch", error)
    for name in names:
        print(f"{name} is the old table again")
    if not names:
        print("nothing is switched")
    return 0
