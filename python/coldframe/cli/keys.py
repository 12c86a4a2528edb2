"""The commands that use the indexes of files: get, scan, keys, bloom."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from typing import Any

from coldframe._coldframe import formats, shown
from coldframe.arrow import pa
from coldframe.cli import output
from coldframe.cli.options import (
    Commands,
    add_command,
    add_form_option,
    add_open_options,
    expanded,
    key_of,
    open_file,
    prints_json,
)
from coldframe.cli.reading import print_rows
from coldframe.errors import SchemaError, unsupported
from coldframe.file import File

_SOURCES = "an HFile, a CFile, an HBase table, or a pattern; - is standard input"
_KEY_HELP = r"a key: text, with \xNN for any byte, as HBase shows it"


def add_parsers(commands: Commands) -> None:
    """Adds get, scan, keys and bloom."""
    _add_get(commands)
    _add_scan(commands)
    _add_keys(commands)
    _add_bloom(commands)


def _add_get(commands: Commands) -> None:
    parser = add_command(
        commands,
        "get",
        r"""coldframe get cf/3f2a77 row-17
coldframe get cf/3f2a77 row-17 'row-\x00\x12' --format jsonl
coldframe get 'cf/*' row-17                        # of all files of a family
coldframe get 0109656425709121 4711                 # the rows of a CFile that hold a value""",
    )
    parser.add_argument("source", help=_SOURCES)
    parser.add_argument("wanted", nargs="+", metavar="KEY", help=_KEY_HELP + "; for a CFile, a value")
    add_form_option(parser, "table")
    add_open_options(parser, prints_rows=True)
    parser.set_defaults(run=get)


def _add_scan(commands: Commands) -> None:
    parser = add_command(
        commands,
        "scan",
        r"""coldframe scan cf/3f2a77 --start row-1 --stop row-2 -n 100
coldframe scan cf/3f2a77 --prefix user- -c info:name --max-versions 1 --format jsonl
coldframe scan cf/3f2a77 --reverse -n 1             # the last row
coldframe scan 0109656425709121 --start 100 --stop 200
coldframe scan 0109656425709121 --from-ordinal 1000000 -n 10""",
    )
    parser.add_argument("source", help=_SOURCES)
    group = parser.add_argument_group("range")
    group.add_argument("--start", metavar="KEY", help="the first key; " + _KEY_HELP)
    group.add_argument("--stop", metavar="KEY", help="the first key after the range")
    group.add_argument("--prefix", metavar="KEY", help="only keys that begin with this")
    group.add_argument("--reverse", action="store_true", help="return the last key first")
    group.add_argument("--from-ordinal", type=int, metavar="N", help="start at this row number of a CFile")
    group = parser.add_argument_group("cells")
    group.add_argument(
        "-c", "--columns", metavar="A,B,..", help="only these families or columns: info or info:name"
    )
    group.add_argument(
        "--time-range",
        nargs=2,
        type=int,
        metavar=("FROM", "TO"),
        help="only timestamps in this range; the end is excluded",
    )
    group.add_argument(
        "--max-versions",
        type=int,
        metavar="N",
        help="the newest N versions that no delete marker hides (default: all stored cells)",
    )
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="at most N rows")
    add_form_option(parser, "csv")
    add_open_options(parser, prints_rows=True)
    parser.set_defaults(run=scan)


def _add_keys(commands: Commands) -> None:
    parser = add_command(
        commands,
        "keys",
        """coldframe keys cf/3f2a77 | head
coldframe keys cf/3f2a77 --count
coldframe keys 'cf/*' -n 1                          # the first key of each file""",
    )
    parser.add_argument("source", nargs="+", help="HFiles or CFiles; may be patterns; - is standard input")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="at most N of each file")
    parser.add_argument("--count", action="store_true", help="print only how many there are")
    add_open_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: a list for each file")
    parser.set_defaults(run=keys)


def _add_bloom(commands: Commands) -> None:
    parser = add_command(
        commands,
        "bloom",
        r"""coldframe bloom cf/3f2a77 --test row-17
coldframe bloom cf/3f2a77 --test row-17 --qualifier name
coldframe bloom events.orc -c user_id --test 4711 --test 4712""",
    )
    parser.add_argument("source", nargs="+", help="files; may be patterns; - is standard input")
    parser.add_argument(
        "--test", action="append", required=True, metavar="VALUE", help="a value, or a key; may be repeated"
    )
    parser.add_argument(
        "-c",
        "--column",
        metavar="NAME",
        help="the column whose statistics, dictionaries and bloom filters are tested (default: the keys)",
    )
    parser.add_argument("--qualifier", metavar="KEY", help="for an HFile: the column in the row")
    add_open_options(parser)
    prints_json(parser, bloom)


def get(args: argparse.Namespace) -> int:
    """Returns exit code 1 if nothing is found."""
    tables = [_got(file, args.wanted) for file in _files(args)]
    print_rows(_concatenated(table.to_reader() for table in tables), args.form)
    return 0 if any(table.num_rows for table in tables) else 1


def _got(file: File, wanted: list[str]) -> Any:
    can = capabilities(file)
    if can["keys"]:
        return file.get_many([key_of(key) for key in wanted])
    if can["lookup"]:
        kind = file.schema.field("value").type
        return pa.concat_tables([file.lookup(value_of(key, kind)) for key in wanted])
    raise unsupported(f"get: {file.format} files have no keys; see head --where")


def _files(args: argparse.Namespace) -> Iterator[File]:
    """The files of the source; each file is opened only when it is read."""
    for source in expanded([args.source], args.storage_option):
        yield open_file(args, source)


def _concatenated(readers: Iterator[Any]) -> Any:
    """The rows of several readers with the same columns."""
    first = next(readers)

    def batches() -> Iterator[Any]:
        yield from first
        for reader in readers:
            if not reader.schema.equals(first.schema):
                names = [f"{field.name} {field.type}" for field in reader.schema]
                raise SchemaError(f"the columns differ from those of the first file: {', '.join(names)}")
            yield from reader

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def scan(args: argparse.Namespace) -> None:
    """Prints the rows of a range."""
    reader = _concatenated(_scanned(file, args) for file in _files(args))
    print_rows(limited(reader, args.limit), args.form)


def _scanned(file: File, args: argparse.Namespace) -> Any:
    can = capabilities(file)
    if can["keys"]:
        return _scan_by_key(file, args)
    if can["seek"]:
        return _scan_of_values(file, args)
    raise unsupported(f"scan: {file.format} files have no keys; see cat --where")


def _scan_by_key(file: File, args: argparse.Namespace) -> Any:
    if args.from_ordinal is not None:
        raise ValueError(f"--from-ordinal is not for {file.format} files")

    def key(text: str | None) -> bytes | None:
        return None if text is None else key_of(text)

    return file.scan(
        key(args.start),
        key(args.stop),
        prefix=key(args.prefix),
        reverse=args.reverse,
        columns=None if args.columns is None else [name.strip() for name in args.columns.split(",")],
        time_range=None if args.time_range is None else tuple(args.time_range),
        max_versions=args.max_versions,
    )


def _scan_of_values(file: File, args: argparse.Namespace) -> Any:
    for option in ("prefix", "reverse", "columns", "time_range", "max_versions"):
        if getattr(args, option):
            raise ValueError(f"--{option.replace('_', '-')} is not for {file.format} files")
    kind = file.schema.field("value").type
    limits = [(args.start, ">="), (args.stop, "<")]
    filter = [("value", sign, value_of(text, kind)) for text, sign in limits if text is not None]
    if args.from_ordinal is not None:
        if filter:
            raise ValueError("--from-ordinal does not go with --start and --stop")
        return file.seek(args.from_ordinal)
    return file.to_batches(filter=filter or None, limit=args.limit)


def keys(args: argparse.Namespace) -> None:
    """Prints one key per line; with several files, each line begins with the file's name."""
    sources = expanded(args.source, args.storage_option)
    listed: dict[str, Any] = {}
    for source in sources:
        file_keys = islice(distinct_keys(open_file(args, source)), args.limit)
        if args.count:
            listed[source] = sum(1 for _ in file_keys)
        elif args.json:
            listed[source] = list(file_keys)
        else:
            for key in file_keys:
                print((f"{output.name_of(source)}\t" if len(sources) > 1 else "") + output.cell_text(key))
    if args.json:
        print(output.as_json(output.by_name(listed) if len(sources) > 1 else listed[sources[0]]))
    elif args.count:
        for source, count in listed.items():
            print(f"{output.name_of(source)}\t{count}" if len(sources) > 1 else count)


def distinct_keys(file: File) -> Iterator[Any]:
    """The distinct keys of a file that is sorted by its first column."""
    can = capabilities(file)
    if not (can["keys"] or can["lookup"]):
        raise unsupported(f"keys: {file.format} files have no keys")
    name = "value" if can["lookup"] else file.schema.names[0]
    last: Any = keys  # equal to no value
    for batch in file.to_batches([name]):
        for value in output.python_values(batch.column(0)):
            if value != last:
                yield value
                last = value


def bloom(args: argparse.Namespace) -> int:
    """Returns exit code 1 if no file may hold any of the values."""
    answers = []
    for source in expanded(args.source, args.storage_option):
        file = open_file(args, source)
        for text in args.test:
            places = _places(file, text, args)
            answers.append({"path": shown(source), "value": text, **places})
    if args.json:
        print(output.as_json(answers))
    else:
        for answer in answers:
            word = "may be there" if answer["may_contain"] else "not there"
            where = f" ({answer['units']} of {answer['of']} units)" if answer["units"] is not None else ""
            print(f"{output.name_of(answer['path'])}: {answer['value']}: {word}{where}")
    return 0 if any(answer["may_contain"] for answer in answers) else 1


def _places(file: File, text: str, args: argparse.Namespace) -> dict[str, Any]:
    """Whether the bloom filters rule out a key, or how many units may have a value of a column."""
    if args.column is None:
        if not capabilities(file)["might_contain"]:
            raise unsupported(f"bloom: {file.format} files have no filter of keys; name a column with -c")
        qualifier = None if args.qualifier is None else key_of(args.qualifier)
        return {"may_contain": file.might_contain(key_of(text), qualifier), "units": None, "of": None}
    if args.column not in file.schema.names:
        raise ValueError(f"no column {args.column!r}; the columns are {', '.join(file.schema.names)}")
    value = value_of(text, file.schema.field(args.column).type)
    left = file.units([args.column], filter=[(args.column, "=", value)])
    return {"may_contain": bool(left), "units": len(left), "of": len(file.units([args.column]))}


def capabilities(file: File) -> dict[str, Any]:
    """The capabilities of the file's format."""
    of: dict[str, Any] = formats()[file.format]["capabilities"]
    return of


def value_of(text: str, kind: Any) -> Any:
    """Parses a value of a column's type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return key_of(text)
    try:
        return pa.scalar(text).cast(kind).as_py()
    except pa.ArrowException as reason:
        raise ValueError(f"{text!r} is not a {kind}: {reason}") from reason


def limited(reader: Any, limit: int | None) -> Any:
    """At most `limit` rows of a reader."""
    if limit is None:
        return reader

    def batches() -> Iterator[Any]:
        left = limit
        for batch in reader:
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
