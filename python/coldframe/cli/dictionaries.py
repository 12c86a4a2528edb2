"""The command dictionary: the dictionaries of a column in ORC's stripes and CFiles."""

from __future__ import annotations

import argparse
from typing import Any

from coldframe.byte_size import size_text
from coldframe.cli import output
from coldframe.cli.options import Commands, add_command, add_open_options, expanded, open_file, prints_json
from coldframe.cli.reading import EACH


def add_parsers(commands: Commands) -> None:
    """Adds dictionary."""
    parser = add_command(
        commands,
        "dictionary",
        """coldframe dictionary events.orc -c channel
coldframe dictionary events.orc -c channel --json | jq '.[].values | length'
coldframe dictionary 000000_0.cfile -c value -n 20""",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    parser.add_argument(
        "-c", "--column", required=True, metavar="NAME", help="a column with text; in a struct, struct.field"
    )
    parser.add_argument(
        "-n", "--limit", type=int, metavar="N", help="at most N values of each dictionary (default all)"
    )
    add_open_options(parser)
    prints_json(parser, dictionary)


def dictionary(args: argparse.Namespace) -> None:
    """Prints a header and a line for each value. JSON is a list for a single file, else an object by path."""
    sources = expanded(args.source, args.storage_option)
    printed: dict[str, list[dict[str, Any]]] = {}
    for source in sources:
        all_of_it = printed.setdefault(source, [])

        def take(item: dict[str, Any], source: str = source, kept: list[Any] = all_of_it) -> None:
            values = item["values"][: args.limit] if args.limit is not None else item["values"]
            shown = output.python_values(values)
            if args.json:
                kept.append({**item, "entries": len(item["values"]), "values": list(shown)})
                return
            kept.append(None)  # a marker: the values are printed below
            where = f"{output.name_of(source)}: {item['part']}" if len(sources) > 1 else item["part"]
            size = size_text(item["length"])
            print(f"{where}: {len(item['values'])} entries, {size} at offset {item['offset']}")
            for number, value in enumerate(shown):
                print(f"{number:>8}: {output.cell_text(value)}")

        open_file(args, source).each_dictionary(args.column, take)
        if not all_of_it and not args.json:
            output.complain(f"{output.name_of(source)}: {args.column} is stored without a dictionary")
    if args.json:
        print(output.as_json(output.by_name(printed) if len(sources) > 1 else printed[sources[0]]))
