"""What a migration is asked for, besides from where, to where and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from coldframe.pipeline.places import StorageOptions
from coldframe.pipeline.selection import Selection

_CHOICES = {
    "on_error": ("raise", "skip", "quarantine"),
    "on_vanished": ("fail", "keep", "remove"),
    "on_foreign_changes": ("refuse", "append"),
    "timestamp_unit": ("us", "ns"),
}


@dataclass(frozen=True)
class Options:
    """The arguments of `migrate`; a ValueError for those that are none."""

    to: str = "parquet"
    on_error: str = "raise"
    on_vanished: str = "fail"
    most_vanished: float = 0.5
    """Of a table's bytes, how much may be gone for `on_vanished` to take it out;"""
    dropped: tuple[str, ...] = ()
    """and names or paths of tables, or patterns of them, that may be gone altogether."""
    on_foreign_changes: str = "refuse"
    untyped: bool = False
    timestamp_unit: str = "us"
    split_bytes: int = 128 << 20
    target_file_bytes: int = 128 << 20
    compression: str = "zstd"
    verify: bool = True
    fresh: bool = False
    metastore: str | None = None
    """The Hive metastore that the source is held against."""
    selection: Selection = field(default_factory=Selection)
    source_storage_options: StorageOptions = field(default=None, repr=False)
    target_storage_options: StorageOptions = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {given!r}")
        if self.split_bytes < 1:
            raise ValueError("split_bytes must be at least 1")
        if not 0 <= self.most_vanished <= 1:
            raise ValueError("most_vanished must be from 0 to 1")
        if self.target_file_bytes < 0:
            raise ValueError("target_file_bytes must be at least 0")
