#!/usr/bin/env python3
"""Finishes a folder that `run.sh write` filled: what Java read becomes typed expected rows and a manifest.

usage: truth.py DIR
"""

from __future__ import annotations

import base64
import decimal
import json
import pathlib
import re
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ns"),
    "timestamp with local time zone": pa.timestamp("ns", "UTC"),
}
NANOSECONDS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
FEATURES = {
    "types": "every primitive type, nulls, edges",
    "nested": "list, map, struct, union",
    "ints": "every encoding of integers, two row groups",
    "dictionary": "dictionaries, two stripes",
    "empty": "no rows",
    "no_index": "no row index",
    "timestamps": "a writer's time zone",
    "dates_hybrid": "hybrid calendar",
    "dates_proleptic": "proleptic calendar",
    "bloom": "bloom filters, two row groups",
    "encrypted": "columns encrypted and nullified",
    "acid": "a transactional table",
}
KEYS = {"encrypted": {"pii": "000102030405060708090a0b0c0d0e0f"}}


def split_list(text: str) -> list[str]:
    """The items of a list, split at the commas outside all brackets."""
    items, depth, start = [], 0, 0
    for at, c in enumerate(text + ","):
        depth += (c in "(<") - (c in ")>")
        if c == "," and not depth:
            items.append(text[start:at].strip())
            start = at + 1
    return [item for item in items if item]


def parse_type(text: str) -> pa.DataType:
    """The Arrow type that coldframe returns for an ORC type; a union is a struct, as in Parquet."""
    nested = re.fullmatch(r"(array|map|struct|uniontype)<(.*)>", text)
    if nested:
        items = split_list(nested[2])
        if nested[1] == "struct":
            fields = [item.split(":", 1) for item in items]
            return pa.struct([(name, parse_type(inner)) for name, inner in fields])
        inner = [parse_type(item) for item in items]
        if nested[1] == "array":
            return pa.list_(inner[0])
        if nested[1] == "map":
            return pa.map_(inner[0], inner[1])
        branches = [(f"_union_{n}", branch) for n, branch in enumerate(inner)]
        return pa.struct([("tag", pa.int8()), *branches])
    sized = re.fullmatch(r"(char|varchar|decimal)\((\d+)(?:,(\d+))?\)", text)
    if sized and sized[1] == "decimal":
        return pa.decimal128(int(sized[2]), int(sized[3]))
    return pa.string() if sized else SIMPLE[text]


def value_of(type: pa.DataType, value: Any) -> Any:
    """Converts a value of the program's JSON to one that pyarrow accepts for the type."""
    if value is None:
        return None
    if pa.types.is_struct(type):
        if set(value) == {"tag", "value"}:
            tag = value["tag"]
            return {"tag": tag, f"_union_{tag}": value_of(type[tag + 1].type, value["value"])}
        return {field.name: value_of(field.type, value[field.name]) for field in type}
    if pa.types.is_union(type):
        return value_of(type[value["tag"]].type, value["value"])
    if pa.types.is_map(type):
        return [(value_of(type.key_type, k), value_of(type.item_type, v)) for k, v in value]
    if pa.types.is_list(type):
        return [value_of(type.value_type, item) for item in value]
    if pa.types.is_decimal(type):
        unit = decimal.Decimal(1).scaleb(-type.scale)
        return decimal.Decimal(value).quantize(unit, context=decimal.Context(prec=76))
    if pa.types.is_timestamp(type):
        return (value[0] * 1_000_000_000 + value[1]) // NANOSECONDS[type.unit]
    if pa.types.is_floating(type):
        return float(value)
    return base64.b64decode(value) if pa.types.is_binary(type) else value


def column_of(type: pa.DataType, values: list[Any]) -> pa.Array:
    """Converts a column of the program's JSON to an array."""
    return pa.array([value_of(type, value) for value in values], type)


def finish(folder: pathlib.Path) -> None:
    manifest = []
    truths: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl")):
        head, *lines = (json.loads(line) for line in path.read_text().split("\n") if line)
        schema = parse_type(head["schema"])
        table = pa.table(
            [column_of(f.type, [row[f.name] for row in lines]) for f in schema], schema=pa.schema(schema)
        )
        # files with the same rows share a truth
        content = head["schema"] + json.dumps(lines)
        truth = truths.setdefault(content, f"{path.stem}.truth.parquet")
        if not (folder / truth).exists():
            pq.write_table(table, folder / truth, compression="zstd", store_schema=False)
        feature = next(text for name, text in FEATURES.items() if path.stem.startswith(name))
        entry: dict[str, Any] = {
            "file": head["file"],
            "truth": truth,
            "open": {},
            "rows": table.num_rows,
            "writer": "ORC Java 2.3.0",
            "features": [feature, *path.stem.split("_")[1:]],
        }
        if path.stem in KEYS:
            entry["open"]["keys"] = KEYS[path.stem]
        if path.stem.startswith("acid"):
            entry["open"]["acid"] = True
            entry["unordered"] = True
        manifest.append(entry)
        path.unlink()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    finish(pathlib.Path(sys.argv[1]))
