"""The options of a migration other than its source, target and scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coldframe.hive.addresses import is_metastore
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.source.selection import Selection

OTHER_FILES = "other-files"
"""Files in a directory that belong to none of its tables."""
LEAVABLE = {
    "tables": "table",
    "snapshots": "snapshot",
    "older-versions": "versions",
    "other-times": "times",
    "families": "families",
    "columns": "columns",
    "timestamps": "timestamps",
    "unflushed-edits": "edits",
    "unknown-regions": "regions",
    "tablets": "tablets",
    "later-writes": "later writes",
    "open-writes": "open writes",
    OTHER_FILES: "other files",
}
"""Parts of a directory that may be left behind: their names for users, and their names in the core."""
LOSSES: Mapping[str, str] = {
    "digits-below-microseconds": "digits below a microsecond were cut",
    "malformed-text": "text that is not UTF-8 has U+FFFD",
    "masked-columns": "encrypted columns without a key were read as masked values",
    "partition-columns": "a file's column with the name of a partition key was left out",
}
"""Changes of values that are counted, and that `--allow-loss` allows by name."""
NOT_SHOWN = "not-shown-by-spark"
"""Content of a source that Spark did not show when it read the source: see `--others`."""
_REGISTERED = ("iceberg", "parquet", "delta")
_NO_LIST = "only tables of Iceberg have a list of files, which may lie elsewhere"
_WHY_NOT_ADOPTED = {
    "delta": "tables of Delta have no ORC, and deltalake, which would prove the rows of Parquet, reads no "
    "file outside of the table's directory"
}
_CHOICES = {
    "prove": ("pyiceberg", "spark"),
    "on_error": ("raise", "skip", "quarantine"),
    "on_vanished": ("fail", "keep", "remove"),
    "archived_rows": ("ask", "keep", "drop"),
    "on_foreign_changes": ("refuse", "append"),
    "timestamp_unit": ("us", "ns"),
    "others": ("list", "spark"),
    "order": ("listed", "size", "age", "name"),
}
_WINDOW = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)\Z")


@dataclass(frozen=True)
class Options:
    """The arguments of `migrate`; raises ValueError for an invalid argument."""

    to: str = "parquet"
    files: str = "parquet"
    """The format of the files of an Iceberg table: Parquet or ORC."""
    adopt: bool = False
    """Whether files stay where they are, below an Iceberg table over them."""
    prove: str = "pyiceberg"
    """Who reads an adopted table before it is called verified: PyIceberg, or Spark as well."""
    detach: tuple[str, ...] = ()
    """Names or patterns of adopted tables that no longer read the source: all their files are converted."""
    on_error: str = "raise"
    on_vanished: str = "fail"
    most_vanished: float = 0.5
    """The largest share of a table's bytes that `on_vanished` may remove."""
    archived_rows: str = "ask"
    """What happens to rows of sources that were listed as safe to delete, and are gone or replaced."""
    dropped: tuple[str, ...] = ()
    """Names, paths or patterns of tables that may be removed entirely."""
    on_foreign_changes: str = "refuse"
    leave_behind: tuple[str, ...] = ()
    """Parts that the target may lack although their directory is listed as safe: see `left_out`."""
    allow_loss: tuple[str, ...] = ()
    """Changes of values with which a source may still be listed as safe to delete: see `LOSSES`."""
    untyped: bool = False
    timestamp_unit: str = "us"
    split_bytes: int = 128 << 20
    target_file_bytes: int = 128 << 20
    compression: str = "zstd"
    verify: bool = True
    fresh: bool = False
    metastore: str | None = None
    """The Hive metastore with which the source is compared."""
    tables: tuple[str, ...] = ()
    """For a metastore as the source: patterns `database.table` of the tables to migrate."""
    locations: Mapping[str, str] = field(default_factory=dict)
    """For a metastore as the source: prefixes of locations and their replacements."""
    others: str = "list"
    """For a metastore as the source: whether partitions in foreign formats are only listed, or converted by
    Spark."""
    catalog: str | None = None
    """The catalog that registers the tables. Iceberg: a name in PyIceberg's configuration; Parquet and Delta:
    `thrift://host:9083[/database]`."""
    namespace: str | None = None
    """The namespace of all tables in the catalog."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """New names of tables in the catalog: `table` or `namespace.table`."""
    suffix: str = ""
    """The suffix of the other tables' names in the catalog, those without an entry in `rename`."""
    switch: bool = False
    """Whether verified tables take over the names of their source tables."""
    order: str = "listed"
    """The order in which tables are converted: as listed, the largest first, the oldest first, or by name."""
    waves: tuple[str, ...] = ()
    """Names, paths or patterns of tables that are converted before others, in this order."""
    max_bytes_per_second: int | None = None
    """The bytes of the source that tasks may read in a second, on average."""
    window: str | None = None
    """The hours of the day in which tasks start, as `22:00-06:00`, in the driver's time zone."""
    selection: Selection = field(default_factory=Selection)
    source_storage_options: StorageOptions = field(default=None, repr=False)
    target_storage_options: StorageOptions = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {given!r}")
        if self.adopt and self.to != "iceberg":
            raise ValueError(f"adopt: {_WHY_NOT_ADOPTED.get(self.to, _NO_LIST)}; choose to='iceberg'")
        _check_names("leave_behind", (name.partition("=")[0] for name in self.leave_behind), LEAVABLE)
        _check_names("allow_loss", self.allow_loss, (*LOSSES, NOT_SHOWN))
        if self.split_bytes < 1:
            raise ValueError("split_bytes must be at least 1")
        if not 0 <= self.most_vanished <= 1:
            raise ValueError("most_vanished must be from 0 to 1")
        if self.target_file_bytes < 0:
            raise ValueError("target_file_bytes must be at least 0")
        if self.max_bytes_per_second is not None and self.max_bytes_per_second < 1:
            raise ValueError("max_bytes_per_second must be at least 1")
        if self.window is not None:
            minutes_of(self.window)
        if self.prove != "pyiceberg" and not self.adopt:
            raise ValueError("prove: only for adopted tables; pass adopt as well")
        if self.detach and not self.adopt:
            raise ValueError("detach: only adopted tables read files of the source; pass adopt as well")
        if self.adopt and (self.order != "listed" or self.waves or self.max_bytes_per_second or self.window):
            raise ValueError("adopt: order, waves, max_bytes_per_second and window are for conversions")
        if self.catalog is None and (self.namespace or self.rename or self.suffix):
            raise ValueError("namespace, rename and suffix are for tables in a catalog: name one")
        if self.catalog is not None and (self.to == "iceberg") == is_metastore(self.catalog):
            expected = "a name in PyIceberg's configuration" if self.to == "iceberg" else "thrift://host:9083"
            raise ValueError(f"catalog of {self.to} tables: expected {expected}, found {self.catalog}")
        if self.switch and (self.catalog is None or not (self.adopt or is_metastore(self.catalog))):
            raise ValueError("switch: the catalog must be the Hive metastore of the source")
        if self.catalog is not None and self.to not in _REGISTERED:
            raise ValueError(f"catalog: {self.to} tables cannot be registered in one")
        if any(name.lower() == "webhdfs" for name in self.source_storage_options or ()):
            raise ValueError(
                "storage option `webhdfs` reads files that are still being written up to their current"
                " length, and a migration would miss the rest; close these files first"
                " (`hdfs debug recoverLease`)"
            )

    def leaves_behind(self, kind: str, of: str) -> bool:
        """Whether the user agreed to leave something behind: by its kind, or by its name."""
        return kind in self.leave_behind or f"{kind}={of}" in self.leave_behind


def minutes_of(window: str) -> tuple[int, int]:
    """The beginning and end of a window, in minutes since midnight."""
    match = _WINDOW.match(window)
    if match is None:
        raise ValueError(f"window: expected the hours of a day, such as 22:00-06:00, found {window!r}")
    hour, minute, last_hour, last_minute = map(int, match.groups())
    begin, end = 60 * hour + minute, 60 * last_hour + last_minute
    if begin == end:
        raise ValueError(f"window: {window} has no length")
    return begin, end


def _check_names(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{option}: expected {', '.join(known)}, found {name!r}")
