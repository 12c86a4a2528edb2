#!/usr/bin/env python3
"""Writes the files of `tests/data/redfile/files`, their truths and their manifest.

usage: make.py DIR
"""

from __future__ import annotations

import json
import pathlib
import random
import struct
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redfile as r
from redfile import OPTIONAL, REPEATED, REQUIRED, Node, Options

LANGUAGE = [Node("Code", REQUIRED, r.BYTE_ARRAY), Node("Country", OPTIONAL, r.BYTE_ARRAY)]
LINKS = [Node("Backward", REPEATED, r.INT64), Node("Forward", REPEATED, r.INT64)]
NAME = [Node("Language", REPEATED, None, LANGUAGE), Node("Url", OPTIONAL, r.BYTE_ARRAY)]
DOCUMENT = [
    Node("DocId", REQUIRED, r.INT64),
    Node("Links", OPTIONAL, None, LINKS),
    Node("Name", REPEATED, None, NAME),
]

# The records r1 and r2 of the paper.
DOCUMENTS: list[dict[str, Any]] = [
    {
        "DocId": 10,
        "Links": {"Backward": [], "Forward": [20, 40, 60]},
        "Name": [
            {
                "Language": [{"Code": b"en-us", "Country": b"us"}, {"Code": b"en", "Country": None}],
                "Url": b"http://A",
            },
            {"Language": [], "Url": b"http://B"},
            {"Language": [{"Code": b"en-gb", "Country": b"gb"}], "Url": None},
        ],
    },
    {
        "DocId": 20,
        "Links": {"Backward": [10, 30], "Forward": [80]},
        "Name": [{"Language": [], "Url": b"http://C"}],
    },
]

DEEP = [Node("v", REPEATED, r.INT32)]
for level in ("l4", "l3", "l2", "l1"):
    DEEP = [Node(level, REPEATED, None, DEEP)]

NUMBERS = [
    Node("flag", REQUIRED, r.BOOLEAN),
    Node("maybe", OPTIONAL, r.BOOLEAN),
    Node("i", REQUIRED, r.INT32),
    Node("l", OPTIONAL, r.INT64),
    Node("w", OPTIONAL, r.INT96),
    Node("f", REQUIRED, r.FLOAT),
    Node("d", OPTIONAL, r.DOUBLE),
    Node("bytes", OPTIONAL, r.BYTE_ARRAY),
    Node("many", REPEATED, r.INT32),
]

FLAT = [Node("i", REQUIRED, r.INT32), Node("d", OPTIONAL, r.DOUBLE)]

ARROW = {
    r.BOOLEAN: pa.bool_(),
    r.INT32: pa.int32(),
    r.INT64: pa.int64(),
    r.INT96: pa.binary(12),
    r.FLOAT: pa.float32(),
    r.DOUBLE: pa.float64(),
    r.BYTE_ARRAY: pa.binary(),
}


def arrow_field(node: Node) -> pa.Field:
    data_type = pa.struct([arrow_field(c) for c in node.children]) if node.type is None else ARROW[node.type]
    if node.repetition == REPEATED:
        return pa.field(node.name, pa.list_(pa.field("element", data_type, nullable=False)), nullable=False)
    return pa.field(node.name, data_type, nullable=node.repetition == OPTIONAL)


def random_value(node: Node, rng: random.Random) -> Any:
    if node.repetition == OPTIONAL and rng.random() < 0.3:
        return None
    if node.repetition == REPEATED:
        return [required_value(node, rng) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    return required_value(node, rng)


def required_value(node: Node, rng: random.Random) -> Any:
    match node.type:
        case None:
            return {c.name: random_value(c, rng) for c in node.children}
        case r.BOOLEAN:
            return rng.random() < 0.5
        case r.INT32:
            return rng.choice([-(2**31), 2**31 - 1, 0, rng.randrange(-300, 300), rng.randrange(2**20)])
        case r.INT64:
            return rng.choice([-(2**63), 2**63 - 1, 0, rng.randrange(-300, 300), rng.randrange(2**50)])
        case r.INT96:
            return rng.randbytes(12)
        case r.FLOAT:
            return struct.unpack("<f", struct.pack("<f", rng.uniform(-1e9, 1e9)))[0]
        case r.DOUBLE:
            return rng.choice([0.0, float("inf"), 5e-324, rng.uniform(-1e300, 1e300)])
        case _:
            return rng.choice([b"", b"\0\xff", b"text " * rng.randrange(4)])


def records(nodes: list[Node], rows: int) -> list[dict[str, Any]]:
    rng = random.Random(6)
    return [{n.name: random_value(n, rng) for n in nodes} for _ in range(rows)]


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    documents = DOCUMENTS + records(DOCUMENT, 60)
    deep, numbers, flat = records(DEEP, 25), records(NUMBERS, 70), records(FLAT, 40)
    tables = {
        "documents": (DOCUMENT, documents),
        "paper": (DOCUMENT, DOCUMENTS),
        "deep": (DEEP, deep),
        "numbers": (NUMBERS, numbers),
        "flat": (FLAT, flat),
        "none": (DOCUMENT, []),
    }

    def paged(dialect: str = "f", codec: int = r.UNCOMPRESSED) -> Options:
        """Options for several row groups, and for pages that end within rows."""
        return Options(dialect=dialect, codec=codec, page_values=37, group_rows=25)

    spec = {"dialect": "spec"}
    gvi = Options(encoding=r.GROUP_VAR_INT, page_values=20)
    files: list[tuple[str, str, Options, dict[str, Any], str]] = [
        (f"documents_{d}", "documents", paged(d), {}, f"dialect {d}, pages that end within rows")
        for d in "abcdef"
    ]
    index_pages = replace(paged(), index_pages=True)
    text = replace(paged("spec"), metadata_after_chunk=True)
    pairs = Options(key_values=[("k", "v"), ("ü", ""), ("absent", None)])
    blocks = "blocks of several chunks, an empty last block"
    files += [
        ("documents_spec", "documents", text, spec, "the text's order of levels"),
        ("paper_f", "paper", Options(), {}, "the documents of the paper"),
        ("deep_b_padded", "deep", Options(dialect="b", page_values=13), {}, "3-bit repetition, filled up"),
        ("deep_e_padded", "deep", Options(dialect="e", page_values=13), {}, "3-bit repetition, filled up"),
        ("deep_f", "deep", Options(page_values=13), {}, "3-bit repetition levels"),
        ("numbers_f", "numbers", Options(crc=True, page_values=20), {}, "all types, crc"),
        ("numbers_gvi", "numbers", gvi, {}, "GROUP_VAR_INT"),
        (
            "numbers_gvi_spec",
            "numbers",
            replace(gvi, dialect="spec"),
            spec,
            "GROUP_VAR_INT, text's order",
        ),
        ("documents_gzip", "documents", replace(paged(codec=r.GZIP), crc=True), {}, "crc of stored bytes"),
        ("documents_snappy", "documents", paged(codec=r.SNAPPY), {}, f"SNAPPY: {blocks}"),
        ("documents_lzo", "documents", paged(codec=r.LZO), {}, f"LZO: {blocks}"),
        ("documents_d_codec", "documents", Options(dialect="d", codec=r.SNAPPY), {}, "a codec not applied"),
        ("documents_index_pages", "documents", index_pages, {}, "index pages between data pages"),
        (
            "documents_c_bfs",
            "documents",
            Options(dialect="c", breadth_first=True),
            {},
            "children by place",
        ),
        (
            "flat_a",
            "flat",
            Options(dialect="a"),
            {"dialect": "redelm-a"},
            "only the option tells",
        ),
        ("none_key_values", "none", pairs, {}, "no row; metadata"),
    ]
    manifest = []
    for name, table, options, open_options, features in files:
        nodes, rows = tables[table]
        (folder / f"{name}.redfile").write_bytes(r.write(nodes, rows, options))
        manifest.append(
            {
                "file": f"{name}.redfile",
                "truth": f"{table}.truth.parquet",
                "open": open_options,
                "rows": len(rows),
                "dialect": options.dialect if options.dialect == "spec" else f"redelm-{options.dialect}",
                "writer": "tests/reference/redfile",
                "features": features,
            }
        )
    for table, (nodes, rows) in tables.items():
        truth = pa.Table.from_pylist(rows, schema=pa.schema([arrow_field(n) for n in nodes]))
        pq.write_table(truth, folder / f"{table}.truth.parquet")
    (folder / "MANIFEST.json").write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
