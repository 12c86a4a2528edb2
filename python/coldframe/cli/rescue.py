"""The command salvage: copies the readable rows of damaged files, and prints its assumptions."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from coldframe import writing
from coldframe._coldframe import formats, shown
from coldframe.arrow import pa
from coldframe.batches import reader_of
from coldframe.cli import output
from coldframe.cli.destinations import add_overwrite_option, claim, sources_of
from coldframe.cli.options import (
    STDIN,
    Commands,
    add_command,
    add_open_options,
    columns_of,
    open_arguments,
    open_rows,
    pairs,
)
from coldframe.cli.reading import MANY, describe
from coldframe.cli.sinks import open_atomically, write_rows
from coldframe.cli.unions import without_unions
from coldframe.errors import ColdframeError, CorruptFileError, unsupported
from coldframe.file import File
from coldframe.filters import Bound
from coldframe.opening import open
from coldframe.scanning import Dataset
from coldframe.sources import is_local_path


def add_parsers(commands: Commands) -> None:
    """Adds salvage."""
    parser = add_command(
        commands,
        "salvage",
        """coldframe salvage broken.rc rescued.parquet
coldframe salvage broken.rc rescued.parquet --schema 'id bigint, s string' --report lost.json
coldframe salvage broken.orc rescued.parquet --doubtful maybe.parquet
coldframe salvage cut.orc rescued.parquet           # truncated; uses an intact file beside it""",
    )
    parser.add_argument("source", nargs="+", help=MANY)
    parser.add_argument("dest", help="the Parquet file to write, or its URL")
    add_overwrite_option(parser)
    parser.add_argument(
        "-c", "--columns", metavar="A,B,..", help="only these columns; damage in others then costs nothing"
    )
    parser.add_argument(
        "--doubtful",
        metavar="FILE",
        help="write rows that decode but are not proved to this second file (ORC, RCFile): some are wrong",
    )
    parser.add_argument("--report", metavar="FILE", help="write the losses as JSON")
    add_open_options(parser)
    parser.add_argument("--json", action="store_true", help="print the losses as JSON")
    parser.set_defaults(run=salvage)


def salvage(args: argparse.Namespace) -> int:
    """Returns exit code 1 if anything was lost."""
    rows, assumed = _opened(args)
    storage = pairs(args.storage_option, "--storage-option")
    sources = sources_of(rows, args.source)
    claim(args.dest, sources, storage, overwrite=args.overwrite)
    if args.doubtful:
        claim(args.doubtful, [*sources, args.dest], storage, overwrite=args.overwrite)
        _check_doubtful(rows)
    if args.report:
        claim(
            args.report, [*sources, args.dest, args.doubtful or args.dest], storage, overwrite=args.overwrite
        )
    if assumed is not None and not args.json:
        output.complain(assumed)
    with output.progress_bar("salvage", rows.num_rows if isinstance(rows, File) else None) as progress:
        reader = writing.with_progress(rows.to_batches(columns_of(args), on_error="skip"), progress)
        report = write_rows(without_unions(reader), args.dest, "parquet", storage_options=storage)
    damage = rows.damage
    doubtful = _doubtful(rows, args, storage) if damage or args.doubtful else None
    names = [shown(source) for source in args.source]
    summary = {
        "source": names[0] if len(names) == 1 else names,
        "dest": shown(args.dest),
        "rows": report["rows"],
        "damage": damage,
        **({} if doubtful is None else {"doubtful": doubtful}),
        **({} if assumed is None else {"assumed": assumed}),
    }
    if args.report:
        with open_atomically(args.report, storage) as sink:
            sink.write((output.as_json(summary) + "\n").encode())
    if args.json:
        print(output.as_json(summary))
    else:
        print(f"{output.name_of(args.dest)}: {report['rows']} rows saved, {len(damage)} places damaged")
        for lost in damage:
            print("  lost " + describe(lost))
        if doubtful is not None:
            print(_about(doubtful))
    return 1 if damage or assumed is not None else 0


def _doubtful(
    rows: File | Dataset, args: argparse.Namespace, storage: dict[str, Any]
) -> dict[str, Any] | None:
    """Writes the doubtful rows, or only counts them; None if there cannot be any."""
    if not isinstance(rows, File) or not rows._raw.has_doubtful_rows:
        return None
    scan = rows._raw.scan(columns=columns_of(args), on_error="skip", doubtful=True, threads=1)
    reader = reader_of(scan, Bound(None), pa.schema(scan), None, lambda: None, "reading doubtful rows")
    if not args.doubtful:
        return {"rows": sum(batch.num_rows for batch in reader)}
    report = write_rows(without_unions(reader), args.doubtful, "parquet", storage_options=storage)
    return {"rows": report["rows"], "dest": shown(args.doubtful)}


def _check_doubtful(rows: File | Dataset) -> None:
    if not isinstance(rows, File):
        raise unsupported("--doubtful for several files: salvage them one by one")
    if not rows._raw.has_doubtful_rows:
        raise unsupported(
            f"--doubtful for {rows.format}: its rows are either proved or lost, so none are doubtful"
        )


def _about(doubtful: dict[str, Any]) -> str:
    rows = f"{doubtful['rows']} of the lost rows decode, but nothing proves their values"
    if "dest" in doubtful:
        return f"{output.name_of(doubtful['dest'])}: {rows}"
    return f"  {rows}" + (": --doubtful FILE writes them apart" if doubtful["rows"] else "")


def _opened(args: argparse.Namespace) -> tuple[File | Dataset, str | None]:
    """The rows, and the assumptions if a file is truncated."""
    try:
        return open_rows(args), None
    except CorruptFileError as error:
        if len(args.source) != 1 or args.source[0] == STDIN:
            raise
        return _recovered(args, args.source[0], error)


def _recovered(args: argparse.Namespace, source: str, error: CorruptFileError) -> tuple[File, str]:
    """Opens a truncated file with its format's option `recover`."""
    given = open_arguments(args)
    format = args.input_format or writing.detect(source, storage_options=given["storage_options"])
    known = formats().get(format or "", {}).get("open", {})
    if "recover" not in known or "recover" in given:
        raise error
    given = {**given, "format": format, "recover": True}
    if "schema" in given or "schema_from" in given or "schema_from" not in known:
        try:
            return open(source, **given), "its end is missing: read by its remaining structure"
        except CorruptFileError:
            raise error from None
    tried: list[str] = []
    for name in _beside(source, given["storage_options"]):
        try:
            file = open(source, **given, schema_from=name)
            if not any(batch.num_rows for batch in file.to_batches([], limit=1, on_error="skip")):
                tried.append(name)
                continue  # another table, or another codec
        except ColdframeError:
            continue
        return file, (
            f"its end is missing: assumed the columns, codec and writer of {name}, an intact file beside "
            "it; --option schema_from=NAME names another file, --schema gives the columns"
        )
    raise CorruptFileError(
        f"{error}; its end is missing, and with it its columns: give them by --schema 'id bigint, ..', or "
        "name an intact file of the same table beside it by --option schema_from=NAME"
        + (
            f". With the columns of {tried[0]}, no complete stripe was found: there may be none"
            if tried
            else ""
        )
    ) from error


def _beside(source: str, storage_options: Any) -> Iterator[str]:
    """The files in the same folder, by name."""
    if not is_local_path(source, storage_options):
        return
    folder, own = os.path.split(source)
    for name in sorted(os.listdir(folder or ".")):
        path = os.path.join(folder, name)
        if name != own and name[0] not in "._" and os.path.isfile(path):
            yield name
