"""Options that commands share, and their translation to arguments of `open` and `scan`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any

from coldframe import writing
from coldframe._coldframe import parse_option
from coldframe.batches import DEFAULT_SPLIT_BYTES
from coldframe.byte_size import byte_size
from coldframe.cli.declared import declared_options
from coldframe.cli.source_files import files_below
from coldframe.cli.summaries import SUMMARIES
from coldframe.file import File
from coldframe.hive.addresses import is_metastore
from coldframe.opening import open
from coldframe.options import choices_of, declared, format_names
from coldframe.scanning import Dataset
from coldframe.scans import scan
from coldframe.sources import open_store, scheme_of

STDIN = "-"

Commands = Any  # argparse's _SubParsersAction, which is generic in the stubs only


def add_command(commands: Commands, name: str, examples: str) -> argparse.ArgumentParser:
    """Adds a command whose help ends with examples."""
    summary = SUMMARIES[name]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_open_options(parser: argparse.ArgumentParser, *, prints_rows: bool = False) -> None:
    """Adds the options for opening a source. If rows are printed, `--format` is the output form."""
    group = parser.add_argument_group("opening")
    group.add_argument(
        "--input-format",
        *([] if prints_rows else ["--format"]),
        dest="input_format",
        choices=format_names(),
        metavar="NAME",
        help=f"format of the file ({', '.join(format_names())}); default: detected from its bytes",
    )
    group.add_argument(
        "--schema",
        metavar="DDL",
        help="columns of a file that does not store them: 'id bigint, tags array<string>'",
    )
    group.add_argument("--serde", choices=choices_of("serde"), help="how the cells of an RCFile are encoded")
    add_format_option(group, "--option", "any other option of the format")
    add_storage_option(group)
    add_list_option(group, "--key", "NAME=HEX", "a key of an encrypted file")
    group.add_argument("--no-checksums", action="store_true", help="do not compare stored checksums")


def add_list_option(group: Any, name: str, metavar: str, help: str) -> None:
    """Adds an option that may be repeated."""
    group.add_argument(name, action="append", default=[], metavar=metavar, help=help)


def add_choice(group: Any, name: str, choices: list[str], help: str) -> None:
    """Adds an option with a few values, the first of which is the default."""
    group.add_argument(name, default=choices[0], choices=choices, help=f"{help} (default: {choices[0]})")


def prints_json(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int | None]) -> None:
    """Completes a command with its function, whose output may be JSON."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def add_storage_option(
    group: Any, name: str = "--storage-option", help: str = "credentials and endpoints for a URL"
) -> None:
    """An argument that takes options of a store, KEY=VALUE."""
    group.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=help)


def add_format_option(group: Any, name: str, help: str, *, write: bool = False) -> None:
    """An argument that takes options of formats, KEY=VALUE; `coldframe options` lists them."""
    action = group.add_argument(
        name,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"{help}; may be repeated; 'coldframe options' lists them",
    )
    values = {option: choices_of(option, write=write) for option in declared(write=write)}
    # For completion only: argparse's `choices` would refuse other values.
    action.known_values = [f"{option}={value}" for option in values for value in values[option] or [""]]


FORMS = ["table", "csv", "jsonl", "arrow", "parquet"]


def add_form_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds the option for the output form of rows."""
    parser.add_argument(
        "--format",
        "--to",
        dest="form",
        choices=FORMS,
        default=default,
        help=f"the form of the rows (default {default})",
    )
    parser.add_argument(
        "--json", dest="form", action="store_const", const="jsonl", help="the same as --format jsonl"
    )
    parser.add_argument(
        "--vertical",
        dest="form",
        action="store_const",
        const="vertical",
        help="print one row after the other, with a line for each column",
    )


def add_row_options(
    parser: argparse.ArgumentParser, *, columns: bool = True, limit: int | None = None
) -> None:
    """Adds the options for columns and rows."""
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
        help="skip: drop the smallest damaged unit; null: keep its rows, with nulls for lost values",
    )


def open_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `open`."""
    arguments = options_given(args.option, "--option", args.input_format)
    for name in ("schema", "serde"):
        if getattr(args, name) is not None:
            arguments[name] = getattr(args, name)
    return {
        **arguments,
        "format": args.input_format,
        "storage_options": pairs(args.storage_option, "--storage-option") or None,
        "keys": pairs(args.key, "--key") or None,
        "verify_checksums": not args.no_checksums,
    }


def open_file(args: argparse.Namespace, source: str) -> File:
    """The file that the command works on."""
    arguments = open_arguments(args)
    if source == STDIN:
        return open(stdin_file(), **arguments)
    return open(source, **{**_declared(args, source, arguments), **arguments})


def _declared(args: argparse.Namespace, source: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return declared_options(source, getattr(args, "tables", None), arguments, arguments["storage_options"])


def open_rows(args: argparse.Namespace) -> File | Dataset:
    """The file; or the dataset for several files, a glob or a directory of files."""
    sources: list[str] = args.source if isinstance(args.source, list) else [args.source]
    arguments = open_arguments(args)
    declared = _declared(args, sources[0], arguments) if sources[0] != STDIN else {}
    return rows_of_sources(sources, {**declared, **arguments})


def rows_of_sources(sources: list[str], arguments: dict[str, Any]) -> File | Dataset:
    """The file; or the dataset for several files, a glob or a directory of files."""
    given: list[Any] = [stdin_file() if source == STDIN else source for source in sources]
    if len(given) == 1 and not _is_many(given[0], arguments["storage_options"]):
        return open(given[0], **arguments)
    return scan(given if len(given) > 1 else given[0], **arguments)


def expanded(sources: list[str], storage_options: list[str], *, with_others: bool = False) -> list[str]:
    """Expands patterns and directories among the sources of a command that handles file after file.

    Keeps a directory that is one table.
    """
    storage = pairs(storage_options, "--storage-option") or None
    paths: list[str] = []
    for source in sources:
        if source != STDIN and _is_many(source, storage):
            paths += files_below(source, storage, with_others=with_others)
        else:
            paths.append(source)
    return paths


_PATTERN = re.compile(r"[*?\[]")

_spooled: list[Any] = []


def stdin_file() -> str:
    """Spools standard input to a temporary file, since most formats are read from the end."""
    import shutil
    import tempfile

    if not _spooled:
        spool = tempfile.NamedTemporaryFile(prefix="coldframe-stdin-")  # noqa: SIM115
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        _spooled.append(spool)
    return str(_spooled[0].name)


def _is_many(source: str, storage_options: Any) -> bool:
    """Whether the source is a pattern, a directory of files, or a table that a metastore defines."""
    if is_metastore(source):
        return True
    if scheme_of(source) in ("http", "https"):
        return False
    entry = open_store(source, storage_options).stat()
    if entry is None:
        return bool(_PATTERN.search(source))
    return entry.is_folder and writing.detect(source, storage_options=storage_options) is None


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
            # The text may be a secret, so it is not shown.
            raise ValueError(
                f"{option}: expected KEY=VALUE, found {len(text)} characters without a name and ="
            )
        result[key] = value
    return result


def options_given(
    given: list[str], argument: str, format: str | None, *, write: bool = False
) -> dict[str, Any]:
    """KEY=VALUE arguments as options, parsed as their formats declare."""
    return {
        name: parse_option(name, value, format=format, write=write)
        for name, value in pairs(given, argument).items()
    }


def key_of(text: str) -> bytes:
    r"""The bytes of a typed key: UTF-8, with \xNN for any byte, as in HBase's shell."""
    raw = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"\\x([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), raw)


def size_of(text: str) -> int:
    """A number of bytes: 1000, 64m, 1GiB."""
    try:
        return byte_size(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from wrong


def add_split_bytes(parser: argparse.ArgumentParser) -> None:
    """Adds `--split-bytes`."""
    parser.add_argument(
        "--split-bytes",
        type=size_of,
        default=DEFAULT_SPLIT_BYTES,
        metavar="SIZE",
        help="approximate size of a split, such as 64m (default 128m)",
    )
