"""`coldframe.open`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coldframe import _coldframe
from coldframe._coldframe import shown
from coldframe.arguments import Keys, OpenArguments
from coldframe.errors import UnsupportedError, unsupported
from coldframe.file import File
from coldframe.literals import FormatName
from coldframe.sources import path_of, with_filesystem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coldframe.keywords import OpenOptions


def open(
    source: object,
    *,
    format: FormatName | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    **options: Unpack[OpenOptions],
) -> File:
    """Opens a file of any of the formats, or a directory that is one table (of Kudu, HBase, Hudi, Hive).

    Args:
        source: a path, a URL (`hdfs://`, `s3://`, `gs://`, `abfss://`, `https://`, or any scheme that fsspec
            supports), a seekable binary file, an fsspec file, or the content of a file: a memoryview, a
            pyarrow.Buffer, or bytes that a format recognises; other bytes are a path as from `os.fsencode`.
        format: `"cfile"`, `"hbase"`, `"hfile"`, `"hudi"`, `"kudu"`, `"orc"`, `"rcfile"` or `"redfile"`; None
            detects it from the bytes.
        storage_options: credentials, endpoints and settings for a URL, see `docs/stores.md`.
        filesystem: a file system of fsspec or pyarrow.fs in which `source` is a path.
        verify_checksums: whether stored checksums are verified while reading.
        keys: `{name: bytes or hex}` for encrypted files, or a function that returns the key for a name, or
            None.
        **options: the format's own, such as `schema=` and `serde=` for RCFile, and `threads=`: how many
            threads a read uses (default `pyarrow.cpu_count()`, 1 in a Spark task); `docs/options.md` lists
            them.
    """
    storage_options = with_filesystem(storage_options, filesystem)
    arguments = OpenArguments(format, storage_options, verify_checksums, keys, options)
    try:
        return File.of(arguments, source)
    except UnsupportedError as error:
        path = path_of(source)
        if path is None or not os.path.isdir(path) or _coldframe.detect(path) is not None:
            raise
        raise unsupported(f"{error}: to read many files as one table, use cf.scan({shown(path)!r})") from None
