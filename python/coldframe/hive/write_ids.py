"""Which writes of a transactional table are committed: only the metastore knows, not the directories.

    highest 7, open 6, aborted 3      writes 1, 2, 4, 5 and 7 are committed

Before Hive 3 the write ids are transaction ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OPTION = "acid_valid_write_ids"
"""The option of `coldframe.open` for the committed writes."""
_NONE_OPEN = (1 << 63) - 1


@dataclass(frozen=True)
class WriteIds:
    """The writes of a table in a metastore."""

    highest: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()

    @property
    def all_committed(self) -> bool:
        """Whether all writes up to the highest are committed."""
        return not (self.open or self.aborted)

    def text(self, table: str = "") -> str:
        """The text of Hive's ValidReaderWriteIdList. `table` is empty for a list of transactions."""
        numbers = (",".join(map(str, some)) for some in (self.open, self.aborted))
        start = f"{table}:" if table else ""
        return f"{start}{self.highest}:{min(self.open, default=_NONE_OPEN)}:{':'.join(numbers)}"


def aborted_among(numbers: Sequence[int], bits: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Divides uncommitted write ids into open ids, and aborted ids, whose bits are set in `bits`."""
    split_ids: tuple[list[int], list[int]] = ([], [])
    for at, number in enumerate(numbers):
        is_aborted = at // 8 < len(bits) and bool(bits[at // 8] >> at % 8 & 1)
        split_ids[is_aborted].append(number)
    return tuple(split_ids[0]), tuple(split_ids[1])
