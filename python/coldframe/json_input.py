"""JSON that others may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for all other texts, and for JSON that is nested too
    deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply: expected JSON of a few levels") from None
