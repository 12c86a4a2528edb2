"""Numbers of bytes and of things, as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?\Z", re.IGNORECASE)


def byte_size(text: str) -> int:
    """A number of bytes: 1000, 64m, 1GiB. Raises ValueError."""
    match = _SIZE.match(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"expected a positive size such as 1000 or 64m, found {text!r}")
    return int(match[1]) << (10 * " kmgt".index(match[2].lower() or " "))


def size_text(size: int) -> str:
    """A number of bytes for people: 512 B, 1.5 KiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size:,} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"


def counted(count: int, thing: str) -> str:
    """A number of things for people: 1 file, 2,000 files."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
