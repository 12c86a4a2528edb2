"""A filter never changes a value or loses a row against the full read.

Every fixture is read completely once. Then filters of each kind, made of the file's values, are pushed into
the reader. They must give exactly the rows that pyarrow selects from the full read, in order: for any
projection, split, limit and batch size, with and without pruning.
"""

from __future__ import annotations

import itertools
import os
import random
from dataclasses import dataclass
from typing import Any

import generated_filters
import pyarrow as pa
import pytest
from generated_filters import Test
from truth import DATA, Case, cases, corpus, plain_values

import coldframe as cf
from coldframe import _coldframe
from coldframe.filters import bind, parse

# The number of filters per file, and the maximum number of its rows.
FILTERS = int(os.environ.get("COLDFRAME_FILTERS", "12"))
SEED = int(os.environ.get("COLDFRAME_SEED", "1"))
MAX_ROWS = 100_000
# The maximum number of splits that each filter reads.
MAX_SPLITS = 32

FIXTURES = [case for manifest in sorted(DATA.glob("*/files/MANIFEST.json")) for case in cases(manifest)]
CORPUS = [
    case
    for manifest in corpus()
    if manifest.parent.name in _coldframe.formats()
    for case in cases(manifest)
    if not case.entry.get("expect") and str(case.entry.get("truth")).endswith(".parquet")
]


@dataclass
class Law:
    """An open file, all of its rows, and a random generator."""

    file: cf.File
    full: Any  # pyarrow.Table
    dice: random.Random

    def splits_tile(self) -> None:
        """Splits and byte ranges give each row once."""
        everything = list(range(self.full.num_rows))
        size = self.dice.choice(self._sizes())
        parts = [split.to_batches().read_all() for split in self.file.splits(size)]
        self._check(parts, self.full, everything, f"splits of {size} bytes")
        tree = self.file.inspect()
        # A table with all its rows in the log has no byte ranges.
        length = max(1, tree["offset"] + tree["length"])
        cuts = sorted({0, length, *(self.dice.randrange(length + 1) for _ in range(4))})
        tiles = list(itertools.pairwise(cuts))
        try:
            parts = [self.file.to_batches(split=(a, b - a)).read_all() for a, b in tiles]
        except cf.UnsupportedError:
            return  # a table of many files has no byte ranges
        self._check(parts, self.full, everything, f"byte ranges {cuts}")

    def hold(self, test: Test) -> None:
        """Checks one filter in every way to read."""
        file, passing = self.file, test.rows(self.full)
        assert file.count(test.filter) == len(passing), test
        columns = self._columns(test)
        all_of_them = self.full if columns is None else file.read(columns)
        batch_size = self.dice.choice([3, 1000, 65536] if self.full.num_rows < 5000 else [1000, 65536])
        what = f"{test}, columns {columns}, batch_size {batch_size}"

        got = file.to_batches(columns, filter=test.filter, batch_size=batch_size)
        self._check(list(self._tables(got, batch_size)), all_of_them, passing, what)
        limit = self.dice.choice([0, 1, 10])
        got = file.read(columns, filter=test.filter, limit=limit)
        self._check([got], all_of_them, passing[:limit], f"{what}, limit {limit}")
        size = self._split_bytes()
        parts = [
            split.to_batches(columns, filter=test.filter, batch_size=batch_size).read_all()
            for split in file.splits(size)
        ]
        self._check(parts, all_of_them, passing, f"{what}, splits of {size} bytes")
        for on_error in ("skip", "null"):
            got = file.read(columns, filter=test.filter, on_error=on_error)
            self._check([got], all_of_them, passing, f"{what}, {on_error}")
            assert not file.damage, what
        bound = bind(parse(test.filter), file.schema)
        if bound.exact:
            got = pa.table(file._raw.scan(columns=columns, predicate=bound.predicate, prune=False))
            self._check([got], all_of_them, passing, f"{what}, not pruned")

    def _sizes(self) -> list[int]:
        """Sizes of splits in bytes."""
        return [1 if self.full.num_rows < 5000 else 100_000, 1000, 1 << 20]

    def _split_bytes(self) -> int:
        """A size that gives few splits: each split of a directory opens the directory again."""
        sizes = [size for size in self._sizes() if len(self.file.splits(size)) <= MAX_SPLITS]
        return self.dice.choice(sizes or [1 << 20])

    @staticmethod
    def _tables(reader: Any, limit: int) -> Any:
        for batch in reader:
            assert 0 < batch.num_rows <= limit
            yield pa.Table.from_batches([batch], reader.schema)
        yield pa.Table.from_batches([], reader.schema)

    def _columns(self, test: Test) -> list[str] | None:
        """A random projection."""
        names = list(dict.fromkeys(self.full.column_names))
        some = self.dice.sample(names, self.dice.randrange(min(len(names), 6) + 1))
        nested = [column.path for column in generated_filters.columns(self.full) if len(column.steps) > 1]
        wanted = [
            None,
            [],
            some,
            [*some, test.column],
            [test.column.split(".")[0]] if test.column not in names else [test.column],
            some + some[:1],
            self.dice.sample(nested, min(2, len(nested))),
        ]
        return self.dice.choice(wanted)

    def _check(self, parts: list[Any], base: Any, passing: list[int], what: str) -> None:
        """Checks that the parts have these rows of `base`, with its columns."""
        for part in parts:
            part.validate(full=True)
            assert part.schema.equals(base.schema), f"{what}: {part.schema} for {base.schema}"
        assert sum(part.num_rows for part in parts) == len(passing), what
        if len(base.schema) == 0 or not passing:
            return
        got = pa.concat_tables(parts)
        try:
            if got.equals(base.take(passing)):
                return
        except pa.ArrowNotImplementedError:
            pass  # a union column
        rows = _rows(base)
        assert _rows(got) == [rows[at] for at in passing], what


def _rows(table: Any) -> list[tuple[Any, ...]]:
    """The rows in a form in which NaN equals itself."""
    return list(zip(*(plain_values(column, column.type) for column in table.columns), strict=True))


def hold(source: Any, options: dict[str, Any], seed: int) -> None:
    """Checks the law on one file."""
    try:
        file = cf.open(source, **options)
        full = file.read()
    except cf.ColdframeError:
        return  # other tests cover files that cannot be read completely
    if not 0 < full.num_rows <= MAX_ROWS:
        return
    law = Law(file, full, random.Random(seed))
    law.splits_tile()
    for test in generated_filters.tests(full, law.dice, FILTERS):
        law.hold(test)


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case.name)
def test_filters_hold_on_a_fixture(case: Case) -> None:
    for source in case.sources():
        hold(source, case.options, SEED)


@pytest.mark.skipif("COLDFRAME_FILTERS" not in os.environ, reason="asked for by COLDFRAME_FILTERS=number")
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_filters_hold_on_a_file_of_the_corpus(case: Case) -> None:
    for source in case.sources():
        hold(source, case.options, SEED)
