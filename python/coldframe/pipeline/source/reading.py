"""How the files of a table are read: by its entry in tables.toml or, for a metastore's table, by the format,
SerDe and columns of their partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from coldframe.hive.definition import PartitionDefinition


@dataclass(frozen=True)
class Reading:
    """A format and its options."""

    format: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `coldframe.open`."""
    names: tuple[str, ...] = ()
    """The table's columns: if columns of a file differ from these only in case, they get these names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The table's names for columns of a file with other names."""
    by_position: bool = False
    """Whether `names` replace the file's column names by position."""
    refusal: str = ""
    """Why such files cannot be read as a part of the table."""
    is_only: bool = True
    """Whether this is the only reading of the table."""
    by_spark: PartitionDefinition | None = None
    """For directories that Spark reads: their definition, without its location. It has the columns of the
    files; `names` are the table's names for them, by position."""

    lengths: str = ""
    """The table's columns of type char and varchar, if its files state types: see `of_length`."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The values by which two readings of one file differ."""
        if self.is_only:
            return self.options
        if self.by_spark is not None:
            return {**asdict(self.by_spark), "names": self.names, "format": self.format}
        if self.by_position:
            return {**self.options, "by_position": self.names, "format": self.format}
        renamed = {"renamed": dict(self.renamed)} if self.renamed else {}
        return {**self.options, **renamed, "format": self.format}
