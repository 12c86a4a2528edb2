"""Random tables: columns of all types with the values that go wrong.

Spark's ORC writer or the connector writes them. A table is a function of its seed. Its values are SQL
expressions of the row's number, so that Spark makes them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

ROWS = (0, 1, 7, 900, 5_000, 30_000)

CLOCK_CHANGES = (
    "timestamp_seconds(element_at(array(1711846800, 1710054000, 1712415600, 1729990800, 1730613600, "
    "1728142200), cast({h} % 6 + 1 as int)) + {h} div 7 % 14400 - 7200)"
)
"""Times within two hours of a change of clocks in Berlin, New York or on Lord Howe Island."""

TYPES = {
    "boolean": ("{h} % 2 = 0", "{h} % 17 < 16"),
    "tinyint": ("cast({h} % 256 - 128 as tinyint)", "cast({h} % 3 as tinyint)"),
    "smallint": ("cast({h} % 65536 - 32768 as smallint)", "cast({id} % 9 as smallint)"),
    "int": (
        "cast({h} % 4294967296 - 2147483648 as int)",
        "cast({id} as int)",
        "cast({h} % 40 as int)",
        "case {h} % 9 when 0 then -2147483648 when 1 then 2147483647 else cast({id} * 3 as int) end",
    ),
    "bigint": (
        "{id} * 1000003",
        "{h} % 50",
        "case {h} % 9 when 0 then -9223372036854775807L - 1L when 1 then 9223372036854775807L else {id} end",
        "xxhash64({id}, {salt})",
    ),
    "float": (
        "case {h} % 13 when 0 then float('NaN') when 1 then float(-0.0) when 2 then float(0.0) "
        "when 3 then float('Infinity') when 4 then float('-Infinity') else cast({h} % 1000 / 8 as float) end",
    ),
    "double": (
        "case {h} % 13 when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D "
        "when 3 then double('Infinity') when 4 then 4.9E-324D else {h} % 1000 / 7.0D end",
        "{id} / 3.0D",
    ),
    "decimal(9,2)": ("cast({h} % 1000000 - 500000 as decimal(9,2))", "cast({h} % 20 / 4 as decimal(9,2))"),
    "decimal(18,6)": ("cast(({h} % 1000000007 - 7) / 1000 as decimal(18,6))",),
    "decimal(38,10)": ("cast(xxhash64({id}, {salt}) as decimal(38,10)) * cast(1000.5 as decimal(5,1))",),
    "decimal(5,5)": ("cast(({h} % 99999) / 100000 as decimal(5,5))",),
    "string": (
        "concat('k', {h} % 20)",
        "concat_ws('/', {id}, sha1(string({h})))",
        "case {h} % 9 when 0 then '' when 1 then ' ' when 2 then 'a ' when 3 then 'ä\\u0301€𝄞' "
        "when 4 then 'A' when 5 then '%_' else concat('v', {id} div 50) end",
        "repeat(char(97 + {h} % 26), cast({h} % 300 as int))",
        "lpad(string({id}), 9, '0')",
    ),
    "binary": ("cast(concat('b', {h} % 30) as binary)", "unhex(sha1(string({h})))"),
    "date": (
        "date_add(date'1970-01-01', cast({h} % 40000 - 20000 as int))",
        "case {h} % 9 when 0 then date'0001-01-01' when 1 then date'9999-12-31' when 2 then date'1582-10-04' "
        "else date_add(date'2020-01-01', cast({id} div 100 as int)) end",
        "date_add(date'1582-10-15', cast({h} % 60000 - 40000 as int))",
    ),
    "timestamp": (
        "timestamp_micros({h} * 1009 - 700000000000000)",
        "case {h} % 9 when 0 then timestamp'0001-01-02 00:00:00 UTC' when 1 then timestamp'9999-12-30 UTC' "
        "when 2 then timestamp'1969-12-31 23:59:59.999999 UTC' when 3 then timestamp'1899-12-31 UTC' "
        "else timestamp_seconds(1700000000 + {id} * 60) end",
        CLOCK_CHANGES,
        "timestamp_seconds({h} % 30000000000 - 33000000000)",
    ),
    "timestamp_ntz": (
        "cast(timestamp_micros({h} * 1009 - 700000000000000) as timestamp_ntz)",
        "timestamp_ntz'2024-03-31 01:59:59' + make_dt_interval(0, cast({id} % 5000 as int))",
    ),
    "interval day to second": ("make_dt_interval(cast({h} % 300 - 150 as int), 3, 0, 1.5)",),
    "interval year to month": ("make_ym_interval(cast({h} % 300 - 150 as int), 3)",),
}
KEYS = {
    "int": "cast({h} % 4 as int)",
    "string": "elt(cast({h} % 5 as int) + 1, 'a b', 'x/y', 'A', '%', 'ü')",
    "date": "date_add(date'2024-01-01', cast({h} % 3 as int))",
    "bigint": "{h} % 3 + 5000000000",
    "decimal(5,1)": "cast({h} % 3 / 2 as decimal(5,1))",
    "boolean": "{h} % 2 = 0",
    "tinyint": "cast({h} % 3 - 1 as tinyint)",
    "smallint": "cast({h} % 3 * 300 as smallint)",
    "double": "elt(cast({h} % 4 + 1 as int), 0.5D, -0.0D, 1e20D, double('NaN'))",
    "timestamp_ntz": "timestamp_ntz'2024-03-31 01:30:00' + make_dt_interval(0, cast({h} % 3 as int))",
}
"""Types of partition columns."""


@dataclass(frozen=True)
class Column:
    """A column, and a field of a struct if its name has a dot."""

    name: str
    type: str
    is_key: bool = False


@dataclass
class Table:
    """A table on disk, and what queries need to know about it."""

    path: Path
    columns: list[Column]
    rows: int
    writers: list[str]
    samples: dict[str, list[str]] = field(default_factory=dict)
    """Some values of each column of a plain type, as text."""
    fields: list[Column] = field(default_factory=list)
    """Fields of structs, at any depth."""
    is_sensitive: bool = False
    """Whether some columns differ only in the case of their names, and `spark.sql.caseSensitive` is on."""

    def plain(self) -> list[Column]:
        return [column for column in self.columns + self.fields if column.type in TYPES or column.is_key]


def expression(template: str, salt: int) -> str:
    return template.format(h=f"pmod(xxhash64(id, {salt}), 1099511627776)", id="id", salt=salt)


class Maker:
    """Makes the table of a seed."""

    def __init__(
        self, spark: SparkSession, seed: int, by: str | None = None, keys: tuple[str, ...] = tuple(KEYS)
    ) -> None:
        self.spark, self.seed, self.by, self.keys = spark, seed, by, keys
        self.random = random.Random(seed)

    def with_nulls(self, made: str, salt: int) -> str:
        rate = self.random.choice((0, 0, 2, 5, 50, 1))
        if rate == 0:
            return made
        if rate == 1:  # all or nearly all
            return f"if(id = 3, {made}, null)"
        return f"if(pmod(xxhash64(id, {salt + 1}), {rate}) = 0, null, {made})"

    def plain(self, only: str | None = None) -> tuple[str, str]:
        """A type and an expression of it."""
        kinds = [name for name in TYPES if not name.startswith("interval") or only is None]
        name = self.random.choice(kinds) if only is None else only
        salt = self.random.randrange(10**6)
        return name, self.with_nulls(expression(self.random.choice(TYPES[name]), salt), salt)

    def nested(self, depth: int) -> tuple[str, str]:
        kind = self.random.choice(("struct", "array", "map", "plain", "struct"))
        if depth == 0 or kind == "plain":
            return self.plain(self.random.choice([name for name in TYPES if not name.startswith("interval")]))
        salt = self.random.randrange(10**6)
        inner, made = self.nested(depth - 1)
        count = f"cast(pmod(xxhash64(id, {salt}), 4) as int)"
        if kind == "array":
            whole = f"slice(array({made}, null, {made}), 1, {count})"
            return f"array<{inner}>", self.with_nulls(whole, salt)
        if kind == "map":
            whole = f"map('k', {made}, concat('n', id % 3), {made})"
            return f"map<string,{inner}>", self.with_nulls(whole, salt)
        other, second = self.plain(self.random.choice(("int", "string", "date", "double")))
        whole = f"named_struct('x', {made}, 'Y', {second})"
        return f"struct<x:{inner},Y:{other}>", self.with_nulls(whole, salt)

    def columns(self) -> list[tuple[str, str, str]]:
        """Names, types and expressions."""
        made = []
        for at in range(self.random.randrange(3, 12)):
            kind, of = self.nested(2) if self.random.random() < 0.3 else self.plain()
            made.append((f"{self.random.choice('cDx')}{at}", kind, of))
        return made

    def write(self, frame: DataFrame, path: Path, keys: list[str]) -> str:
        by = self.by or self.random.choice(("orc", "orc", "coldframe"))
        kinds = " ".join(kind.dataType.simpleString() for kind in frame.schema)
        if "interval" in kinds:
            by = "orc"  # the connector does not write them
        options = {
            "orc": {
                "compression": self.random.choice(("none", "snappy", "zstd", "zlib")),
                "orc.stripe.size": str(self.random.choice((65536, 1 << 20, 67108864))),
                "orc.row.index.stride": str(self.random.choice((1000, 10_000))),
                "orc.dictionary.key.threshold": self.random.choice(("0", "0.8", "1")),
                "orc.bloom.filter.columns": self.random.choice(("", ",".join(frame.columns[:2]))),
            },
            "coldframe": {
                "codec": self.random.choice(("none", "snappy", "zstd", "zlib")),
                "stripe_rows": str(self.random.choice((1000, 7000, 100_000))),
            },
        }[by]
        parts = self.random.choice((1, 1, 2, 5))
        parted = frame.repartition(parts)
        if "map<" not in frame.schema.fields[0].dataType.simpleString():
            parted = parted.sortWithinPartitions(frame.columns[0])
        writer = parted.write.format(by)
        writer.options(**options).mode("append").partitionBy(*keys).save(str(path))
        return by

    def make(self, path: Path) -> Table:
        chosen, rows = self.columns(), self.random.choice(ROWS)
        is_sensitive = self.random.random() < 0.12 and self.by is None
        self.spark.conf.set("spark.sql.caseSensitive", str(is_sensitive).lower())
        if is_sensitive:
            chosen += [(name.swapcase(), *self.plain()) for name, _, _ in chosen[:2]]
        keys = []
        for at in range(self.random.choice((0, 0, 1, 1, 2))):
            kind = self.random.choice(self.keys)
            salt = self.random.randrange(10**6)
            of = expression(KEYS[kind], salt)
            if self.random.random() < 0.3:
                of = f"if(pmod(xxhash64(id, {salt + 1}), 4) = 0, null, {of})"
            keys.append((f"p{at}", kind, of))
        writers = []
        for part in range(self.random.choice((1, 1, 2))):
            # Later files may lack columns, or have them in another order.
            own = list(chosen)
            if part and self.random.random() < 0.5:
                own = own[:1] + self.random.sample(own[1:], len(own) - 1)[: max(1, len(own) - 2)]
            source = self.spark.range(part * rows, (part + 1) * rows)
            frame = source.selectExpr(*(f"{of} as {name}" for name, _, of in own + keys))
            writers.append(self.write(frame, path, [name for name, _, _ in keys]))
        columns = [Column(name, kind) for name, kind, _ in chosen]
        columns += [Column(name, kind, is_key=True) for name, kind, _ in keys]
        return Table(path, columns, rows, writers, is_sensitive=is_sensitive)


def fields_of(columns: list[StructField], above: str = "") -> list[Column]:
    """The fields of structs within columns, with their types."""
    found = []
    for each in columns:
        name = above + each.name
        if above:
            found.append(Column(name, each.dataType.simpleString()))
        if isinstance(each.dataType, StructType):
            found += fields_of(each.dataType.fields, f"{name}.")
    return found


def add_samples(table: Table, frame: DataFrame) -> None:
    """Looks up fields of structs, and values that filters may compare with."""
    table.fields = fields_of(frame.schema.fields)
    asked = [column.name for column in table.plain() if column.type != "binary"]
    texts = [f"collect_set(cast({name} as string)) v{at}" for at, name in enumerate(asked)]
    if not texts:
        return
    [row] = frame.limit(2000).selectExpr(*texts).collect()
    for at, name in enumerate(asked):
        table.samples[name] = sorted(row[at])[:: max(1, len(row[at]) // 8)][:8]
