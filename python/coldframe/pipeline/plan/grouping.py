"""Groups small sources of one table and partition into one file of the target, up to a useful size.

Sources whose rows share a file stay together when they are converted again: so one commit replaces the shared
file, and no other source's files are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from coldframe.pipeline.records import PlannedFile, SourceFile, is_partition

SMALL = 16 << 20
"""Sources up to this size are merged. Memory holds one decoded source at a time, if it is not too large."""
TOGETHER = 1000
"""Maximum number of sources in a file: they share a commit."""
OPEN = 20_000
"""Maximum number of sources that wait for their group to fill."""
_CONTROLS = {code: f"%{code:02X}" for code in (*range(0x20), 0x7F)}
"""Control characters as Hive writes them in the names of directories, for `str.translate`."""


def folder_of(file: SourceFile, table: str) -> str:
    """The folder of a file's results, relative to the target's root.

    Engines do not find folders whose names have raw control characters.
    """
    return "/".join([table, *(name.translate(_CONTROLS) for name in file.folders if is_partition(name))])


def grouped(
    files: Iterable[PlannedFile], file_bytes: int, shared: Callable[[str], str]
) -> Iterator[list[PlannedFile]]:
    """Groups files that become one target file each; a large file is a group by itself.

    `shared` returns the target file that a source currently shares; empty if it shares no file.
    """
    groups: dict[str, list[PlannedFile]] = {}
    sizes: dict[str, int] = {}
    waiting, folder = 0, None
    for planned in files:
        small = planned.file.size <= min(SMALL, file_bytes // 2) and not planned.file.is_folder
        if not (file_bytes and small and len(planned.parts) == 1):
            yield [planned]
            continue
        own_folder = folder_of(planned.file, "")
        if own_folder != folder or waiting >= OPEN:
            yield from groups.values()
            groups, sizes, waiting, folder = {}, {}, 0, own_folder
        name = shared(planned.file.relative)
        groups.setdefault(name, []).append(planned)
        sizes[name] = sizes.get(name, 0) + planned.file.size
        waiting += 1
        if sizes[name] >= file_bytes or len(groups[name]) >= TOGETHER:
            done = groups.pop(name)
            waiting -= len(done)
            del sizes[name]
            yield done
    yield from groups.values()
