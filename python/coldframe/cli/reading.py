"""The commands that look into files and copy rows out of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from coldframe import writing
from coldframe.cli import output
from coldframe.cli.ddl import hive_columns
from coldframe.cli.options import (
    Commands,
    add_command,
    add_open_options,
    add_row_options,
    columns_of,
    open_file,
    open_rows,
    pairs,
    parsed,
)
from coldframe.cli.sinks import COLDFRAME_FORMATS, OTHER_FORMATS, STREAM_FORMATS, format_of, write_rows
from coldframe.file import DEFAULT_SPLIT_BYTES

__all__ = ["add_parsers"]


def add_parsers(commands: Commands) -> None:
    """Adds detect, schema, meta, stats, head, cat, count, splits and convert."""
    _add_facts(commands)
    _add_rows(commands)


def _add_facts(commands: Commands) -> None:
    parser = add_command(
        commands,
        "detect",
        "tell the format of files from their bytes",
        "coldframe detect *\ncoldframe detect --json s3://bucket/key",
    )
    parser.add_argument("source", nargs="+", help="paths or URLs")
    parser.add_argument(
        "--storage-option", action="append", default=[], metavar="KEY=VALUE", help="credentials and endpoints"
    )
    _json(parser, detect)

    parser = add_command(
        commands,
        "schema",
        "show the columns and their types",
        "coldframe schema 000000_0\ncoldframe schema 000000_0 --as hive   # for CREATE TABLE or --schema",
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    parser.add_argument(
        "--as", dest="form", choices=["arrow", "hive"], default="arrow", help="whose names of types"
    )
    add_open_options(parser)
    _json(parser, schema)

    parser = add_command(
        commands,
        "meta",
        "show what a file says of itself",
        "coldframe meta 000000_0\ncoldframe meta --json 000000_0 | jq .codec",
    )
    parser.add_argument("source", help="a file")
    add_open_options(parser)
    _json(parser, meta)

    parser = add_command(
        commands,
        "stats",
        "show the statistics that a file stores",
        "coldframe stats 000000_0\ncoldframe stats 000000_0 --json",
    )
    parser.add_argument("source", help="a file")
    add_open_options(parser)
    _json(parser, stats)

    parser = add_command(
        commands,
        "splits",
        "show the parts in which a file can be read in parallel",
        "coldframe splits big.rc\ncoldframe splits warehouse/events --target-bytes 33554432",
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    parser.add_argument(
        "--target-bytes",
        type=int,
        default=DEFAULT_SPLIT_BYTES,
        metavar="N",
        help="about so much in each (default 128 MiB)",
    )
    add_open_options(parser)
    _json(parser, splits)


def _add_rows(commands: Commands) -> None:
    parser = add_command(
        commands,
        "head",
        "show the first rows as a table",
        """coldframe head 000000_0
coldframe head 000000_0 -c id,name -n 5 --where "id > 100"
coldframe head old.rc --schema 'id bigint, name string' --serde text
coldframe head hfile --json | jq .row""",
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    add_row_options(parser, limit=10)
    add_open_options(parser)
    _json(parser, head)

    parser = add_command(
        commands,
        "cat",
        "write all rows to standard output",
        """coldframe cat 000000_0 > rows.csv
coldframe cat 'events/*.rc' --to jsonl --where "s like 'a%'"
coldframe cat 000000_0 --to arrow | other-program""",
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    parser.add_argument(
        "--to", choices=STREAM_FORMATS, default="csv", help="the form of the rows (default csv)"
    )
    add_row_options(parser)
    add_open_options(parser)
    parser.set_defaults(run=cat)

    parser = add_command(
        commands,
        "count",
        "count the rows",
        """coldframe count 000000_0\ncoldframe count warehouse/events --where "dt = '2014-01-01'" """,
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    parser.add_argument("--where", metavar="SQL", help="only the rows that pass")
    add_open_options(parser)
    _json(parser, count)

    parser = add_command(
        commands,
        "convert",
        "write the rows to a file of another format",
        """coldframe convert 000000_0 part-0.parquet
coldframe convert 'events/*.rc' all.orc --schema 'id bigint, s string' --serde text
coldframe convert rows.orc rows.rc --to rcfile --write-option serde=binary""",
    )
    parser.add_argument("source", nargs="+", help="a file, several, a glob or a directory")
    parser.add_argument("dest", help="the file to write; it appears whole or not at all")
    parser.add_argument(
        "--to",
        choices=[*OTHER_FORMATS, *COLDFRAME_FORMATS],
        help="its format (default: by the name's ending)",
    )
    parser.add_argument(
        "--write-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the format to write",
    )
    add_row_options(parser)
    add_open_options(parser)
    _json(parser, convert)


def _json(parser: argparse.ArgumentParser, run: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def detect(args: argparse.Namespace) -> int:
    """Exit code 2 where a file is of none of the formats."""
    storage = pairs(args.storage_option, "--storage-option") or None
    found = {source: writing.detect(source, storage_options=storage) for source in args.source}
    if args.json:
        print(output.as_json(found))
    else:
        for source, format in found.items():
            print(f"{source}: {format or 'unknown'}")
    return 0 if all(found.values()) else 2


def schema(args: argparse.Namespace) -> None:
    """One line a column."""
    fields = list(open_rows(args).schema)
    if args.form == "hive":
        print(hive_columns(fields))
    elif args.json:
        print(output.as_json([{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in fields]))
    else:
        output.print_table(
            ["column", "type"], [[f.name, str(f.type) + ("" if f.nullable else " not null")] for f in fields]
        )


def meta(args: argparse.Namespace) -> None:
    """All the file's metadata."""
    file = open_file(args, args.source)
    facts = {
        "format": file.format,
        "rows": file.num_rows,
        "columns": len(file.schema),
        "metadata": file.metadata,
    }
    if args.json:
        print(output.as_json(facts))
    else:
        output.print_facts(facts, file.path)


def stats(args: argparse.Namespace) -> None:
    """All the file's statistics."""
    file = open_file(args, args.source)
    if args.json:
        print(output.as_json(file.statistics()))
    else:
        output.print_facts(file.statistics(), file.path)


def splits(args: argparse.Namespace) -> None:
    """One line a split."""
    if args.target_bytes < 1:
        raise ValueError("--target-bytes must be at least 1")
    found = open_rows(args).splits(args.target_bytes)
    names = ["path", "part", "start", "stop", "rows"]
    if args.json:
        print(output.as_json([{name: getattr(split, name) for name in names} for split in found]))
    else:
        output.print_table(names, [[getattr(split, name) for name in names] for split in found])


def head(args: argparse.Namespace) -> int:
    """A table of a few rows."""
    rows = open_rows(args)
    table = rows.read(columns_of(args), filter=args.where, limit=args.limit, on_error=args.on_error)
    if args.json:
        for row in rows_of(table):
            print(output.as_json(dict(zip(table.column_names, row, strict=True)), indent=None))
    else:
        output.print_table(table.column_names, rows_of(table))
    return _report_damage(rows.damage)


def rows_of(table: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a pyarrow table, by position: names may occur twice."""
    return zip(*(output.python_values(column) for column in table.columns), strict=True)


def cat(args: argparse.Namespace) -> int:
    """All rows on standard output."""
    rows = open_rows(args)
    reader = rows.to_batches(columns_of(args), filter=args.where, limit=args.limit, on_error=args.on_error)
    write_rows(reader, "-", args.to)
    return _report_damage(rows.damage)


def count(args: argparse.Namespace) -> None:
    """A number."""
    number = open_rows(args).count(args.where)
    print(output.as_json({"rows": number}) if args.json else number)


def convert(args: argparse.Namespace) -> int:
    """Writes one file from all rows."""
    format = args.to or format_of(args.dest)
    options = {name: parsed(value) for name, value in pairs(args.write_option, "--write-option").items()}
    rows = open_rows(args)
    reader = rows.to_batches(columns_of(args), filter=args.where, limit=args.limit, on_error=args.on_error)
    report = write_rows(reader, args.dest, format, options)
    if args.json:
        print(output.as_json({**report, "damage": rows.damage}))
    else:
        output.complain(f"{args.dest}: {report['rows']} rows, {output.size_text(report['bytes'])}")
    return _report_damage(rows.damage)


def _report_damage(damage: list[dict[str, Any]]) -> int:
    for lost in damage:
        output.complain("lost " + describe(lost))
    return 1 if damage else 0


def describe(lost: dict[str, Any]) -> str:
    """One line for an entry of a damage list."""
    rows = lost.get("rows_lost")
    where = f"{lost['path']}: " if "path" in lost else ""
    return (
        f"{where}{'unknown number of' if rows is None else rows} rows at offset {lost.get('offset')}, "
        f"{lost.get('length')} bytes, {lost.get('structure')}: {lost.get('reason')}"
    )
