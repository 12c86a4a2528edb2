"""The commands that show and copy the contents of files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coldframe import writing
from coldframe._coldframe import formats, shown
from coldframe._coldframe import tables as tables_held
from coldframe.arrow import without_numpy
from coldframe.byte_size import size_text
from coldframe.cli import output
from coldframe.cli.ddl import hive_columns
from coldframe.cli.declared import add_tables_option
from coldframe.cli.destinations import add_overwrite_option, claim, sources_of
from coldframe.cli.foreign import Foreign, foreign_format
from coldframe.cli.grid import print_grid, print_records
from coldframe.cli.lengths import print_lengths
from coldframe.cli.options import (
    STDIN,
    Commands,
    add_command,
    add_form_option,
    add_format_option,
    add_open_options,
    add_row_options,
    add_split_bytes,
    add_storage_option,
    columns_of,
    expanded,
    open_arguments,
    open_file,
    open_rows,
    options_given,
    pairs,
    prints_json,
)
from coldframe.cli.printed import printed_columns, printed_rows
from coldframe.cli.sinks import COLDFRAME_FORMATS, OTHER_FORMATS, format_of, write_rows
from coldframe.errors import UnsupportedError, unsupported
from coldframe.file import File
from coldframe.guessing import guess_of
from coldframe.opening import open
from coldframe.scanning import Dataset
from coldframe.tables_file import entry_lines

MANY = "a file, several, a pattern or a directory; may be URLs; - is standard input"
EACH = "files; may be patterns, directories and URLs; - is standard input"
TABULAR: dict[str, Callable[..., None]] = {"table": print_grid, "vertical": print_records}
"""The forms for people; programs read the others."""


def add_parsers(commands: Commands) -> None:
    """Adds detect, schema, meta, stats, head, cat, count, splits and convert."""
    for add in (
        _add_detect,
        _add_schema,
        _add_meta,
        _add_stats,
        _add_splits,
        _add_head,
        _add_cat,
        _add_count,
        _add_convert,
    ):
        add(commands)


def _add_detect(commands: Commands) -> None:
    parser = add_command(
        commands,
        "detect",
        "coldframe detect *\ncoldframe detect --json s3://bucket/key",
    )
    parser.add_argument("source", nargs="+", help="paths, URLs or patterns; - is standard input")
    add_storage_option(parser)
    prints_json(parser, detect)


def _add_schema(commands: Commands) -> None:
    parser = add_command(
        commands,
        "schema",
        "coldframe schema 000000_0\ncoldframe schema 000000_0 --as hive   # for CREATE TABLE or --schema\n"
        "coldframe schema hbase --option table=orders --as tables   # an entry of tables.toml to begin with",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    parser.add_argument(
        "--as",
        dest="form",
        choices=["arrow", "hive", "tables"],
        default="arrow",
        help="notation of the types; tables: an entry of tables.toml with guessed options",
    )
    add_open_options(parser)
    prints_json(parser, schema)


def _add_meta(commands: Commands) -> None:
    parser = add_command(
        commands,
        "meta",
        "coldframe meta 000000_0\ncoldframe meta --json 000000_0 | jq .codec",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    add_open_options(parser)
    prints_json(parser, meta)


def _add_stats(commands: Commands) -> None:
    parser = add_command(
        commands,
        "stats",
        "coldframe stats 000000_0\ncoldframe stats 000000_0 --json\n"
        "coldframe stats hfile --lengths                  # histograms of keys, values and rows",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    parser.add_argument(
        "--lengths",
        action="store_true",
        help="read all cells of an HFile instead: the lengths of keys, values and rows, as HBase's hfile -s",
    )
    add_open_options(parser)
    prints_json(parser, stats)


def _add_splits(commands: Commands) -> None:
    parser = add_command(
        commands,
        "splits",
        "coldframe splits big.rc\ncoldframe splits warehouse/events --split-bytes 32m",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    add_split_bytes(parser)
    add_open_options(parser)
    prints_json(parser, splits)


def _add_head(commands: Commands) -> None:
    parser = add_command(
        commands,
        "head",
        """coldframe head 000000_0
coldframe head 000000_0 -c id,name -n 5 --where "id > 100"
coldframe head old.rc --schema 'id bigint, name string' --serde text
coldframe head hfile --json | jq .row""",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    add_form_option(parser, "table")
    add_row_options(parser, limit=10)
    add_open_options(parser, prints_rows=True)
    add_tables_option(parser)
    parser.set_defaults(run=head)


def _add_cat(commands: Commands) -> None:
    parser = add_command(
        commands,
        "cat",
        """coldframe cat 000000_0 > rows.csv
coldframe cat 'events/*.rc' --format jsonl --where "s like 'a%'"
coldframe cat 000000_0 --format arrow | other-program
curl -s https://host/000000_0 | coldframe cat -""",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    add_form_option(parser, "csv")
    add_row_options(parser)
    add_open_options(parser, prints_rows=True)
    parser.set_defaults(run=cat)


def _add_count(commands: Commands) -> None:
    parser = add_command(
        commands,
        "count",
        """coldframe count 000000_0\ncoldframe count warehouse/events --where "dt = '2014-01-01'" """,
    )
    parser.add_argument("source", nargs="+", help=MANY)
    parser.add_argument("--where", metavar="SQL", help="count only the rows that match")
    add_open_options(parser)
    prints_json(parser, count)


def _add_convert(commands: Commands) -> None:
    parser = add_command(
        commands,
        "convert",
        """coldframe convert 000000_0 part-0.parquet
coldframe convert 000000_0 part-0.parquet --write-option codec=snappy --write-option row_group_rows=100000
coldframe convert 'events/*.rc' all.orc --schema 'id bigint, s string' --serde text
coldframe convert rows.orc rows.rc --to rcfile --write-option serde=binary
coldframe convert rows.csv rows.orc                 # from CSV, JSON lines, Parquet and Arrow too""",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    parser.add_argument("dest", help="the file to write; it appears complete or not at all")
    add_overwrite_option(parser)
    parser.add_argument(
        "--to",
        choices=[*OTHER_FORMATS, *COLDFRAME_FORMATS],
        help="its format (default: by the extension)",
    )
    add_format_option(
        parser,
        "--write-option",
        "an option for writing; Parquet has codec, compression_level and row_group_rows",
        write=True,
    )
    add_row_options(parser)
    add_open_options(parser)
    prints_json(parser, convert)


def detect(args: argparse.Namespace) -> int:
    """Returns exit code 2 if a file has no known format."""
    storage = pairs(args.storage_option, "--storage-option") or None
    detected = {}
    for source in expanded(args.source, args.storage_option, with_others=True):
        opened = sys.stdin.buffer.read() if source == STDIN else source
        try:
            detected[source] = writing.detect(opened, storage_options=storage)
        except UnsupportedError as error:  # a pipe, a device
            output.complain(str(error))
            detected[source] = None
    if args.json:
        print(output.as_json(output.by_name(detected)))
    else:
        for source, format in detected.items():
            print(f"{output.name_of(source)}: {format or 'unknown'}")
    return 0 if all(detected.values()) else 2


def schema(args: argparse.Namespace) -> None:
    """Prints one line per column."""
    if args.form == "tables":
        for source in args.source:
            print("\n\n".join(proposed(args, source)))
        return
    rows = open_rows(args)
    if args.form == "hive":
        without_numpy()
        print(hive_columns(list(rows.schema)))
        return
    columns = printed_columns(rows)
    if args.json:
        names = ("name", "type", "nullable")
        print(output.as_json([dict(zip(names, column, strict=True)) for column in columns]))
    else:
        output.print_table(
            ["column", "type"],
            [[name, type + ("" if nullable else " not null")] for name, type, nullable in columns],
        )


def proposed(args: argparse.Namespace, source: str) -> Iterator[str]:
    """An entry of tables.toml for each table of a directory, or for the table that the options select."""
    given = open_arguments(args)
    held: list[tuple[str, str]] = []
    if source != STDIN and "table" not in given and "snapshot" not in given:
        format = given["format"] or writing.detect(source, storage_options=given["storage_options"])
        if format is not None and formats()[format]["capabilities"]["tables"]:
            held = tables_held(source, format=format, storage_options=given["storage_options"])
    if len(held) < 2:
        proposal = open_file(args, source).proposal()
        guess = None
        if proposal is not None and "serde" in proposal and source != STDIN:
            guess = guess_of(source, given["storage_options"])
        if proposal is None or guess is None:
            yield tables_entry(proposal)
        else:
            yield tables_entry({**proposal, "schema": guess.schema}, *guess.remarks)
        return
    for table, _ in held:
        # A table without cells is still a table.
        yield tables_entry(open(source, **given, table=table).proposal() or {"table": table})


def tables_entry(proposal: dict[str, Any] | None, *remarks: str) -> str:
    """An entry of tables.toml with some options, and remarks on them."""
    if proposal is None:
        raise unsupported(
            "a proposal of options: the format stores types, or there are no cells to guess from"
        )
    name = str(proposal.get("table", "table")).replace(":", ".").removeprefix("default.")
    return "\n".join(entry_lines(name, ".", proposal, *(f"# {remark}" for remark in remarks)))


def meta(args: argparse.Namespace) -> None:
    """Prints all metadata of each file."""

    def summary(file: File) -> dict[str, Any]:
        return {
            "format": file.format,
            "rows": file.num_rows,
            "columns": len(file._raw.names),
            "metadata": file.metadata,
        }

    _print_each(args, summary)


def stats(args: argparse.Namespace) -> None:
    """Prints all statistics of each file, or the lengths of its cells."""
    if not args.lengths:
        _print_each(args, File.statistics)
        return

    def lengths(file: File) -> dict[str, Any]:
        with output.progress_bar("stats", file.num_rows, "cells") as progress:
            return file.lengths(progress)

    _print_each(args, lengths, print_lengths)


def _print_each(
    args: argparse.Namespace,
    read: Callable[[File], Any],
    show: Callable[[Any, str], None] = output.print_tree,
) -> None:
    """Prints the result of `read` for each file; as JSON, the result of one file or an object by path."""
    sources = expanded(args.source, args.storage_option)
    results: dict[str, Any] = {}
    for at, source in enumerate(sources):
        file = open_file(args, source)
        if args.json:
            results[source] = read(file)
            continue
        if len(sources) > 1 and not output.is_terminal():
            print(f"{'' if at == 0 else chr(10)}{output.name_of(source)}:")
        show(read(file), output.name_of(file.path))
    if args.json:
        print(output.as_json(output.by_name(results) if len(sources) > 1 else results[sources[0]]))


def splits(args: argparse.Namespace) -> None:
    """Prints one line per split."""
    splits = open_rows(args).splits(args.split_bytes)
    names = ["path", "part", "start", "stop", "rows"]
    rows = [[shown(split.path), *(getattr(split, name) for name in names[1:])] for split in splits]
    if args.json:
        print(output.as_json([dict(zip(names, row, strict=True)) for row in rows]))
    else:
        output.print_table(names, rows)


def print_rows(reader: Any, form: str) -> None:
    """Prints the rows of a pyarrow.RecordBatchReader."""
    if form in TABULAR:
        rows = (row for batch in reader for row in rows_of(batch))
        TABULAR[form](reader.schema.names, rows)
    else:
        write_rows(reader, "-", form)


def head(args: argparse.Namespace) -> int:
    """Prints a table of a few rows."""
    rows = open_rows(args)
    names = columns_of(args)
    is_plain = args.where is None and args.on_error == "raise" and args.form in TABULAR
    printed = printed_rows(rows, names, args.limit) if is_plain else None
    if printed is not None and isinstance(rows, File):
        TABULAR[args.form](rows._raw.names if names is None else names, printed)
    else:
        without_numpy()
        table = rows.read(names, filter=args.where, limit=args.limit, on_error=args.on_error)
        print_rows(table.to_reader(), args.form)
    _suggest_schema(rows, args)
    return _report_damage(rows.damage)


def _suggest_schema(rows: File | Dataset, args: argparse.Namespace) -> None:
    """Suggests --schema if the file stores no names and types."""
    nameless = formats()[rows.format]["capabilities"]["needs_schema"] and "schema" not in open_arguments(args)
    if nameless and output.is_terminal():
        output.complain(
            f"{rows.format} stores no names and types: give them by --schema 'id bigint, name string', or in "
            "a tables.toml above the tables"
        )


def rows_of(table: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a pyarrow Table or RecordBatch, by position: names may occur twice."""
    return zip(*(output.python_values(column) for column in table.columns), strict=True)


def cat(args: argparse.Namespace) -> int:
    """Prints all rows."""
    without_numpy()
    rows = open_rows(args)
    reader = rows.to_batches(columns_of(args), filter=args.where, limit=args.limit, on_error=args.on_error)
    print_rows(reader, args.form)
    return _report_damage(rows.damage)


def count(args: argparse.Namespace) -> None:
    """Prints the number of rows."""
    with output.waiting("count"):
        number = open_rows(args).count(args.where)
    print(output.as_json({"rows": number}) if args.json else number)


def convert(args: argparse.Namespace) -> int:
    """Writes one file from all rows."""
    format = args.to or format_of(args.dest)
    options = options_given(args.write_option, "--write-option", format, write=True)
    rows = _to_convert(args)
    storage = pairs(args.storage_option, "--storage-option")
    claim(args.dest, sources_of(rows, args.source), storage, overwrite=args.overwrite)
    with output.progress_bar("convert", rows.num_rows if isinstance(rows, File) else None) as progress:
        reader = rows.to_batches(
            columns_of(args), filter=args.where, limit=args.limit, on_error=args.on_error
        )
        report = write_rows(writing.with_progress(reader, progress), args.dest, format, options, storage)
    if args.json:
        print(output.as_json({**report, "damage": rows.damage}))
    else:
        output.complain(f"{output.name_of(args.dest)}: {report['rows']} rows, {size_text(report['bytes'])}")
    return _report_damage(rows.damage)


def _to_convert(args: argparse.Namespace) -> Any:
    """The rows of files in coldframe's formats, or in foreign formats."""
    storage = pairs(args.storage_option, "--storage-option") or None
    if args.input_format is None and STDIN not in args.source:
        others = {foreign_format(source, storage) for source in args.source}
        if len(others) == 1 and (format := others.pop()) is not None:
            return Foreign(args.source, format, storage)
    return open_rows(args)


def _report_damage(damage: Sequence[dict[str, Any]]) -> int:
    for lost in damage:
        output.complain("lost " + describe(lost))
    return 1 if damage else 0


def describe(lost: dict[str, Any]) -> str:
    """One line for an entry of a damage list."""
    rows = lost.get("rows_lost")
    where = f"{output.name_of(lost['path'])}: " if "path" in lost else ""
    return (
        f"{where}{'unknown number of' if rows is None else rows} rows at offset {lost.get('offset')}, "
        f"{lost.get('length')} bytes, {lost.get('structure')}: {lost.get('reason')}"
    )
