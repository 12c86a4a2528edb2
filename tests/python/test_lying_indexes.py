"""The law of filters with lying indexes: no filter, split, limit or look-up gives a wrong row.

An index that lies is found where it is used. The read is then right, or it is an error.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from typing import Any

import generated_filters
import pyarrow as pa
import pytest
from lying_indexes import block_copies, orc_copies
from truth import DATA, Case, cases, corpus, plain_values

import coldframe as cf

ROUNDS = int(os.environ.get("COLDFRAME_INDEXES", "4"))
SEED = int(os.environ.get("COLDFRAME_SEED", "1"))
MAX_BYTES, MAX_ROWS = 400_000, 20_000
FORMATS = ("orc", "hfile", "cfile")


def files() -> Iterator[Case]:
    manifests = [DATA / format / "files" / "MANIFEST.json" for format in FORMATS]
    manifests += [manifest for manifest in corpus() if manifest.parent.name in FORMATS]
    for manifest in manifests:
        for case in cases(manifest) if manifest.exists() else ():
            plain = not ({"expect", "optional", "slice", "unpack"} & case.entry.keys())
            # In a file that is damaged already, rows need not be sorted.
            plain = plain and "corrupt" not in case.path.parts
            if plain and isinstance(case.entry["file"], str) and case.path.is_file():
                yield case


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    columns = [plain_values(column, column.type) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def python_values(column: Any) -> list[Any]:
    """The values; none if Python has no object for one: its dates end with the year 9999."""
    try:
        return list(column.to_pylist())
    except OverflowError:
        return []


class Judge:
    """Compares reads of a copy with the full read of the healthy file."""

    def __init__(self, full: Any, options: dict[str, Any], dice: random.Random) -> None:
        self.full, self.options, self.dice = full, options, dice
        self.rows = rows_of(full)
        self.errors = self.reads = 0

    def check(self, copy: bytes, what: str) -> None:
        try:
            file = cf.open(copy, **self.options)
            if file.schema != self.full.schema:
                return
        except cf.ColdframeError:
            return
        for test in generated_filters.tests(self.full, self.dice, 2):
            passing = test.rows(self.full)
            want = [self.rows[at] for at in passing]
            self.same(lambda t=test: rows_of(file.read(filter=t.filter)), want, f"{what}: {test}")
            limit = self.dice.randrange(1, 40)
            self.same(
                lambda t=test, n=limit: rows_of(file.read(filter=t.filter, limit=n)),
                want[:limit],
                f"{what}: {test}, limit {limit}",
            )
        size = self.dice.choice([1, 500, 4000])
        self.same(lambda: self.split(file, size), self.rows, f"{what}: splits of {size}")
        if file.format == "hfile" and self.rows:
            self.look_ups(file, what)
        if file.format == "cfile" and (values := python_values(self.full["value"])):
            value = self.dice.choice(values)
            if value is not None and value == value:
                ordinals = [at for at, own in enumerate(values) if own == value]
                self.same(
                    lambda: file.lookup(value)["ordinal"].to_pylist(), ordinals, f"{what}: lookup {value!r}"
                )

    def look_ups(self, file: Any, what: str) -> None:
        keys = self.full[0].to_pylist()
        key = self.dice.choice(keys)
        name = key if isinstance(key, bytes) else key.encode()
        wanted = [row for row, own in zip(self.rows, keys, strict=True) if own == key]
        self.same(lambda: rows_of(file.get(name)), wanted, f"{what}: get {key!r}")
        some = sorted({self.dice.choice(keys) for _ in range(5)})
        want = [row for row, own in zip(self.rows, keys, strict=True) if own in set(some)]
        raw = [key if isinstance(key, bytes) else key.encode() for key in some]
        self.same(lambda: rows_of(file.get_many(raw)), want, f"{what}: get_many")
        start, stop = raw[0], raw[-1]
        bounds = (some[0], some[-1])
        want = [row for row, own in zip(self.rows, keys, strict=True) if bounds[0] <= own < bounds[1]]
        self.same(
            lambda: rows_of(file.scan(start, stop).read_all()), want, f"{what}: scan {start!r} to {stop!r}"
        )

    def split(self, file: Any, size: int) -> list[tuple[Any, ...]]:
        parts = [split.to_batches().read_all() for split in file.splits(size)]
        return rows_of(pa.concat_tables(parts)) if parts else []

    def same(self, read: Any, want: Any, what: str) -> None:
        self.reads += 1
        try:
            got = read()
        except cf.ColdframeError:
            self.errors += 1
            return
        assert got == want, f"{what}: {len(got)} rows, {len(want)} expected"


def hold(case: Case, rounds: int, seed: int) -> Judge | None:
    """Checks the law on copies of one file; None if the file is no subject of it."""
    content = case.path.read_bytes()
    options = dict(case.options) | ({} if case.folder.parent.name == "orc" else {"verify_checksums": False})
    if len(content) > MAX_BYTES:
        return None
    dice = random.Random(f"{case.name} {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            file = cf.open(content, **options)
            full = file.read()
        except cf.ColdframeError:
            return None
        if not 0 < full.num_rows <= MAX_ROWS:
            return None
        judge = Judge(full, options, dice)
        copies = orc_copies(content, dice, rounds) if file.format == "orc" else None
        copies = copies or block_copies(content, options, dice, rounds)
        for number, copy in enumerate(copies):
            judge.check(copy, f"{case.name}, seed {seed}, copy {number}")
    return judge


SMALL = {
    ("orc", "types_none.orc"),
    ("orc", "nested_zlib.orc"),
    ("hfile", "cells_none.hfile"),
    ("hfile", "cells_deep_index.hfile"),
}


@pytest.mark.parametrize(
    "case",
    [case for case in files() if (case.folder.parent.name, case.entry["file"]) in SMALL],
    ids=lambda case: case.name,
)
def test_a_lying_index_gives_no_wrong_row(case: Case) -> None:
    judge = hold(case, 3, SEED)
    assert judge is not None
    assert judge.reads > 0


@pytest.mark.parametrize("case", list(files()), ids=lambda case: f"{case.folder.parent.name}/{case.name}")
def test_lying_indexes_give_no_wrong_row_over_all_fixtures(case: Case) -> None:
    hold(case, ROUNDS, SEED)
