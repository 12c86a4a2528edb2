"""The commands that show structure and find damage: inspect, layout, verify."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from coldframe.byte_size import size_text
from coldframe.cli import output
from coldframe.cli.bytemap import print_layout
from coldframe.cli.destinations import add_overwrite_option, claim, sources_of
from coldframe.cli.options import (
    Commands,
    add_command,
    add_open_options,
    expanded,
    open_file,
    open_rows,
    pairs,
)
from coldframe.cli.reading import EACH, MANY, describe
from coldframe.cli.sinks import open_atomically
from coldframe.errors import ColdframeError

STDOUT = "-"


def add_parsers(commands: Commands) -> None:
    """Adds inspect, layout and verify."""
    parser = add_command(
        commands,
        "inspect",
        """coldframe inspect 000000_0
coldframe inspect 000000_0 --depth 2
coldframe inspect 000000_0 --at 4139             # what is at this offset?
coldframe inspect 000000_0 --json""",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    parser.add_argument("--depth", type=int, default=4, metavar="N", help="levels of the tree (default 4)")
    parser.add_argument(
        "--children", type=int, default=20, metavar="N", help="nodes shown on each level (default 20)"
    )
    parser.add_argument(
        "--at", type=offset, metavar="OFFSET", help="only the nodes that contain this byte: 4139 or 0x102b"
    )
    add_open_options(parser)
    parser.add_argument("--json", action="store_true", help="print the whole tree as JSON")
    parser.set_defaults(run=inspect)

    parser = add_command(
        commands,
        "layout",
        """coldframe layout events.orc -o events.html
coldframe layout events.orc -o events.html --verify   # decode everything, and mark damage
coldframe layout warehouse/sales -o sales.html        # all files of a directory""",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the page to write, or its URL; - is standard output",
    )
    parser.add_argument("--verify", action="store_true", help="decode everything and mark damage")
    add_overwrite_option(parser)
    add_open_options(parser)
    parser.set_defaults(run=layout)

    parser = add_command(
        commands,
        "verify",
        """coldframe verify 000000_0 && echo no damage found
coldframe verify warehouse/events/*.rc --json > report.json""",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    add_open_options(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON report")
    parser.set_defaults(run=verify)


def offset(text: str) -> int:
    """An offset in a file, as a decimal or hexadecimal number."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number such as 4139 or 0x102b, found {text!r}"
        ) from None


def inspect(args: argparse.Namespace) -> int:
    """Prints the tree and a picture of it. JSON is the tree of a single file, else an object by path."""
    sources = expanded(args.source, args.storage_option)
    trees: dict[str, Any] = {}
    for source in sources:
        tree = open_file(args, source).inspect()
        if args.json and args.at is None:
            trees[source] = tree
            continue
        if len(sources) > 1:
            print(f"{output.name_of(source)}:")
        if args.at is None:
            print_layout(tree, args.depth, args.children)
            continue
        length = tree["length"]
        if not 0 <= args.at < length:
            raise ValueError(f"--at {args.at}: the file has {length} bytes")
        for node in nodes_at(tree, args.at):
            print(f"{node['offset']:>12} +{node['length']:<12} {node['name']}")
    if trees:
        print(output.as_json(output.by_name(trees) if len(sources) > 1 else trees[sources[0]]))
    return 0


def nodes_at(tree: dict[str, Any], offset: int) -> list[dict[str, Any]]:
    """The nodes that contain a byte, outermost first."""
    path = [tree]
    while True:
        inner = [c for c in path[-1].get("children", []) if c["offset"] <= offset < c["offset"] + c["length"]]
        if not inner:
            return path
        path.append(inner[0])


def layout(args: argparse.Namespace) -> int:
    """Writes one page, whatever the number of files."""
    from coldframe.layout import page

    rows, storage = open_rows(args), pairs(args.storage_option, "--storage-option")
    claim(args.output, sources_of(rows, args.source), storage, overwrite=args.overwrite)
    with output.waiting("layout"):
        whole = page(rows, verify=args.verify).encode("utf-8", "surrogateescape")
    if args.output == STDOUT:
        sink = output.standard_output()
        sink.write(whole)
        sink.flush()
        return 0
    with open_atomically(args.output, storage) as sink:
        sink.write(whole)
    output.complain(f"{output.name_of(args.output)}: {size_text(len(whole))}")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Returns exit code 1 if any file is damaged."""
    reports = {}
    sources = expanded(args.source, args.storage_option)
    for source in sources:
        try:
            file = open_file(args, source)
            with output.progress_bar(os.path.basename(output.name_of(source)), file.num_rows) as progress:
                report = file.verify(progress)
        except ColdframeError as error:
            if len(sources) == 1 and not args.json:
                raise
            report = {
                "rows": None,
                "units": None,
                "damage": [],
                "error": str(error),
                "error_type": type(error).__name__,
            }
        reports[source] = report
        if not args.json:
            _print_report(source, report)
    if args.json:
        print(output.as_json(output.by_name(reports)))
    errors = [report["error_type"] for report in reports.values() if "error_type" in report]
    if any(report["damage"] for report in reports.values()) or "CorruptFileError" in errors:
        return 1
    return 2 if errors else 0


def _print_report(source: str, report: dict[str, Any]) -> None:
    source = output.name_of(source)
    if "error" in report:
        print(f"{source}: {report['error']}")
    elif not report["damage"]:
        print(f"{source}: no damage found, {report['rows']} rows in {report['units']} units")
        print(f"  checked: {report['checked']}")
    else:
        print(f"{source}: DAMAGED in {len(report['damage'])} places, {report['rows']} rows read")
        for lost in report["damage"]:
            print("  " + describe(lost))
    sys.stdout.flush()
