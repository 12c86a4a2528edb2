"""Differences that are Spark's own fault, each with its reason. All others are ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PUSHED = (
    "Spark's push-down to ORC loses rows that it returns without spark.sql.orc.filterPushdown: ORC compares "
    "timestamps before 1582 in another calendar than that of the statistics, and leaves out stripes"
)


def reason(query: str, ours: Any, again: Callable[[dict[str, str]], Any]) -> str | None:
    """Why Spark's reader answers a query in another way; None if this is not known.

    Args:
        ours: the connector's answer.
        again: returns the answer of Spark's reader with other settings.
    """
    if again({"spark.sql.orc.filterPushdown": "false"}) == ours:
        return PUSHED
    return None
