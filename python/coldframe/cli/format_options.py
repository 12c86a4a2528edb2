"""`coldframe options`: lists the options of formats."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping
from typing import Any

from coldframe._coldframe import formats
from coldframe.cli import output
from coldframe.cli.options import Commands, add_command, prints_json
from coldframe.options import format_names


def add_parsers(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "options",
        """coldframe options rcfile
coldframe options orc --write
coldframe options --json""",
    )
    parser.add_argument("format", nargs="?", choices=format_names(), help="the format (default all)")
    parser.add_argument("--write", action="store_true", help="list options for writing instead of reading")
    prints_json(parser, _list)


def _list(args: argparse.Namespace) -> None:
    side = "write" if args.write else "open"
    known = {
        name: about[side] for name, about in formats().items() if args.format in (None, name) and about[side]
    }
    if args.json:
        print(output.as_json(known))
        return
    for name, options in known.items():
        print(f"{name}:")
        for option, about in sorted(options.items()):
            print(f"  {option}  {_takes(about)}")
            print(textwrap.fill(about["help"], 100, initial_indent=" " * 6, subsequent_indent=" " * 6))


def _takes(about: Mapping[str, Any]) -> str:
    choices = "|".join(about["choices"])
    default = "" if about["default"] is None else f", default {output.as_json(about['default'], indent=None)}"
    other = f", also called {', '.join(about['aliases'])}" if about["aliases"] else ""
    return f"({choices or about['kind']}{default}{other})"
