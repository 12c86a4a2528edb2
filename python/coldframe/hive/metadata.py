"""Interprets the properties of tables and partitions in a metastore."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from coldframe._coldframe import formats
from coldframe.json_input import parse_json

__all__ = [
    "POSITIONS",
    "PROVIDER",
    "are_folders_of",
    "claims_to_be_accurate",
    "declared_format",
    "location_of_files",
    "match_by_position",
    "partitions_are_registered",
    "row_counts",
    "serde_properties",
]

PROVIDER = "spark.sql.sources.provider"
"""The property of Spark's own tables that has the format."""
POSITIONS = "orc.force.positional.evolution"
"""The property of tables whose columns Hive matches by position, also in files that have names."""
_ROWS = ("numRows", "spark.sql.statistics.numRows")
_FORMATS = tuple(
    (ending, name) for name, about in formats().items() for ending in about["capabilities"]["input_formats"]
)


_OF_SERDES = re.compile(
    r"(.*\.delim|serialization\..*|timestamp\.formats|hive\.serialization\..*|hive\.lazysimple\..*)\Z"
)


def serde_properties(parameters: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table or partition that mean something to a SerDe."""
    return {name: value for name, value in parameters.items() if _OF_SERDES.match(name)}


def location_of_files(
    kind: str, location: str | None, parameters: Mapping[str, str], serde_properties: Mapping[str, str]
) -> str | None:
    """Where a table's files are; None if it has no files: views, HBase tables and the like."""
    if kind == "VIRTUAL_VIEW" or parameters.get("storage_handler"):
        return None
    if PROVIDER in parameters:
        # For tables that Hive cannot read, Spark sets a placeholder as the location.
        return serde_properties.get("path", location)
    return location


def partitions_are_registered(parameters: Mapping[str, str]) -> bool:
    """Whether the metastore has the partitions of a partitioned table.

    The metastore may lack the partitions of tables that Spark created.
    """
    return PROVIDER not in parameters or parameters.get("spark.sql.partitionProvider") == "catalog"


def are_folders_of(keys: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether the outermost folders name a value of each key: `dt=2014-01-01`, `region=asia%2Fpacific`. More
    folders may follow.
    """
    pairs = zip(folders, keys, strict=False)
    return len(folders) >= len(keys) and all(
        "=" in folder and unquote(folder.partition("=")[0]) == key for folder, key in pairs
    )


def match_by_position(parameters: Mapping[str, str]) -> bool:
    """Whether Hive matches a table's columns by position even in files that have names."""
    return parameters.get(POSITIONS, "").strip().lower() == "true"


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


def declared_format(input_format: str | None, parameters: Mapping[str, str]) -> str:
    """The format by the table's provider or input format; if it is not ours, the name of the class."""
    provider = parameters.get(PROVIDER)
    if provider is not None:
        return provider.lower()
    name = (input_format or "").rpartition(".")[2]
    return next((kind for ending, kind in _FORMATS if name.endswith(ending)), name)
