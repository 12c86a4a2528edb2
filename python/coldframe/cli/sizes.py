"""The commands that show where the bytes are: sizes, index."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coldframe.byte_size import size_text
from coldframe.cli import output
from coldframe.cli.bytemap import kind
from coldframe.cli.options import (
    Commands,
    add_command,
    add_open_options,
    columns_of,
    expanded,
    open_file,
    prints_json,
)
from coldframe.cli.reading import EACH
from coldframe.file import File


def add_parsers(commands: Commands) -> None:
    """Adds sizes and index."""
    parser = add_command(
        commands,
        "sizes",
        """coldframe sizes events.orc
coldframe sizes 'events/*.orc' --stored             # without decoding
coldframe sizes old.rc --schema 'id bigint, s string' --serde text --json""",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    parser.add_argument("-c", "--columns", metavar="A,B,..", help="only these columns")
    parser.add_argument(
        "--stored", action="store_true", help="show only stored sizes, without decoding anything"
    )
    add_open_options(parser)
    prints_json(parser, sizes)

    parser = add_command(
        commands,
        "index",
        """coldframe index events.orc
coldframe index events.orc --where "user_id = 4711" -c user_id,at
coldframe index cf/3f2a77 --where "row >= 'row-1' and row < 'row-2'" --json""",
    )
    parser.add_argument("source", nargs="+", help=EACH)
    parser.add_argument("-c", "--columns", metavar="A,B,..", help="the columns that would be read")
    parser.add_argument(
        "--where",
        metavar="SQL",
        help="only the units that statistics, indexes and bloom filters cannot rule out",
    )
    add_open_options(parser)
    prints_json(parser, index)


@dataclass
class Size:
    """The size of a column."""

    column: str
    stored: int = 0
    """Bytes in the file: data, lengths, nulls, dictionaries, indexes."""
    plain: int | None = None
    """Bytes of the column's Arrow arrays."""

    @property
    def ratio(self) -> float | None:
        """How many times smaller the column is in the file."""
        return None if not self.plain or not self.stored else self.plain / self.stored


def sizes(args: argparse.Namespace) -> None:
    """Prints one line per column, summed over all files, and a last line for other bytes."""
    totals: dict[str, Size] = {}
    for source in expanded(args.source, args.storage_option):
        for size in sizes_of(open_file(args, source), columns_of(args), decode=not args.stored):
            total = totals.setdefault(size.column, Size(size.column))
            total.stored += size.stored
            if size.plain is not None:
                total.plain = (total.plain or 0) + size.plain
    # Bytes that belong to no column come last.
    shown = sorted(totals.values(), key=lambda size: size.plain is None and size.column[:1] == "(")
    whole = max(1, sum(size.stored for size in shown))
    if args.json:
        rows = [{"column": s.column, "stored": s.stored, "plain": s.plain, "ratio": s.ratio} for s in shown]
        print(output.as_json(rows))
        return
    headers = ["column", "stored", "share", *([] if args.stored else ["plain", "ratio"])]

    def cells(size: Size) -> Iterator[Any]:
        yield from (size.column, size_text(size.stored), f"{size.stored / whole:.1%}")
        if not args.stored:
            yield "" if size.plain is None else size_text(size.plain)
            yield "" if size.ratio is None else f"{size.ratio:.2f}"

    output.print_table(headers, [list(cells(size)) for size in shown])


def sizes_of(file: File, columns: list[str] | None, *, decode: bool) -> list[Size]:
    """The sizes of the columns of a file in order, and of other bytes last."""
    names = file.schema.names if columns is None else columns
    if unknown := [name for name in names if name not in file.schema.names]:
        raise ValueError(f"no column {unknown[0]!r}; the columns are {', '.join(file.schema.names)}")
    by_column = {name: Size(name) for name in names}
    others: dict[str, Size] = {}
    for column, what, length in leaves_of(file.inspect(), list(file.schema.names)):
        if column in by_column:
            by_column[column].stored += length
        elif column is None:
            others.setdefault(what, Size(f"({what})")).stored += length
    if decode:
        for name in names:
            by_column[name].plain = 0
        for batch in file.to_batches(list(names)):
            for name, column in zip(names, batch.columns, strict=True):
                by_column[name].plain = (by_column[name].plain or 0) + column.nbytes
    return [*by_column.values(), *(others.values() if columns is None else ())]


def leaves_of(tree: dict[str, Any], names: list[str]) -> Iterator[tuple[str | None, str, int]]:
    """The leaves of a layout: the column of `names` to which a leaf belongs, or None; the kind of structure;
    the length.
    """
    # In a file with one column, all blocks belong to this column.
    sole = names[0] if len(names) == 1 else None
    yield from _leaves(tree, names, None, sole)


def _leaves(
    node: dict[str, Any], names: list[str], column: str | None, sole: str | None
) -> Iterator[tuple[str | None, str, int]]:
    path = node["detail"].get("path")
    if isinstance(path, str):
        column = top_level(path, names) or column
    elif sole is not None and re.search(r"\b(block|data)\b", node["name"]):
        column = sole
    inner = node["children"]
    if not inner:
        yield column, kind(node["name"]), node["length"]
        return
    between = node["length"] - sum(child["length"] for child in inner)
    if between > 0:
        yield column, kind(node["name"]), between
    for child in inner:
        yield from _leaves(child, names, column, sole)


def top_level(path: str, names: list[str]) -> str | None:
    """The column of the table that a path such as `a.b.item` is in; names may have dots themselves."""
    fitting = [name for name in names if path == name or path.startswith(name + ".")]
    return max(fitting, key=len, default=None)


def index(args: argparse.Namespace) -> None:
    """Prints one line per unit, then the total."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for source in expanded(args.source, args.storage_option):
        file = open_file(args, source)
        listed[source] = file.units(columns_of(args), filter=args.where)
        if args.json:
            continue
        units = listed[source]
        rows = [
            [unit["structure"], unit["offset"], unit["length"], unit["rows"], unit["fetched"]]
            for unit in units
        ]
        title = f"{output.name_of(source)}: {_summary(file, units, args)}"
        output.print_table(["unit", "offset", "length", "rows", "bytes to read"], rows)
        print(title)
    if args.json:
        print(output.as_json(output.by_name(listed) if len(listed) > 1 else next(iter(listed.values()))))


def _summary(file: File, units: list[dict[str, Any]], args: argparse.Namespace) -> str:
    fetched = size_text(sum(unit["fetched"] for unit in units))
    if args.where is None:
        return f"{len(units)} units, {fetched} to read"
    every = file.units(columns_of(args))
    whole = size_text(sum(unit["fetched"] for unit in every))
    return f"{len(units)} of {len(every)} units, {fetched} of {whole} to read"
