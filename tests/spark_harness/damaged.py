"""Damaged files in one session: each read gives rows or an error of coldframe, and nothing stays open."""

from __future__ import annotations

import random
import re
from pathlib import Path

from pyspark.sql import SparkSession
from tables import Maker

MODES = ("FAILFAST", "DROPMALFORMED")
QUERIES = ("select * from {t}", "select count(*) from {t}", "select * from {t} where {c} is not null")
_OURS = re.compile(r"io\.coldframe\.\w+Error")


def read_damaged(spark: SparkSession, folder: Path, seed: int, count: int) -> list[str]:
    """Reads damaged files, and returns what went wrong."""
    choice, wrong = random.Random(seed), []
    whole: list[Path] = []
    for number in range(min(8, count)):
        table = Maker(spark, seed + number).make(folder / f"w{number}")
        whole += [file for file in sorted(table.path.rglob("part-*")) if file.stat().st_size < 4 << 20]
    for number in range(count):
        data = bytearray(choice.choice(whole).read_bytes())
        what = damage(data, choice)
        path = folder / f"d{number}"
        path.mkdir()
        (path / "a.orc").write_bytes(data)
        for mode in MODES:
            try:
                frame = spark.read.format("coldframe").option("mode", mode).load(str(path))
                frame.createOrReplaceTempView("t")
                for query in QUERIES:
                    spark.sql(query.format(t="t", c=f"`{frame.columns[0]}`")).write.format("noop").mode(
                        "overwrite"
                    ).save()
            except Exception as error:
                if not _OURS.search(str(error)):
                    wrong.append(f"seed {seed}, file {number} ({what}), {mode}: {str(error)[:800]}")
    [held] = spark.sql("select java_method('io.coldframe.spark.ColdframeSource', 'held') held").collect()
    if ", 0 readers, 0 batches" not in held.held:
        wrong.append(f"left open: {held.held}")
    return wrong


def damage(data: bytearray, choice: random.Random) -> str:
    """Changes the bytes of a file, and says how."""
    kind = choice.choice(("flip", "flip", "cut", "zero"))
    if kind == "cut":
        del data[choice.randrange(len(data)) :]
    elif kind == "zero":
        start = choice.randrange(len(data))
        stop = min(len(data), start + choice.randrange(1, 600))
        data[start:stop] = bytes(stop - start)
    else:
        # Most of what can go wrong is in the tail.
        low = choice.choice((0, max(0, len(data) - 400)))
        for _ in range(choice.choice((1, 1, 5))):
            data[choice.randrange(low, len(data))] ^= 1 << choice.randrange(8)
    return kind
