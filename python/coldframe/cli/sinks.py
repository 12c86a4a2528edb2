"""Writes rows to standard output or a file, in foreign formats or coldframe's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from coldframe import writing
from coldframe._coldframe import StoreUpload, formats, shown
from coldframe.arrow import pa
from coldframe.cli.output import as_json, escaped, is_terminal, python_values, standard_output
from coldframe.errors import unsupported
from coldframe.literals import WrittenFormat
from coldframe.sources import open_store

STREAM_FORMATS = ["csv", "jsonl", "arrow", "parquet"]
OTHER_FORMATS = ["parquet", "arrow", "csv", "jsonl"]
_KNOWN = {name: about["capabilities"] for name, about in formats().items()}
COLDFRAME_FORMATS = [name for name, can in _KNOWN.items() if can["written"]]

_ENDINGS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    **{f".{ending}": name for name in COLDFRAME_FORMATS for ending in _KNOWN[name]["endings"]},
}


def format_of(dest: str) -> str:
    """The format for a file's extension."""
    ending = os.path.splitext(dest)[1].lower()
    if ending not in _ENDINGS:
        raise ValueError(f"{shown(dest)}: the name does not show the format: give it with --to")
    return _ENDINGS[ending]


def write_rows(
    reader: Any,
    dest: str,
    format: str,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes all batches of a pyarrow.RecordBatchReader; `-` is standard output. Returns rows and bytes."""
    if format in COLDFRAME_FORMATS:
        ours = cast(WrittenFormat, format)
        return writing.write(
            reader, dest, format=ours, storage_options=storage_options, **dict(options or {})
        )
    write = _WRITERS[format]
    if format == "parquet":
        write = partial(_write_parquet, **_parquet_options(options or {}))
    elif options:
        known = ", ".join([*COLDFRAME_FORMATS, "parquet"])
        raise ValueError(f"--write-option is for {known}, not for {format}")
    if dest == "-":
        if format in ("arrow", "parquet") and is_terminal():
            raise ValueError(f"{format} is not for a terminal: redirect the output to a file")
        sink = standard_output()
        rows = write(reader, sink)
        sink.flush()
        return {"rows": rows, "bytes": 0}
    with open_atomically(dest, storage_options) as sink:
        rows = write(reader, sink)
        size = sink.tell()
    return {"rows": rows, "bytes": size}


@contextlib.contextmanager
def open_atomically(dest: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[StoreUpload]:
    """A file that appears only when it is complete."""
    sink = open_store(dest, storage_options).create(mode="over")
    try:
        yield sink
        sink.finish()
    except BaseException:
        sink.abandon()
        raise


def _write_csv(reader: Any, sink: Any) -> int:
    import pyarrow.csv

    schema = pa.schema([pa.field(f.name, f.type if _csv_can(f.type) else pa.string()) for f in reader.schema])
    rows = 0
    with pyarrow.csv.CSVWriter(sink, schema) as writer:
        for batch in reader:
            arrays = [
                column
                if _csv_can(column.type)
                else pa.array([_text(v) for v in python_values(column)], pa.string())
                for column in batch.columns
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += batch.num_rows
    return rows


def _csv_can(type: Any) -> bool:
    return not (pa.types.is_nested(type) or _is_bytes(type) or pa.types.is_dictionary(type))


def _is_bytes(type: Any) -> bool:
    return bool(
        pa.types.is_binary(type)
        or pa.types.is_large_binary(type)
        or pa.types.is_fixed_size_binary(type)
        or pa.types.is_binary_view(type)
    )


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return escaped(value) if isinstance(value, bytes) else as_json(value, indent=None)


def _write_jsonl(reader: Any, sink: Any) -> int:
    names = reader.schema.names
    rows = 0
    for batch in reader:
        for row in zip(*map(python_values, batch.columns), strict=True):
            sink.write(as_json(dict(zip(names, row, strict=True)), indent=None).encode() + b"\n")
        rows += batch.num_rows
    return rows


def _write_arrow(reader: Any, sink: Any) -> int:
    rows = 0
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


_PARQUET_CODECS = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")
_ROW_GROUP_ROWS = 1 << 20


def _parquet_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `_write_parquet` from options with the names of coldframe's formats."""
    known = {"codec", "compression_level", "row_group_rows"}
    if unknown := sorted(set(options) - known):
        raise ValueError(f"--write-option {unknown[0]}: Parquet's are {', '.join(sorted(known))}")
    codec, rows = options.get("codec", "zstd"), options.get("row_group_rows", _ROW_GROUP_ROWS)
    if codec not in _PARQUET_CODECS:
        raise ValueError(f"--write-option codec: expected {', '.join(_PARQUET_CODECS)}, found {codec!r}")
    if not isinstance(rows, int) or rows < 1:
        raise ValueError(f"--write-option row_group_rows: expected a number of rows, found {rows!r}")
    return {"codec": codec, "level": options.get("compression_level"), "group": rows}


def _write_parquet(
    reader: Any, sink: Any, codec: str = "zstd", level: int | None = None, group: int = _ROW_GROUP_ROWS
) -> int:
    import pyarrow.parquet

    _refuse_what_parquet_lacks(reader.schema)
    rows = 0
    with pyarrow.parquet.ParquetWriter(
        sink, reader.schema, compression=codec, compression_level=level
    ) as writer:
        for table in _row_groups(reader, group):
            writer.write_table(table, row_group_size=group)
            rows += table.num_rows
    return rows


def _refuse_what_parquet_lacks(schema: Any) -> None:
    """An error before any row is read if Parquet has no type for a column, such as a union."""
    import pyarrow.parquet

    refused = []
    for field in schema:
        try:
            pyarrow.parquet.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            refused.append(f"`{field.name}` ({field.type})")
    if refused:
        raise unsupported(
            f"Parquet has no type for the column {', '.join(refused)}: leave it out with -c, "
            "or convert to orc or arrow"
        )


def _row_groups(reader: Any, rows: int) -> Iterator[Any]:
    """Batches combined to row groups of a useful size."""
    batches: list[Any] = []
    held = 0
    for batch in reader:
        batches.append(batch)
        held += batch.num_rows
        if held >= rows:
            yield pa.Table.from_batches(batches, reader.schema)
            batches, held = [], 0
    if batches:
        yield pa.Table.from_batches(batches, reader.schema)


_WRITERS: dict[str, Callable[[Any, Any], int]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "arrow": _write_arrow,
    "parquet": _write_parquet,
}
