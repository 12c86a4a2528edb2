"""The command that compares two tables, whatever their formats."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from coldframe import writing
from coldframe._coldframe import formats, parse_option, shown
from coldframe.arrow import pa
from coldframe.cli import output
from coldframe.cli.options import (
    STDIN,
    Commands,
    add_command,
    add_open_options,
    open_arguments,
    pairs,
    prints_json,
    rows_of_sources,
    stdin_file,
)
from coldframe.cli.parquet_side import is_parquet, parquet_rows
from coldframe.cli.source_files import first_file
from coldframe.comparison import Comparison, Side, compare
from coldframe.filters import parse

_BATCH = 65536


def add_parsers(commands: Commands) -> None:
    """Adds diff."""
    parser = add_command(
        commands,
        "diff",
        """coldframe diff before.orc after.orc
coldframe diff warehouse/sales lake/sales --by id --schema 'id bigint, s string' --serde text
coldframe diff 'old/*.orc' new.parquet -c id,amount --where "dt = '2014-01-01'" --json""",
    )
    parser.add_argument(
        "a",
        metavar="A",
        help="a file, a pattern or a directory of any format, or Parquet; - is standard input",
    )
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument(
        "--by",
        metavar="A,B,..",
        help="columns that identify a row (default: none; the tables are compared as multisets of rows)",
    )
    parser.add_argument("-c", "--columns", metavar="A,B,..", help="compare only these columns")
    parser.add_argument("--where", metavar="SQL", help="compare only the rows of both that match")
    parser.add_argument(
        "-n", "--limit", type=int, default=10, metavar="N", help="show N rows of each side (default 10)"
    )
    for side in ("a", "b"):
        parser.add_argument(
            f"--{side}-option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help=f"an option of the format for {side.upper()} only, such as schema=..; may be repeated",
        )
    add_open_options(parser)
    prints_json(parser, diff)


def diff(args: argparse.Namespace) -> int:
    """Returns exit code 1 if the tables differ."""
    columns = _names(args.columns)
    sides = [
        _side(source, columns, args, pairs(getattr(args, f"{which}_option"), f"--{which}-option"))
        for which, source in (("a", args.a), ("b", args.b))
    ]
    with output.waiting("diff"):
        result = compare(*sides, key=_names(args.by) or (), examples=args.limit)
    if args.json:
        print(output.as_json(_as_dict(args, result)))
    else:
        _print(args, result)
    return 0 if result.same else 1


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _side(source: str, columns: list[str] | None, args: argparse.Namespace, own: dict[str, str]) -> Side:
    storage = pairs(args.storage_option, "--storage-option") or None
    place = stdin_file() if source == STDIN else source
    rows = parquet_rows(place, storage) if is_parquet(place, storage) else _ours(place, args, own)
    schema = rows.schema
    if columns is not None:
        if missing := [name for name in columns if name not in schema.names]:
            raise ValueError(
                f"{shown(source)}: no column {missing[0]!r}; the columns are {', '.join(schema.names)}"
            )
        schema = pa.schema([schema.field(name) for name in columns])
    condition = parse(args.where)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        return iter(rows.to_batches(list(names), filter=condition, batch_size=_BATCH))

    return Side(source, schema, batches)


def _ours(source: str, args: argparse.Namespace, own: dict[str, str]) -> Any:
    """A source in one of coldframe's formats. Drops the common options that this format does not have."""
    arguments = open_arguments(args)
    storage = arguments["storage_options"]
    first = first_file(source, storage)
    format = args.input_format or writing.detect(first, storage_options=storage)
    known = formats().get(format or "", {}).get("open", {})
    needs_schema = format is not None and formats()[format]["capabilities"]["needs_schema"]
    for name in [name for name in arguments if name not in _EVERY_FORMATS]:
        if name not in known or (name == "schema" and not needs_schema):
            del arguments[name]
    arguments.update({name: parse_option(name, value, format=format) for name, value in own.items()})
    return rows_of_sources([source], arguments)


_EVERY_FORMATS = frozenset({"format", "storage_options", "keys", "verify_checksums"})


def _as_dict(args: argparse.Namespace, result: Comparison) -> dict[str, Any]:
    return {
        "same": result.same,
        "rows": {"a": result.rows[0], "b": result.rows[1]},
        "only_columns": {"a": result.only_columns[0], "b": result.only_columns[1]},
        "only": {"a": result.only[0], "b": result.only[1]},
        "changed": result.changed,
        "examples": [{"side": side.lower(), "row": _row(batch)} for side, batch in result.examples],
    }


def _row(batch: Any) -> dict[str, Any]:
    return {
        name: output.python_values(column)[0]
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def _print(args: argparse.Namespace, result: Comparison) -> None:
    for side, source, names in zip("AB", (args.a, args.b), result.only_columns, strict=True):
        if names:
            print(f"columns only in {side} ({output.name_of(source)}): {', '.join(names)}")
    a, b = result.rows
    if result.same:
        print(f"the same {a} rows")
        return
    print(f"{a} rows in A, {b} in B: {_counts(result)}")
    if not result.examples:
        return
    rows = [(side, _row(batch)) for side, batch in result.examples]
    key = _names(args.by) or []
    rows.sort(key=lambda example: [_sortable(example[1][name]) for name in (key or example[1])])
    headers = list(rows[0][1])
    output.print_table(["", *headers], [[side, *(row[name] for name in headers)] for side, row in rows])


def _sortable(value: Any) -> tuple[int, float, str]:
    is_number = isinstance(value, (int, float)) and value == value
    return (0, value, "") if is_number else (1, 0, output.cell_text(value))


def _counts(result: Comparison) -> str:
    parts = [f"{count} only in {side}" for side, count in zip("AB", result.only, strict=True) if count]
    if result.changed:
        parts.append(f"{result.changed} changed")
    return ", ".join(parts) or "the same rows"
