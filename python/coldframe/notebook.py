"""The HTML that notebooks show for a file or a table: format, rows, size, damage and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MAX_COLUMNS = 100


def summary_html(
    title: str, properties: Sequence[tuple[str, object]], schema: Any, damage: Sequence[Any]
) -> str:
    """HTML with a heading, a line of properties, the damage and a table of columns."""
    from html import escape

    line = ", ".join(
        f"{escape(name)} <b>{escape(str(value))}</b>" for name, value in properties if value is not None
    )
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(field.name)}</td>"
        f"<td style='text-align:left'>{escape(str(field.type))}</td></tr>"
        for field in list(schema)[:_MAX_COLUMNS]
    )
    more = len(schema) - _MAX_COLUMNS
    tail = f"<p>and {more:,} more columns</p>" if more > 0 else ""
    lost = ""
    if damage:
        rows_lost = [loss.get("rows_lost") for loss in damage]
        count = "an unknown number of" if None in rows_lost else f"{sum(rows_lost):,}"
        lost = f"<p style='color:#c2302e'>The last read lost {count} rows in {len(damage):,} places.</p>"
    return (
        f"<div><p><code>{escape(title)}</code><br>{line}</p>{lost}<table><thead><tr>"
        "<th style='text-align:left'>column</th><th style='text-align:left'>type</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{tail}</div>"
    )
