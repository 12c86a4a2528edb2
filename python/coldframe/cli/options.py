"""Options that commands share, and what they mean for `open` and `scan`."""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any

from coldframe import _coldframe
from coldframe.file import File, open
from coldframe.scanning import Dataset, scan
from coldframe.sources import scheme_of

__all__ = [
    "add_command",
    "add_open_options",
    "add_row_options",
    "columns_of",
    "open_file",
    "open_rows",
    "pairs",
]

Commands = Any  # argparse's _SubParsersAction, which is generic in the stubs only


def add_command(commands: Commands, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A command whose help ends in examples."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_open_options(parser: argparse.ArgumentParser) -> None:
    """How to open the source."""
    group = parser.add_argument_group("opening")
    group.add_argument(
        "--format",
        metavar="NAME",
        help="the format's name; by default the bytes tell",
    )
    group.add_argument(
        "--schema",
        metavar="DDL",
        help="columns of a file that does not name them: 'id bigint, tags array<string>'",
    )
    group.add_argument("--serde", choices=["text", "binary"], help="how an RCFile's cells are written")
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other option of the format; may be repeated",
    )
    group.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="credentials and endpoints of a URL",
    )
    group.add_argument(
        "--key", action="append", default=[], metavar="NAME=HEX", help="a key of an encrypted file"
    )
    group.add_argument("--no-checksums", action="store_true", help="do not compare stored checksums")


def add_row_options(
    parser: argparse.ArgumentParser, *, columns: bool = True, limit: int | None = None
) -> None:
    """Which columns and rows."""
    group = parser.add_argument_group("rows")
    if columns:
        group.add_argument("-c", "--columns", metavar="A,B,..", help="only these columns, in this order")
        shown = "all" if limit is None else str(limit)
        group.add_argument(
            "-n", "--limit", type=int, default=limit, metavar="N", help=f"at most N rows (default {shown})"
        )
    group.add_argument(
        "--where", metavar="SQL", help="""only these rows: "dt >= '2014-01-01' and x in (1, 2)" """
    )
    group.add_argument(
        "--on-error",
        choices=["raise", "skip", "null"],
        default="raise",
        help="skip: lose the smallest damaged unit; null: keep its rows, as nulls where they are lost",
    )


def open_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `open`."""
    arguments: dict[str, Any] = {
        name: parsed(value) for name, value in pairs(args.option, "--option").items()
    }
    for name in ("schema", "serde"):
        if getattr(args, name) is not None:
            arguments[name] = getattr(args, name)
    return {
        **arguments,
        "format": args.format,
        "storage_options": pairs(args.storage_option, "--storage-option") or None,
        "keys": pairs(args.key, "--key") or None,
        "verify_checksums": not args.no_checksums,
    }


def open_file(args: argparse.Namespace, source: str) -> File:
    """The one file that the command is about."""
    return open(source, **open_arguments(args))


def open_rows(args: argparse.Namespace) -> File | Dataset:
    """The file, or the dataset where several files, a glob or a directory of files are given."""
    sources: list[str] = args.source if isinstance(args.source, list) else [args.source]
    if len(sources) == 1 and not _is_many(sources[0]):
        return open_file(args, sources[0])
    return scan(sources if len(sources) > 1 else sources[0], **open_arguments(args))


def _is_many(source: str) -> bool:
    if os.path.isdir(source):
        return _coldframe.detect(source) is None
    if os.path.exists(source):
        return False
    return bool(re.search(r"[*?\[]", source)) and scheme_of(source) not in ("http", "https")


def columns_of(args: argparse.Namespace) -> list[str] | None:
    """The names of -c."""
    return (
        None if args.columns is None else [name.strip() for name in args.columns.split(",") if name.strip()]
    )


def pairs(given: list[str], option: str) -> dict[str, str]:
    """KEY=VALUE arguments as a dict."""
    result = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{option} {text!r}: expected KEY=VALUE")
        result[key] = value
    return result


def parsed(value: str) -> Any:
    """true, false, whole numbers and JSON objects or lists as such; everything else, `4.1` too, as text."""
    if value in ("true", "false") or re.fullmatch(r"-?\d{1,18}", value) or value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value
