"""The tables of `shapes.py`: rows as companies keep them, made from a random seed, and the queries for each
table.

A shape is a table and its conditions, which are written once and translated for each reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

Random = np.random.Generator
WORDS = [
    "account",
    "balance",
    "carrier",
    "delivery",
    "express",
    "foreign",
    "general",
    "handling",
    "invoice",
    "journal",
    "keeper",
    "ledger",
    "margin",
    "notice",
    "order",
    "packet",
    "quarter",
    "refund",
    "service",
    "transfer",
    "urgent",
    "voucher",
    "weekly",
]


@dataclass(frozen=True)
class Test:
    """A comparison of a column with one value, or with several values by `in`."""

    column: str
    op: str
    value: int | str | list[int]

    def sql(self) -> str:
        """The comparison in SQL."""
        if isinstance(self.value, list):
            return f"{self.column} in ({', '.join(map(str, self.value))})"
        return f"{self.column} {self.op} " + (
            f"'{self.value}'" if isinstance(self.value, str) else str(self.value)
        )


@dataclass(frozen=True)
class Shape:
    """A table and its queries."""

    table: pa.Table
    single: str
    three: list[str]
    key: list[Test]
    scattered: list[Test]
    members: list[Test]
    prefix: list[Test]
    counted: list[Test] = field(default_factory=list)


def numbers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(values).cast(kind)


def taken(choices: list[str], random: Random, rows: int) -> pa.Array:
    return pa.array(choices).take(pa.array(random.integers(0, len(choices), rows)))


def thinned(column: pa.Array, random: Random, share: float) -> pa.Array:
    """The column with nulls in this share of its rows."""
    nulls = pa.array(random.random(len(column)) < share)
    return pa.compute.if_else(nulls, pa.scalar(None, column.type), column)


def decimals(unscaled: np.ndarray, kind: pa.Decimal128Type) -> pa.Array:
    """Decimals of 64-bit unscaled values, which are laid out as 128 bits."""
    words = np.empty((len(unscaled), 2), "<i8")
    words[:, 0] = unscaled
    words[:, 1] = unscaled >> 63
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(words.tobytes())])


def times(seconds: np.ndarray) -> pa.Array:
    return pa.array(seconds.astype("i8") * 1_000_000).cast(pa.timestamp("us"))


def sentences(random: Random, rows: int, low: int, high: int) -> pa.Array:
    """Texts of `low` to `high` characters, all different."""
    words = random.integers(0, len(WORDS), (rows, high // 5 + 2))
    lengths = random.integers(low, high + 1, rows)
    return pa.array(
        f"{row:x} {' '.join(WORDS[word] for word in line)}"[:length]
        for row, (line, length) in enumerate(zip(words.tolist(), lengths.tolist(), strict=True))
    )


def keys(random: Random, rows: int, distinct: int) -> np.ndarray:
    """Each key about the same number of times, in random order."""
    return random.permutation(np.arange(rows) % max(distinct, 1))


def some(random: Random, below: int) -> list[int]:
    """200 different numbers, for `in`."""
    return sorted(random.choice(max(below, 200), 200, replace=False).tolist())


def orders(random: Random, rows: int) -> Shape:
    """Twelve columns of a shop's orders."""
    few = max(rows // 50, 1)
    products = [f"{WORDS[i % len(WORDS)]} {i * 7919 % 99_991:05}" for i in range(20_000)]
    table = pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "customer": numbers(keys(random, rows, few), pa.int64()),
            "article": numbers(random.integers(0, 200_000, rows), pa.int32()),
            "store": numbers(random.integers(0, 500, rows), pa.int16()),
            "price": pa.array(np.round(random.gamma(2, 40, rows), 2)),
            "discount": pa.array(np.round(random.random(rows), 2)),
            "total": decimals(random.integers(100, 10**9, rows), pa.decimal128(12, 2)),
            "day": numbers(18_000 + np.sort(random.integers(0, 1500, rows)), pa.int32()).cast(pa.date32()),
            "at": times(1_600_000_000 + np.arange(rows) * 30 + random.integers(0, 30, rows)),
            "status": taken(["open", "paid", "sent"], random, rows),
            "product": taken(products, random, rows),
            "note": thinned(sentences(random, rows, 20, 60), random, 0.1),
        }
    )
    return Shape(
        table,
        single="product",
        three=["customer", "price", "status"],
        key=[Test("customer", "=", int(random.integers(0, few)))],
        scattered=[
            Test("status", "=", "paid"),
            Test("store", "<", 50),
            Test("discount", "<", 1),
            Test("article", "<", 600),
        ],
        members=[Test("article", "in", some(random, 200_000))],
        prefix=[Test("product", "like", "refund 1%")],
        counted=[Test("store", "<", 50), Test("status", "=", "sent")],
    )


def weblog(random: Random, rows: int) -> Shape:
    """Lines of a web server's log."""
    pages = [f"/{WORDS[i % 23]}/{WORDS[i // 23 % 23]}/{i}.html" for i in range(5000)]
    agents = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{i}.0) Gecko/20100101 Firefox/{i}.0" for i in range(300)]
    addresses = [f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(50_000)]
    few = max(rows // 50, 1)
    table = pa.table(
        {
            "at": times(1_600_000_000 + np.cumsum(random.integers(0, 2, rows))),
            "address": taken(addresses, random, rows),
            "method": taken(["GET", "GET", "GET", "POST", "HEAD"], random, rows),
            "page": taken(pages, random, rows),
            "status": numbers(random.choice([200, 200, 200, 304, 404, 500], rows), pa.int32()),
            "bytes": numbers(random.integers(200, 90_000, rows), pa.int64()),
            "session": numbers(keys(random, rows, few), pa.int64()),
            "referrer": thinned(taken(pages, random, rows), random, 0.6),
            "agent": taken(agents, random, rows),
            "seconds": pa.array(random.exponential(0.2, rows)),
        }
    )
    return Shape(
        table,
        single="page",
        three=["at", "page", "status"],
        key=[Test("session", "=", int(random.integers(0, few)))],
        scattered=[Test("status", "=", 500), Test("method", "=", "HEAD"), Test("bytes", "<", 470)],
        members=[Test("session", "in", some(random, few))],
        prefix=[Test("page", "like", "/refund/o%")],
        counted=[Test("status", "=", 404)],
    )


def events(random: Random, rows: int) -> Shape:
    """Nested events: a struct, a list of structs, a map."""
    few = max(rows // 50, 1)
    ends = np.concatenate([[0], np.cumsum(random.integers(0, 5, rows))]).astype("i4")
    count = int(ends[-1])
    items = pa.StructArray.from_arrays(
        [
            taken([f"sku-{i:05}" for i in range(3000)], random, count),
            numbers(random.integers(1, 9, count), pa.int32()),
            pa.array(np.round(random.gamma(2, 20, count), 2)),
        ],
        ["sku", "quantity", "price"],
    )
    tags = np.concatenate([[0], np.cumsum(random.integers(0, 3, rows))]).astype("i4")
    tag_count = int(tags[-1])
    user = pa.StructArray.from_arrays(
        [
            numbers(random.integers(0, 90_000, rows), pa.int64()),
            taken(["de", "fr", "in", "jp", "us"], random, rows),
            thinned(taken([f"{word}@example.com" for word in WORDS], random, rows), random, 0.3),
        ],
        ["id", "country", "mail"],
    )
    table = pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "session": numbers(keys(random, rows, few), pa.int64()),
            "at": times(1_650_000_000 + np.arange(rows)),
            "kind": taken(["view", "click", "buy", "leave"], random, rows),
            "weight": numbers(random.integers(0, 1000, rows), pa.int32()),
            "user": user,
            "items": pa.ListArray.from_arrays(pa.array(ends), items),
            "tags": pa.MapArray.from_arrays(
                pa.array(tags), taken(WORDS, random, tag_count), taken(WORDS, random, tag_count)
            ),
        }
    )
    return Shape(
        table,
        single="items",
        three=["id", "kind", "user"],
        key=[Test("session", "=", int(random.integers(0, few)))],
        scattered=[Test("kind", "=", "buy"), Test("weight", "<", 20), Test("session", "<", few // 50)],
        members=[Test("session", "in", some(random, few))],
        prefix=[Test("kind", "like", "bu%")],
        counted=[Test("kind", "=", "buy")],
    )


def sparse(random: Random, rows: int) -> Shape:
    """240 columns, most of whose values are null."""
    rows = max(rows // 10, 1)
    few = max(rows // 50, 1)
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(rows)),
        "owner": numbers(keys(random, rows, few), pa.int64()),
        "state": taken(["new", "old", "gone"], random, rows),
        "grade": numbers(random.integers(0, 100, rows), pa.int32()),
        "name": taken([f"{word}-{i}" for word in WORDS for i in range(100)], random, rows),
    }
    makers: list[Callable[[], pa.Array]] = [
        lambda: numbers(random.integers(0, 1000, rows), pa.int32()),
        lambda: pa.array(np.round(random.random(rows) * 100, 2)),
        lambda: taken(WORDS, random, rows),
        lambda: numbers(random.integers(0, 2, rows), pa.bool_()),
    ]
    for number in range(len(columns), 240):
        columns[f"c{number}"] = thinned(makers[number % 4](), random, 0.97)
    return Shape(
        pa.table(columns),
        single="name",
        three=["id", "state", "c100"],
        key=[Test("owner", "=", int(random.integers(0, few)))],
        scattered=[Test("state", "=", "new"), Test("grade", "=", 7), Test("owner", "<", few // 30)],
        members=[Test("owner", "in", some(random, few))],
        prefix=[Test("name", "like", "refund-1%")],
        counted=[Test("grade", "<", 10)],
    )


def taxi(random: Random, rows: int) -> Shape:
    """Taxi trips: doubles of two decimals, small integers, times."""
    start = 1_550_000_000 + np.cumsum(random.integers(0, 3, rows))
    few = max(rows // 50, 1)
    fare = np.round(random.gamma(3, 5, rows) + 2.5, 2)
    table = pa.table(
        {
            "vendor": numbers(random.integers(1, 3, rows), pa.int64()),
            "pickup": times(start),
            "dropoff": times(start + random.integers(60, 5000, rows)),
            "passengers": thinned(pa.array(random.integers(1, 7, rows).astype("f8")), random, 0.03),
            "distance": pa.array(np.round(random.gamma(1.5, 2, rows), 2)),
            "flag": taken(["N", "N", "N", "Y"], random, rows),
            "from_zone": numbers(random.integers(1, 266, rows), pa.int64()),
            "to_zone": numbers(random.integers(1, 266, rows), pa.int64()),
            "payment": numbers(random.integers(1, 5, rows), pa.int64()),
            "fare": pa.array(fare),
            "tip": pa.array(np.round(fare * random.choice([0, 0.1, 0.2], rows), 2)),
            "total": pa.array(np.round(fare * 1.1 + 0.5, 2)),
            "driver": numbers(keys(random, rows, few), pa.int32()),
            "medallion": taken([f"{i * 7919 % 99_991:05X}" for i in range(13_000)], random, rows),
        }
    )
    return Shape(
        table,
        single="fare",
        three=["pickup", "distance", "total"],
        key=[Test("driver", "=", int(random.integers(0, few)))],
        scattered=[
            Test("payment", "=", 2),
            Test("from_zone", "=", 132),
            Test("passengers", "=", 6),
            Test("flag", "=", "Y"),
        ],
        members=[Test("driver", "in", some(random, few))],
        prefix=[Test("medallion", "like", "12%")],
        counted=[Test("distance", ">", 10)],
    )


def ledger(random: Random, rows: int) -> Shape:
    """Decimals of 18 and of 38 digits."""
    few = max(rows // 50, 1)
    table = pa.table(
        {
            "entry": pa.array(np.arange(rows)),
            "account": numbers(keys(random, rows, few), pa.int64()),
            "day": numbers(17_000 + np.sort(random.integers(0, 900, rows)), pa.int32()).cast(pa.date32()),
            "currency": taken([word[:3].upper() for word in WORDS], random, rows),
            "branch": numbers(random.integers(0, 1000, rows), pa.int32()),
            "amount": decimals(random.integers(-(10**11), 10**11, rows), pa.decimal128(18, 2)),
            "fee": decimals(random.integers(0, 5000, rows), pa.decimal128(18, 2)),
            "balance": decimals(random.integers(-(10**15), 10**15, rows), pa.decimal128(18, 4)),
            "exact": decimals(random.integers(-(10**18), 10**18, rows), pa.decimal128(38, 10)),
            "rate": decimals(random.integers(10**8, 10**11, rows), pa.decimal128(38, 10)),
            "reference": sentences(random, rows, 12, 20),
        }
    )
    return Shape(
        table,
        single="amount",
        three=["account", "amount", "balance"],
        key=[Test("account", "=", int(random.integers(0, few)))],
        scattered=[Test("currency", "=", "ORD"), Test("branch", "<", 20), Test("account", "<", few // 9)],
        members=[Test("account", "in", some(random, few))],
        prefix=[Test("reference", "like", "12%")],
        counted=[Test("branch", "<", 20)],
    )


def bodies(random: Random, rows: int) -> Shape:
    """JSON texts of 1 to 4 kB."""
    rows = max(rows // 50, 1)
    few = max(rows // 50, 1)

    def body(row: int) -> str:
        picks = random.integers(0, len(WORDS), 60).tolist()
        lines = [
            {
                "name": WORDS[pick],
                "count": pick * row % 977,
                "note": " ".join(WORDS[n] for n in picks[at : at + 5]),
            }
            for at, pick in enumerate(picks[: int(random.integers(12, 45))])
        ]
        return json.dumps({"id": row, "lines": lines})

    table = pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "topic": taken(WORDS, random, rows),
            "sender": numbers(keys(random, rows, few), pa.int64()),
            "size": numbers(random.integers(0, 1000, rows), pa.int32()),
            "body": pa.array([body(row) for row in range(rows)]),
        }
    )
    return Shape(
        table,
        single="body",
        three=["id", "topic", "sender"],
        key=[Test("sender", "=", int(random.integers(0, few)))],
        scattered=[
            Test("topic", "=", "order"),
            Test("size", "<", 50),
            Test("sender", "<", max(few // 20, 1)),
        ],
        members=[Test("sender", "in", some(random, few))],
        prefix=[Test("body", "like", '{"id": 12%')],
        counted=[Test("topic", "=", "order")],
    )


SHAPES: dict[str, Callable[[Random, int], Shape]] = {
    "orders": orders,
    "weblog": weblog,
    "events": events,
    "sparse": sparse,
    "taxi": taxi,
    "ledger": ledger,
    "bodies": bodies,
}
