"""Interprets the properties of tables and partitions in a metastore.

`coldframe::metastore` in Rust interprets the properties that decide how files are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from coldframe.json_input import parse_json

PROVIDER = "spark.sql.sources.provider"
"""The property of Spark's own tables that has the format."""
POSITIONS = "orc.force.positional.evolution"
"""The property of tables whose columns Hive matches by position, also in files that have names."""
_ROWS = ("numRows", "spark.sql.statistics.numRows")


def row_counts(parameters: Mapping[str, str]) -> tuple[int, ...]:
    """The positive row counts among the properties."""
    texts = (parameters.get(name, "").strip() for name in _ROWS)
    numbers = (int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 20)
    return tuple(dict.fromkeys(number for number in numbers if number > 0))


def claims_to_be_accurate(parameters: Mapping[str, str]) -> bool:
    """Whether Hive claims that its row count is up to date with the last write.

    Hive 2 and later store `{"BASIC_STATS":"true"}`, Hive 1 `true`; Spark's count has no such claim. The claim
    stays if other programs change the files.
    """
    text = parameters.get("COLUMN_STATS_ACCURATE", "").strip()
    if not row_counts({_ROWS[0]: parameters.get(_ROWS[0], "")}):
        return False
    try:
        claim = parse_json(text.lower() or "false")
    except ValueError:
        return False
    basic = claim.get("basic_stats") if isinstance(claim, dict) else claim
    return str(basic).lower() == "true"
