"""Which writes of a transactional table count: a metastore knows, its directories do not.

    highest 7, open 6, aborted 3      writes 1, 2, 4, 5 and 7 count

Before Hive 3 the numbers are those of transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["OPTION", "WriteIds", "aborted_among"]

OPTION = "acid_valid_write_ids"
"""The option of `coldframe.open` that takes them."""
_NONE_OPEN = (1 << 63) - 1


@dataclass(frozen=True)
class WriteIds:
    """The writes of a table as a metastore has them."""

    highest: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()

    @property
    def all_count(self) -> bool:
        """Whether all writes up to the highest count."""
        return not (self.open or self.aborted)

    def text(self, table: str = "") -> str:
        """In the form of Hive's lists. A list of transactions has no table."""
        numbers = (",".join(map(str, some)) for some in (self.open, self.aborted))
        start = f"{table}:" if table else ""
        return f"{start}{self.highest}:{min(self.open, default=_NONE_OPEN)}:{':'.join(numbers)}"


def aborted_among(numbers: Sequence[int], bits: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Open and aborted ones among those that do not count. A bit that is set says aborted."""
    found: tuple[list[int], list[int]] = ([], [])
    for at, number in enumerate(numbers):
        is_aborted = at // 8 < len(bits) and bool(bits[at // 8] >> at % 8 & 1)
        found[is_aborted].append(number)
    return tuple(found[0]), tuple(found[1])
