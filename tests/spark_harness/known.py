"""Differences that are Spark's own fault, each with its reason. All others are ours."""

from __future__ import annotations

from typing import Any

from tables import Table


def reason(table: Table, query: str, settings: dict[str, str], spark: Any, ours: Any) -> str | None:
    """Why Spark's reader answers a query in another way; None if this is not known."""
    return None
