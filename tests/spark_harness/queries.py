"""Random queries of a table. `{t}` is the table, which each reader has under another name."""

from __future__ import annotations

import random

from tables import Column, Table

NUMBERS = ("tinyint", "smallint", "int", "bigint")
ORDERED = (*NUMBERS, "string", "date", "timestamp", "timestamp_ntz", "boolean", "binary")
VALUES = {
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "2024-03-31"),
    "boolean": "true",
    "decimal(5,5)": "0.5",
}
"""What to compare with a column that has no values."""
SETTINGS = {
    "spark.sql.session.timeZone": ("UTC", "America/Los_Angeles", "Asia/Kolkata"),
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.cbo.enabled": ("false", "true"),
    "spark.sql.autoBroadcastJoinThreshold": ("10m", "-1"),
    "spark.sql.sources.v2.bucketing.enabled": ("true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.codegen.wholeStage": ("true", "true", "false"),
    "spark.sql.orc.enableVectorizedReader": ("true", "true", "false"),
    "spark.sql.orc.filterPushdown": ("true", "false"),
    "spark.sql.optimizer.nestedSchemaPruning.enabled": ("true", "false"),
    "spark.sql.orc.aggregatePushdown": ("false", "true"),
    "spark.sql.files.maxPartitionBytes": ("128m", "64k"),
}


def settings(choice: random.Random) -> dict[str, str]:
    """The session's settings for a query."""
    return {name: choice.choice(values) for name, values in SETTINGS.items()}


class Queries:
    """Makes queries with the choices of a seed."""

    def __init__(self, table: Table, choice: random.Random, *, has_files: bool = True) -> None:
        self.table, self.random = table, choice
        self.has_files = has_files

    def column(self, *kinds: str) -> Column | None:
        fitting = [column for column in self.table.plain() if not kinds or column.type in kinds]
        return self.random.choice(fitting) if fitting else None

    def paths(self) -> list[tuple[str, str]]:
        """Columns and what is within them, with their types."""
        paths = []
        for column in self.table.columns + self.table.fields:
            paths.append((column.name, column.type))
            if column.type.startswith("array<"):
                paths.append((f"size({column.name})", "int"))
                if column.type.startswith("array<struct<"):
                    paths.append((f"{column.name}.Y", "?"))
            elif column.type.startswith("map<"):
                paths.append((f"{column.name}['k']", "?"))
                paths.append((f"size({column.name})", "int"))
        return paths

    def literal(self, column: Column) -> str:
        texts = self.table.samples.get(column.name) or [VALUES.get(column.type, "1")]
        text = self.random.choice(texts)
        if self.random.random() < 0.15 and column.type in NUMBERS:
            return self.random.choice(("0", "-1", "100", "2.5", "3000000000", "1e3", "'7'"))
        if self.random.random() < 0.15 and column.type in ("double", "float"):
            return self.random.choice(("0.0D", "-0.0D", "double('NaN')", "0", "1", "float(0.1)", "1.5"))
        if column.type == "string":
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if column.type == "binary":
            return self.random.choice(("X'6231'", "X''", "cast('b2' as binary)"))
        if column.type.startswith("interval"):
            return column.name
        return f"cast('{text}' as {column.type})"

    def comparison(self) -> str:
        column = self.column()
        if column is None or self.random.random() < 0.2:
            return self.of_nested()
        name, kind = column.name, column.type
        literal = self.literal(column)
        choice = self.random.randrange(14)
        if kind == "boolean" and choice < 4:
            return self.random.choice((name, f"not {name}", f"{name} = false"))
        if choice < 6:
            operator = self.random.choice(("=", "<", "<=", ">", ">=", "<>", "<=>", "!="))
            return (
                f"{name} {operator} {literal}"
                if self.random.random() < 0.8
                else f"{literal} {operator} {name}"
            )
        if choice == 6 and self.random.random() < 0.15:
            return self.long_list(column)
        if choice == 6:
            values = ", ".join([literal, *(self.literal(column) for _ in range(self.random.randrange(12)))])
            return f"{name} {self.random.choice(('', 'not '))}in ({values})"
        if choice == 7:
            return f"{name} is {self.random.choice(('', 'not '))}null"
        if choice == 8:
            return f"{name} between {literal} and {self.literal(column)}"
        if kind == "string":
            text = (
                self.random.choice(self.table.samples.get(name) or ["a"])[:3]
                .replace("'", "")
                .replace("\\", "")
            )
            pattern = self.random.choice((f"{text}%", f"%{text}", f"%{text}%", text, f"{text[:1]}_%"))
            return self.random.choice(
                (
                    f"{name} like '{pattern}'",
                    f"not {name} like '{pattern}'",
                    f"startswith({name}, '{text}')",
                    f"contains({name}, '{text}')",
                    f"upper({name}) = upper({literal})",
                    f"length({name}) > 3",
                    f"substring({name}, 1, 2) = '{text[:2]}'",
                    f"{name} > {literal} or {name} is null",
                )
            )
        if kind in ("float", "double"):
            return self.random.choice(
                (f"isnan({name})", f"{name} + 1 > {literal}", f"abs({name}) < 5", f"{name} = {name}")
            )
        if kind in NUMBERS:
            return self.random.choice(
                (f"cast({name} as bigint) % 3 = 1", f"{name} % 2 = 0", f"cast({name} as double) > 5")
            )
        if kind.startswith("decimal"):
            return self.random.choice(
                (f"{name} > 1", f"{name} < 0.5", f"{name} * 2 > 3", f"{name} in (0, 1, 2.5)")
            )
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return self.random.choice(
                (
                    f"year({name}) > 1990",
                    f"{name} > date'2000-01-01'",
                    f"cast({name} as date) = {literal}",
                    f"{name} < date'1582-10-15'",
                    f"{name} between date'1500-02-28' and date'1700-03-01'",
                    f"{name} >= timestamp'2024-03-31 02:30:00'",
                    f"date_trunc('month', {name}) = timestamp'2024-10-01'",
                )
            )
        other = self.column(kind)
        return f"{name} = {other.name}" if other else f"{name} is not null"

    def long_list(self, column: Column) -> str:
        """`in` with thousands of values."""
        start, step = self.random.choice((-3, 0, 1000)), self.random.choice((1, 7, 1000003))
        made = {
            "bigint": "{}",
            "int": "{}",
            "string": "'v{}'",
            "date": "date_add(date'2020-01-01', {})",
            "timestamp": "timestamp_seconds(1700000000 + {} * 60)",
            "double": "{} / 3.0D",
        }.get(column.type)
        if made is None:
            return f"{column.name} is not null"
        values = ", ".join(made.format(start + at * step) for at in range(self.random.choice((300, 2500))))
        return f"{column.name} {self.random.choice(('', 'not '))}in ({values}, {self.literal(column)})"

    def of_nested(self) -> str:
        name, kind = self.random.choice(self.paths())
        if kind == "int":
            operator = self.random.choice((">", "=", "<=", "<>"))
            return f"{name} {operator} {self.random.choice(('0', '1', '2', '40'))}"
        if kind == "string":
            return self.random.choice(
                (f"{name} = 'k3'", f"{name} > 'k'", f"{name} like 'v%'", f"{name} is null")
            )
        return f"{name} is {self.random.choice(('', 'not '))}null"

    def condition(self, depth: int = 2) -> str:
        choice = self.random.random()
        if depth == 0 or choice < 0.45:
            return self.comparison()
        if choice < 0.55:
            return f"not ({self.condition(depth - 1)})"
        word = self.random.choice(("and", "or", "and"))
        return f"({self.condition(depth - 1)}) {word} ({self.condition(depth - 1)})"

    def where(self, rate: float = 0.75) -> str:
        return f" where {self.condition()}" if self.random.random() < rate else ""

    def aggregates(self) -> list[str]:
        made = ["count(*)"]
        for _ in range(self.random.randrange(1, 4)):
            name, kind = self.random.choice(self.paths())
            made.append(f"count({name})")
            if kind in ORDERED or kind in ("double", "float") or kind.startswith("decimal"):
                made.append(f"{self.random.choice(('min', 'max'))}({name})")
            if kind in ("tinyint", "smallint", "int") or kind == "decimal(9,2)":
                made.append(f"sum({name})")
            if kind in ORDERED:
                made.append(f"count(distinct {name})")
        return made

    def make(self) -> str:
        """A query whose answer does not depend on the order of rows."""
        kinds = (
            self.select, self.select, self.select, self.whole, self.whole, self.grouped, self.grouped,
            self.top, self.top, self.limited, self.joined, self.joined, self.distinct, self.united,
            self.of_files, self.exploded, self.below, self.ranked, self.with_metadata, self.starred,
        )  # fmt: skip
        kind = self.random.choice(kinds)
        if kind in (self.of_files, self.with_metadata) and not self.has_files:
            kind = self.select
        return kind()

    def select(self) -> str:
        paths = self.paths()
        chosen = self.random.sample(paths, self.random.randrange(1, min(5, len(paths)) + 1))
        names = "*" if self.random.random() < 0.15 else ", ".join(name for name, _ in chosen)
        return f"select {names} from {{t}}{self.where()}"

    def whole(self) -> str:
        return f"select {', '.join(self.aggregates())} from {{t}}{self.where(0.5)}"

    def grouped(self) -> str:
        keys = (
            [column.name for column in self.table.columns if column.is_key]
            if self.random.random() < 0.5
            else []
        )
        other = self.column()
        names = keys or ([other.name] if other else ["1"])
        having = " having count(*) > 1" if self.random.random() < 0.3 else ""
        return (
            f"select {', '.join(names)}, {', '.join(self.aggregates())} from {{t}}{self.where(0.4)} "
            f"group by {', '.join(names)}{having}"
        )

    def top(self) -> str:
        columns = [column for column in (self.column() for _ in range(2)) if column]
        if not columns:
            return self.limited()
        names = [column.name for column in columns]
        order = ", ".join(
            f"{name} {self.random.choice(('', 'desc', 'asc nulls last', 'desc nulls first'))}"
            for name in names
        )
        limit = self.random.choice((1, 3, 10, 1000))
        return f"select {', '.join(names)} from {{t}}{self.where(0.3)} order by {order} limit {limit}"

    def limited(self) -> str:
        name = self.random.choice(self.paths())[0]
        limit = self.random.choice((0, 1, 9, 5000))
        return f"select count(*) from (select {name} from {{t}}{self.where(0.3)} limit {limit})"

    def joined(self) -> str:
        column = self.column(*ORDERED)
        if column is None:
            return self.whole()
        name = column.name
        values = ", ".join(f"({at}, {self.literal(column)})" for at in range(self.random.randrange(1, 6)))
        small = f"(select * from values {values} s(n, k))"
        kind = self.random.choice(("join", "left semi join", "left anti join", "left join"))
        if self.random.random() < 0.5:
            small = f"(select distinct {name} k from {{t}} where {self.comparison()} order by 1 limit 5)"
        outer = self.random.choice(self.paths())[0]
        return (
            f"select count(*), count({self._of(outer, 'f')}) from {{t}} f {kind} {small} s on f.{name} = s.k"
        )

    def _of(self, path: str, alias: str) -> str:
        return path.replace("size(", f"size({alias}.") if path.startswith("size(") else f"{alias}.{path}"

    def distinct(self) -> str:
        column = self.column()
        return f"select distinct {column.name} from {{t}}{self.where(0.4)}" if column else self.whole()

    def united(self) -> str:
        name = self.random.choice(self.table.columns).name
        return f"select {name} from {{t}}{self.where(1)} union all select {name} from {{t}}{self.where(1)}"

    def of_files(self) -> str:
        what = self.random.choice(("input_file_name()", "regexp_extract(input_file_name(), '[0-9]+', 0)"))
        return f"select {what} f, count(*) from {{t}}{self.where(0.4)} group by 1"

    def with_metadata(self) -> str:
        field = self.random.choice(("file_path", "file_name", "file_size", "file_modification_time"))
        if self.random.random() < 0.5:
            values = ", ".join(self.aggregates())
            return f"select _metadata.{field}, {values} from {{t}}{self.where(0.4)} group by 1"
        name = self.random.choice(self.paths())[0]
        condition = f"{self.condition()} and _metadata.file_size > 400"
        return f"select {name}, _metadata.{field} from {{t}} where {condition}"

    def starred(self) -> str:
        """A join with few rows of the same table by a partition column, which Spark may prune by."""
        keys = [column.name for column in self.table.columns if column.is_key]
        if not keys:
            return self.joined()
        key, outer = self.random.choice(keys), self.random.choice(self.paths())[0]
        few = f"(select {key} k, count(*) n from {{t}} where {self.condition()} group by 1)"
        return (
            f"select s.n, count(*), count({self._of(outer, 'f')}) from {{t}} f join {few} s on f.{key} = s.k "
            f"{self.random.choice(('', 'where s.n > 1 '))}group by 1"
        )

    def exploded(self) -> str:
        lists = [column for column in self.table.columns if column.type.startswith("array<")]
        if not lists:
            return self.select()
        view = f"lateral view explode({self.random.choice(lists).name}) x as e"
        return f"select count(*), count(e) from {{t}} {view}{self.where(0.3)}"

    def below(self) -> str:
        column = self.column(*ORDERED)
        if column is None:
            return self.select()
        name = column.name
        inner = f"select {self.random.choice(('max', 'min'))}({name}) from {{t}}{self.where(0.4)}"
        return self.random.choice(
            (
                f"select count(*) from {{t}} where {name} = ({inner})",
                f"select count(*) from {{t}} where {name} in ({inner})",
                f"select count(*) from {{t}} a where exists ("
                f"select 1 from {{t}} b where a.{name} = b.{name} and {self.comparison_of('b')})",
            )
        )

    def comparison_of(self, alias: str) -> str:
        column = self.column()
        return f"{alias}.{column.name} = {self.literal(column)}" if column else "true"

    def ranked(self) -> str:
        by, of = self.column(*ORDERED), self.column(*ORDERED)
        if by is None or of is None:
            return self.select()
        return (
            f"select k, r, count(*) from (select {by.name} k, "
            f"rank() over (partition by {by.name} order by {of.name}) r "
            f"from {{t}}{self.where(0.3)}) where r < 4 group by 1, 2"
        )
