"""Arrow types as Hive DDL, as `--schema` takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coldframe._coldframe import print_columns
from coldframe.arrow import pa


def hive_columns(fields: Sequence[Any]) -> str:
    """A column list: `` `id` bigint, `tags` array<string> ``."""
    return print_columns(pa.schema(fields))
