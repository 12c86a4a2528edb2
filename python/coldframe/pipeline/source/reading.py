"""How files of a table are read: of one of tables.toml, all by its entry; of one that a metastore defines, by
the format, SerDe and columns of their partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from coldframe.hive.definition import PartitionDefinition

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """A format and its options."""

    format: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `coldframe.open`."""
    names: tuple[str, ...] = ()
    """The table's columns: those that a file has in another case get these names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The table's names for columns of a file that have others."""
    by_position: bool = False
    """Whether `names` are the file's columns by position, whatever it calls them."""
    refusal: str = ""
    """Why such files cannot be read as a part of the table."""
    is_only: bool = True
    """Whether all files of the table are read so."""
    by_spark: PartitionDefinition | None = None
    """Of directories that Spark reads: their definition, without its place. The columns are those of the
    files; `names` are the table's for them, by position."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What makes two readings of one file different."""
        if self.is_only:
            return self.options
        if self.by_spark is not None:
            return {**asdict(self.by_spark), "names": self.names, "format": self.format}
        if self.by_position:
            return {**self.options, "by_position": self.names, "format": self.format}
        renamed = {"renamed": dict(self.renamed)} if self.renamed else {}
        return {**self.options, **renamed, "format": self.format}
