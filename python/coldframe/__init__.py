"""Reads, writes, rescues and migrates files of formats whose engines are gone, straight into Arrow.

import coldframe as cf

f = cf.open("000000_0", schema="id bigint, name string", serde="binary")
f.schema, f.num_rows
f.read(["id", "name"], filter="id > 100 and name is not null")     # a pyarrow.Table
cf.scan("warehouse/events/", schema="id bigint, name string", serde="text").to_polars()
cf.write(table, "copy.rc", format="rcfile")
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from coldframe._coldframe import (
    ColdframeError,
    CorruptFileError,
    KeyUnavailableError,
    LimitError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
    __version__,
)
from coldframe.errors import (
    AmbiguousCalendarWarning,
    AmbiguousDialectWarning,
    EncryptedColumnWarning,
    ExtensionTypeWarning,
    LeftOutWarning,
    PartialTableWarning,
    WrongIndexWarning,
)

if TYPE_CHECKING:
    from coldframe.dataset import ArrowDataset
    from coldframe.file import File, Split
    from coldframe.hive.dataset import HiveDataset, hive_table
    from coldframe.hudi import HudiMetadata, open_hudi_metadata
    from coldframe.iceberg.dataset import IcebergDataset
    from coldframe.iceberg.tables import iceberg_table
    from coldframe.named_tables import Estate, estate
    from coldframe.opening import open
    from coldframe.scanning import Dataset
    from coldframe.scans import scan
    from coldframe.table_listing import FoundTable, tables
    from coldframe.writing import detect, read_schema, read_table, write

__all__ = [
    "AmbiguousCalendarWarning",
    "AmbiguousDialectWarning",
    "ArrowDataset",
    "ColdframeError",
    "CorruptFileError",
    "Dataset",
    "EncryptedColumnWarning",
    "Estate",
    "ExtensionTypeWarning",
    "File",
    "FoundTable",
    "HiveDataset",
    "HudiMetadata",
    "IcebergDataset",
    "KeyUnavailableError",
    "LeftOutWarning",
    "LimitError",
    "NotFoundError",
    "PartialTableWarning",
    "SchemaError",
    "Split",
    "UnsupportedError",
    "WrongIndexWarning",
    "__version__",
    "detect",
    "estate",
    "hive_table",
    "iceberg_table",
    "open",
    "open_hudi_metadata",
    "read_schema",
    "read_table",
    "scan",
    "tables",
    "write",
]

# Without this handler, Python prints the library's warnings if the user has configured no logging.
logging.getLogger("coldframe").addHandler(logging.NullHandler())

# Loaded on first use: pyarrow takes longer to import than all of coldframe, and `coldframe --version` or a
# program that never opens a file does not need it.
_MODULES = {
    "ArrowDataset": "dataset",
    "Dataset": "scanning",
    "Estate": "named_tables",
    "File": "file",
    "FoundTable": "table_listing",
    "HiveDataset": "hive.dataset",
    "HudiMetadata": "hudi",
    "IcebergDataset": "iceberg.dataset",
    "Split": "file",
    "detect": "writing",
    "estate": "named_tables",
    "hive_table": "hive.dataset",
    "iceberg_table": "iceberg.tables",
    "open": "opening",
    "open_hudi_metadata": "hudi",
    "read_schema": "writing",
    "read_table": "writing",
    "scan": "scans",
    "tables": "table_listing",
    "write": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"coldframe.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
