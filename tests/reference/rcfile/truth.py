#!/usr/bin/env python3
"""Finishes a folder that `run.sh write` filled: what Hive read becomes typed expected rows, manifests and damaged copies.

usage: truth.py DIR
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
LIST = "written.jsonl"
PARTITIONS = {"sales": "dt date, region string"}
INTERVAL_DAY_TIME = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
SIMPLE = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ns"),
    "timestamp with local time zone": pa.timestamp("ns", "UTC"),
    "interval_year_month": pa.int32(),
    "interval_day_time": INTERVAL_DAY_TIME,
}


# --- Hive's types, and its JSON as values of them ---


def split_list(text: str) -> list[str]:
    """The items of a list, split at the commas outside all brackets."""
    items, depth, start = [], 0, 0
    for at, c in enumerate(text + ","):
        depth += (c in "(<") - (c in ")>")
        if c == "," and not depth:
            items.append(text[start:at].strip())
            start = at + 1
    return items


@dataclass(frozen=True)
class Type:
    """A Hive type: its Arrow type, and how to convert a value of Hive's JSON to Python."""

    arrow: pa.DataType
    value: Callable[[Any], Any]


def parse_type(ddl: str) -> Type:
    nested = re.fullmatch(r"(array|map|struct|uniontype)<(.*)>", ddl)
    if nested:
        return nested_type(nested[1], split_list(nested[2]))
    sized = re.fullmatch(r"(char|varchar|decimal)\((\d+)(?:,(\d+))?\)", ddl)
    if sized and sized[1] == "decimal":
        precision, scale = int(sized[2]), int(sized[3] or 0)
        return Type(pa.decimal128(precision, scale), lambda v: fixed_decimal(v, scale))
    if sized:
        return Type(pa.string(), str)
    return Type(SIMPLE[ddl], SCALARS.get(ddl, lambda v: v))


def nested_type(kind: str, items: list[str]) -> Type:
    if kind == "struct":
        names, ddls = zip(*(item.split(":", 1) for item in items))
        fields = [parse_type(ddl.strip()) for ddl in ddls]
        return Type(
            pa.struct([(n.strip(), f.arrow) for n, f in zip(names, fields)]),
            lambda v: {n: or_none(f, x) for f, (n, x) in zip(fields, v.items())},
        )
    inner = [parse_type(item) for item in items]
    if kind == "array":
        return Type(pa.list_(inner[0].arrow), lambda v: [or_none(inner[0], x) for x in v])
    if kind == "map":
        return Type(
            pa.map_(inner[0].arrow, inner[1].arrow),
            lambda v: [(inner[0].value(k), or_none(inner[1], x)) for k, x in v],
        )
    # Parquet has no unions: a struct of the tag and one field per branch; one of the fields is set.
    branches = [(f"f{n}", branch.arrow) for n, branch in enumerate(inner)]
    return Type(
        pa.struct([("tag", pa.int8()), *branches]),
        lambda v: {"tag": v["tag"], f"f{v['tag']}": or_none(inner[v["tag"]], v["value"])},
    )


def or_none(type_: Type, value: Any) -> Any:
    return None if value is None else type_.value(value)


def fixed_decimal(text: str, scale: int) -> decimal.Decimal:
    with decimal.localcontext(prec=76):
        return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 in local time; of a zoned timestamp the instant, which Hive prints in UTC."""
    whole, _, fraction = text.removesuffix(" UTC").partition(".")
    seconds = (dt.datetime.fromisoformat(whole) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    return seconds * 1_000_000_000 + int(fraction.ljust(9, "0"))


def months(text: str) -> int:
    sign, years, rest = re.fullmatch(r"(-?)(\d+)-(\d+)", text).groups()  # type: ignore[union-attr]
    return int(sign + "1") * (int(years) * 12 + int(rest))


def seconds_nanos(text: str) -> dict[str, int]:
    sign, *parts = re.fullmatch(r"(-?)(\d+) (\d+):(\d+):(\d+)\.(\d{9})", text).groups()  # type: ignore[union-attr]
    days, hours, minutes, seconds, nanos = map(int, parts)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return {"seconds": int(sign + "1") * total, "nanos": int(sign + "1") * nanos}


SCALARS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "double": float,
    "binary": base64.b64decode,
    "date": dt.date.fromisoformat,
    "timestamp": nanoseconds,
    "timestamp with local time zone": nanoseconds,
    "interval_year_month": months,
    "interval_day_time": seconds_nanos,
}


def columns(schema: str) -> dict[str, Type]:
    return {name: parse_type(ddl.strip()) for name, ddl in (c.split(None, 1) for c in split_list(schema))}


def table(rows: list[dict[str, Any]], schema: str) -> pa.Table:
    types = columns(schema)
    arrays = [pa.array([or_none(t, row[name]) for row in rows], t.arrow) for name, t in types.items()]
    return pa.table(arrays, names=list(types))


def json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# --- files/: truths and manifest ---


def finish_files(folder: pathlib.Path) -> None:
    manifest = json_lines(folder / LIST)
    for entry in manifest:
        source = folder / entry["truth"]
        source = source if source.suffix == ".jsonl" else source.with_suffix(".jsonl")
        entry["truth"] = source.stem + ".truth.parquet"
        truth = table(json_lines(source), entry["open"]["schema"])
        pq.write_table(truth, folder / entry["truth"], compression="zstd")
        source.unlink()
    write_manifest(folder, manifest)
    (folder / LIST).unlink()


def write_manifest(folder: pathlib.Path, manifest: list[dict[str, Any]]) -> None:
    (folder / "MANIFEST.json").write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


# --- warehouse/: what each table holds ---


def finish_warehouse(folder: pathlib.Path) -> None:
    expected: dict[str, Any] = {}
    toml = ["# What RCFile does not say of the tables in this folder."]
    entries = json_lines(folder / LIST)
    for name in sorted({e["file"].split("/")[0] for e in entries}):
        of_table = [e for e in entries if e["file"].startswith(name + "/")]
        opened = of_table[0]["open"]
        toml += table_toml(name, opened)
        schema = ", ".join(filter(None, [opened["schema"], PARTITIONS.get(name)]))
        parts = []
        for entry in of_table:
            path = folder / (entry["file"] + ".jsonl")
            parts += [row | partition_values(entry["file"]) for row in json_lines(path)]
            path.unlink()
        expected[name] = {"files": len(of_table)} | summary(table(parts, schema))
    (folder / "tables.toml").write_text("\n".join(toml) + "\n", encoding="utf-8")
    (folder / "EXPECTED.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    (folder / LIST).unlink()


def table_toml(name: str, opened: dict[str, Any]) -> Iterator[str]:
    yield f"\n[tables.{name}]"
    yield f'schema = "{opened["schema"]}"'
    yield f'serde = "{opened["serde"]}"'
    if name in PARTITIONS:
        yield f'partitions = "{PARTITIONS[name]}"'
    if "serde_properties" in opened:
        yield f"\n[tables.{name}.serde_properties]"
        for key, value in sorted(opened["serde_properties"].items()):
            yield f"{json.dumps(key)} = {json.dumps(value)}"


def partition_values(file: str) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in file.split("/")[1:-1])
    return {k: None if v == "__HIVE_DEFAULT_PARTITION__" else urllib.parse.unquote(v) for k, v in pairs}


def summary(data: pa.Table) -> dict[str, Any]:
    described = {field.name: describe(field.type, data[field.name]) for field in data.schema}
    return {"rows": data.num_rows, "columns": described}


def describe(type_: pa.DataType, column: pa.ChunkedArray) -> dict[str, Any]:
    if pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("us"))  # Python's datetime knows no nanoseconds
    values = column.drop_null().to_pylist()
    of: dict[str, Any] = {"nulls": column.null_count}
    if pa.types.is_boolean(type_):
        of["true"] = sum(values)
    elif pa.types.is_integer(type_):
        of["sum"] = sum(values)
    elif pa.types.is_floating(type_):
        of["sum"] = math.fsum(values)
    elif pa.types.is_decimal(type_):
        of["sum"] = str(sum(values))
    elif pa.types.is_temporal(type_):
        of |= {"min": str(min(values)), "max": str(max(values))}
    elif pa.types.is_string(type_):
        of["utf8_bytes"] = sum(len(v.encode()) for v in values)
    elif pa.types.is_list(type_) or pa.types.is_map(type_):
        of["items"] = sum(map(len, values))
    return of


# --- damaged/: copies of two of the files, each damaged in one place ---


@dataclass(frozen=True)
class Group:
    """The layout of a row group: start (after the sync marker, if any), column data, end, and row count."""

    start: int
    has_sync: bool
    end: int
    column_offsets: list[int]
    rows: range


def vint(data: bytes, at: int) -> tuple[int, int]:
    """Reads a Hadoop variable-length integer (lengths are never negative); returns it and its end."""
    first = struct.unpack_from("b", data, at)[0]
    if first >= -112:
        return first, at + 1
    size = -112 - first
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size


def row_groups(data: bytes) -> list[Group]:
    """The row groups of an RCF1 file, uncompressed or with zlib streams."""
    compressed = data[4] == 1
    at = 5
    if compressed:
        size, at = vint(data, at)
        at += size
    (pairs,) = struct.unpack_from(">i", data, at)
    at += 4
    for _ in range(2 * pairs):
        size, at = vint(data, at)
        at += size
    sync = data[at : at + 16]
    at += 16
    groups: list[Group] = []
    first_row = 0
    while at < len(data):
        has_sync = data[at : at + 4] == b"\xff\xff\xff\xff"
        at += 20 * has_sync
        assert not has_sync or data[at - 16 : at] == sync
        record, key, stored_key = struct.unpack_from(">iii", data, at)
        key_bytes = data[at + 12 : at + 12 + stored_key]
        rows, sizes = key_buffer(zlib.decompress(key_bytes) if compressed else key_bytes)
        offsets = [at + 12 + stored_key + sum(sizes[:n]) for n in range(len(sizes))]
        end = at + 12 + stored_key + record - key
        groups.append(Group(at, has_sync, end, offsets, range(first_row, first_row + rows)))
        first_row += rows
        at = end
    return groups


def key_buffer(key: bytes) -> tuple[int, list[int]]:
    """The number of rows, and the stored size of each column."""
    rows, at = vint(key, 0)
    sizes = []
    while at < len(key):
        size, at = vint(key, at)
        _, at = vint(key, at)  # size before compression
        cells, at = vint(key, at)
        at += cells
        sizes.append(size)
    return rows, sizes


def damage(folder: pathlib.Path, files: pathlib.Path) -> None:
    folder.mkdir()
    entries_of_files = json.loads((files / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest = {e["file"]: e for e in entries_of_files if "splits" in e}
    zlib_base, text_base = "binary_groups_zlib.rc", "text_groups.rc"
    entries = []

    def add(name: str, base: str, data: bytes, offset: int, what: str, survive: list[range]) -> None:
        (folder / name).write_bytes(data)
        opened = manifest[base]["open"]
        entries.append(
            {
                "file": name,
                "base": f"../files/{base}",
                "base_truth": f"../files/{manifest[base]['truth']}",
                "open": opened,
                "expect": "CorruptFileError",
                "damage": {"offset": offset, "what": what},
                "survive": [[r.start, r.stop] for r in survive if r],
                "hive_rows": hive_rows(folder / name, opened),
                "rows": manifest[base]["rows"],
            }
        )

    data = (files / zlib_base).read_bytes()
    groups = row_groups(data)
    end = groups[-1].rows.stop
    hurt = groups[5]
    at = (hurt.column_offsets[1] + hurt.column_offsets[2]) // 2
    flipped = data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]
    survive = [range(hurt.rows.start), range(hurt.rows.stop, end)]
    add(
        "flipped_byte_zlib.rc",
        zlib_base,
        flipped,
        at,
        "a byte in the zlib stream of column 1 of row group 5",
        survive,
    )

    hurt = groups[3]
    garbage = data[: hurt.start + 4] + b"\x7f\xed\xcb\xa9" * 2 + data[hurt.start + 12 :]
    after = next(g for g in groups[4:] if g.has_sync)
    survive = [range(hurt.rows.start), range(after.rows.start, end)]
    add("key_length_zlib.rc", zlib_base, garbage, hurt.start + 4, "both key lengths of row group 3", survive)

    data = (files / text_base).read_bytes()
    hurt = row_groups(data)[13]
    at = (hurt.column_offsets[2] + hurt.end) // 2
    add(
        "truncated.rc",
        text_base,
        data[:at],
        at,
        "cut within the columns of row group 13",
        [range(hurt.rows.start)],
    )
    write_manifest(folder, entries)


def hive_rows(path: pathlib.Path, opened: dict[str, Any]) -> int:
    """How many rows Hive returns with tolerance of corruption, even if an error follows them."""
    tolerate = "hive.io.rcfile.tolerate.corruptions=true"
    command = [HERE / "run.sh", "read", path, opened["schema"], opened["serde"], tolerate]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    ).stdout.count(b"\n")


def main(target: str) -> None:
    folder = pathlib.Path(target)
    finish_files(folder / "files")
    finish_warehouse(folder / "warehouse")
    shutil.rmtree(folder / "damaged", ignore_errors=True)
    damage(folder / "damaged", folder / "files")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
