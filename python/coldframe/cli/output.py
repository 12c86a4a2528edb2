"""Prints the output of commands: rich tables and trees on a terminal, else plain text, or JSON."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from coldframe._coldframe import shown
from coldframe.arrow import pa
from coldframe.terminal import PrintedBytes, console_of, printable


def complain(message: str) -> None:
    """Prints one line on standard error."""
    print(f"coldframe: {message}", file=sys.stderr)


def name_of(source: str) -> str:
    """A source as a line of output names it: without secrets, and on one line."""
    return printable(shown(source))


def by_name(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results by the names of their sources. URLs that differ only in their secrets get a number."""
    named: dict[str, Any] = {}
    for source, result in results.items():
        name = plain = shown(source)
        for number in itertools.count(2):
            if name not in named:
                break
            name = f"{plain} ({number})"
        named[name] = result
    return named


def standard_output() -> Any:
    """Standard output for bytes. On a terminal the bytes must be text; it is printed like all other text."""
    sys.stdout.flush()
    return PrintedBytes(sys.stdout) if is_terminal() else sys.stdout.buffer


_paging = False


def paging(on: bool) -> None:
    """Sets whether standard output goes to a pager on a terminal."""
    global _paging
    _paging = on


def is_terminal() -> bool:
    """Whether standard output ends on a terminal."""
    return _paging or sys.stdout.isatty()


def console() -> Any:
    """Rich's console on a terminal, None for plain text. The console heeds `NO_COLOR`."""
    if not is_terminal():
        return None
    try:
        if _paging:
            import shutil

            width = shutil.get_terminal_size().columns
            return console_of(sys.stdout, force_terminal=True, width=width)
        return console_of(sys.stdout)
    except ImportError:
        return None


def escaped(value: bytes) -> str:
    r"""Bytes as HBase shows them: printable ASCII as it is, the rest and the backslash as \xNN."""
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\x{b:02X}" for b in value)


def to_json_value(value: Any) -> Any:
    """The nearest JSON value: bytes escaped, dates in ISO form; decimals, NaN and infinities as text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return escaped(bytes(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else str(to_json_value(key)): to_json_value(v)
            for key, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [to_json_value(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    import datetime as dt
    import decimal

    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (dt.timedelta, decimal.Decimal)):
        return str(value)
    return str(value)


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """The value as JSON text."""
    return json.dumps(to_json_value(value), indent=indent, ensure_ascii=False)


def python_values(array: Any) -> list[Any]:
    """The values of a pyarrow array. Nanoseconds become text, since Python's types would truncate them."""
    shown = _shown_type(array.type)
    values: list[Any] = (array if shown.equals(array.type) else array.cast(shown)).to_pylist()
    return values


def _shown_type(type: Any) -> Any:
    if pa.types.is_timestamp(type) or pa.types.is_time(type):
        return pa.string() if type.unit == "ns" else type
    if pa.types.is_duration(type):
        return pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_shown_type(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(_shown_type(type.key_type), _shown_type(type.item_type))
    if pa.types.is_large_list(type):
        return pa.large_list(_shown_type(type.value_type))
    if pa.types.is_list(type):
        return pa.list_(_shown_type(type.value_type))
    return type


def cell_text(value: Any) -> str:
    """A value as the text of a table cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value.replace("\n", "\\n").replace("\t", "\\t"))
    if isinstance(value, (dict, list, tuple)):
        return printable(as_json(value, indent=None))
    simple = to_json_value(value)
    return printable(simple if isinstance(simple, str) else json.dumps(simple))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table: rich on a terminal, else tab-separated with a header line."""
    out = console()
    if out is None:
        if headers:
            print("\t".join(map(printable, headers)))
        for row in rows:
            print("\t".join(cell_text(value) for value in row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(Text(printable(header)), overflow="fold")
    for row in rows:
        table.add_row(
            *(Text("null", style="dim") if value is None else Text(cell_text(value)) for value in row)
        )
    out.print(table)


def print_tree(value: Any, name: str) -> None:
    """Nested dicts and lists as a tree on a terminal, else as indented text."""
    out = console()
    if out is None:
        for line in _lines(value, 0):
            print(line)
        return
    from rich.tree import Tree

    tree = Tree(_label(name))
    _grow(tree, value)
    out.print(tree)


def write_new(path: str, text: str) -> None:
    """Writes a text file that must not exist yet."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)


def replace_file(path: str, text: str) -> None:
    """Writes a text file that readers see complete, before or after."""
    new = f"{path}.new"
    # File names need not be text.
    with open(new, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    os.replace(new, path)


_PATIENCE = 1.0
"""Seconds before progress is shown."""


@contextmanager
def progress_bar(what: str, total: int | None, unit: str = "rows") -> Iterator[Any]:
    """A progress bar on standard error; None if standard error is not a terminal.

    The bar is drawn once the work has taken longer than a second.
    """
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
    )
    bar = Progress(*columns, TimeElapsedColumn(), console=console_of(sys.stderr), transient=True)
    task = bar.add_task(what, total=total)
    began = time.monotonic()

    def done(so_far: int) -> None:
        bar.update(task, completed=so_far)
        if not bar.live.is_started and time.monotonic() - began >= _PATIENCE:
            bar.start()

    try:
        yield done
    finally:
        bar.stop()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows what the command waits for, and how long, once it takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    bar = Progress(*columns, console=console_of(sys.stderr), transient=True)
    bar.add_task(what, total=None)
    import threading

    start = threading.Timer(_PATIENCE, bar.start)
    start.daemon = True
    start.start()
    try:
        yield
    finally:
        start.cancel()
        start.join()
        bar.stop()


def _lines(value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, (dict, list)) and inner:
                yield f"{indent}{key}:"
                yield from _lines(inner, depth + 1)
            else:
                yield f"{indent}{key}: {_scalar(inner)}"
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, (dict, list)) and inner:
                first, *rest = list(_lines(inner, depth + 1))
                yield f"{indent}- {first.strip()}"
                yield from rest
            else:
                yield f"{indent}- {_scalar(inner)}"
    else:
        yield f"{indent}{_scalar(value)}"


def _scalar(value: Any) -> str:
    return "null" if value is None else "[]" if value == [] else "{}" if value == {} else cell_text(value)


def _label(key: str, value: str | None = None) -> Any:
    from rich.text import Text

    key = printable(key)
    return Text(key, style="bold") if value is None else Text.assemble((key, "bold"), ": ", value)


def _grow(tree: Any, value: Any) -> None:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else [("", value)]
    )
    for key, inner in items:
        if isinstance(inner, (dict, list)) and inner:
            _grow(tree.add(_label(str(key))), inner)
        else:
            tree.add(_label(str(key), _scalar(inner)))
