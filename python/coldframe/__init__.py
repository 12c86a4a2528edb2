"""Reads, writes, rescues and migrates files of formats whose engines are gone, straight into Arrow.

import coldframe as cf

f = cf.open("000000_0", schema="id bigint, name string", serde="binary")
f.schema, f.num_rows
f.read(["id", "name"], filter="id > 100 and name is not null")     # a pyarrow.Table
cf.scan("warehouse/events/", schema="id bigint, name string", serde="text").to_polars()
cf.write(table, "copy.rc", format="rcfile")
"""

from typing import TYPE_CHECKING, Any

from coldframe._coldframe import (
    ColdframeError,
    CorruptFileError,
    KeyUnavailableError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
    __version__,
)
from coldframe.errors import (
    AmbiguousDialectWarning,
    EncryptedColumnWarning,
    ExtensionTypeWarning,
    PartialTableWarning,
)
from coldframe.file import File, Split, open
from coldframe.hudi import HudiMetadata, open_hudi_metadata
from coldframe.scanning import Dataset, scan
from coldframe.writing import detect, read_schema, read_table, write

if TYPE_CHECKING:
    from coldframe.dataset import ArrowDataset

__all__ = [
    "AmbiguousDialectWarning",
    "ArrowDataset",
    "ColdframeError",
    "CorruptFileError",
    "Dataset",
    "EncryptedColumnWarning",
    "ExtensionTypeWarning",
    "File",
    "HudiMetadata",
    "KeyUnavailableError",
    "NotFoundError",
    "PartialTableWarning",
    "SchemaError",
    "Split",
    "UnsupportedError",
    "__version__",
    "detect",
    "open",
    "open_hudi_metadata",
    "read_schema",
    "read_table",
    "scan",
    "write",
]


def __getattr__(name: str) -> Any:
    # pyarrow.dataset brings pandas, which costs more to import than all the rest.
    if name == "ArrowDataset":
        from coldframe.dataset import ArrowDataset

        return ArrowDataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
