"""How a folder of files appears: whole or not at all, also where two write it, or one is killed.

Where a store renames folders (local files, HDFS), the files are written beside it and one rename shows them:

    warehouse/.coldframe-3f..    warehouse/sales        nothing, or an empty folder, is at the new name
       dt=2014-01-01/part-0.orc ──▶ ..

Elsewhere each file is published by itself, below a record of what is to come:

    sales/_coldframe-3f../dt=2014-01-01/part-0.orc      1. all files, under a name that readers pass over
    sales/_coldframe-written.json                       2. the record, of which a folder has one
    sales/dt=2014-01-01/part-0.orc                      3. the files; the staged ones go

From 2 on the files will appear: whoever comes next publishes what a killed process left. The record stays, so
that nobody who is late takes the folder for an empty one. Only what is this write's own is ever deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Sequence
from typing import Any

from coldframe._coldframe import Store, StoreEntry
from coldframe.errors import ColdframeError, NotFoundError

__all__ = ["Publication", "begin", "is_unfinished"]

STAGED = "_coldframe-"
RECORD = "_coldframe-written.json"
_COMPARED = 8 << 20


class Publication:
    """A folder on its way: files are written below `staged`, then `publish` shows them."""

    def __init__(self, staged: Store) -> None:
        self.staged = staged

    def publish(self) -> None:
        """Makes all files appear; FileExistsError where others have come first."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Deletes what was written, which nobody has seen; the error that led here is the one to tell."""
        raise NotImplementedError


def begin(store: Store) -> Publication:
    """Starts to write a folder, which must be absent or empty."""
    found = store.stat()
    if found is not None and not found.is_folder:
        raise FileExistsError(f"{store.url}: expected no directory, or an empty one")
    names = [] if found is None else _names(store)
    if RECORD in names:
        _finish_another(store)
    if any(not name.startswith(STAGED) for name in names):
        raise FileExistsError(f"{store.url}: expected no directory, or an empty one")
    if (above := _above(store, existed=found is not None)) is not None and not names:
        return _ByRename(*above, existed=found is not None)
    return _ByFile(store)


def _names(store: Store) -> list[str]:
    try:
        return [one.path for some in store.list() for one in some]
    except NotFoundError:
        return []


def _above(store: Store, *, existed: bool) -> tuple[Store, str] | None:
    """The folder around, and the name in it, where a rename can take the name."""
    if not store.renames_folders:
        return None
    if store.is_local:
        place = os.path.realpath(store.url)
        # Whoever may not write around it, or has it mounted, has it filled.
        if existed and (os.path.ismount(place) or not os.access(os.path.dirname(place), os.W_OK)):
            return None
        return Store(place).above()
    # A folder of HDFS that is there may have quotas and rights of its own: it stays.
    return None if existed else store.above()


class _ByRename(Publication):
    def __init__(self, above: Store, name: str, *, existed: bool) -> None:
        self._above, self._name, self._existed = above, name, existed
        self._own = f".coldframe-{uuid.uuid4().hex}"
        super().__init__(above.below(self._own))

    def publish(self) -> None:
        if self._existed:
            mode = os.stat(self._above.url_of(self._name)).st_mode
            os.chmod(self._above.url_of(self._own), mode & 0o7777)
        self._above.publish_folder(self._own, self._name)

    def abandon(self) -> None:
        with contextlib.suppress(ColdframeError, OSError):
            self._above.delete(self._own, recursive=True)


class _ByFile(Publication):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._own = f"{STAGED}{uuid.uuid4().hex}"
        self._is_recorded = False
        super().__init__(store.below(self._own))

    def publish(self) -> None:
        files = {one.path: one.size for some in self.staged.list(recursive=True) for one in some}
        if any(not name.startswith(STAGED) for name in _names(self._store)):
            raise FileExistsError(f"{self._store.url}: another has written there in the meantime")
        record = json.dumps({"staged": self._own, "files": files}).encode()
        self._store.put(RECORD, record)
        self._is_recorded = True
        _finish(self._store, self._own, files)

    def abandon(self) -> None:
        if self._is_recorded:
            return  # all of it is there, and the next one finishes it
        with contextlib.suppress(ColdframeError, OSError):
            # Without an answer nobody knows whether the record was written.
            if _recorded(self._store).get("staged") != self._own:
                self._store.delete(self._own, recursive=True)


def _recorded(store: Store) -> dict[str, Any]:
    """The record of a folder; empty where there is none."""
    try:
        found = json.loads(store.read(RECORD))
    except NotFoundError:
        return {}
    except ValueError as reason:
        raise FileExistsError(f"{store.url_of(RECORD)}: not the record of a write: {reason}") from reason
    return found if isinstance(found, dict) else {}


def is_unfinished(store: Store, names: Sequence[str]) -> bool:
    """Whether a folder with these names in it shows a part of what its record says."""
    if RECORD not in names or not any(name.startswith(STAGED) and "/" in name for name in names):
        return False
    staged = f"{_recorded(store).get('staged')}/"
    return any(name.startswith(staged) for name in names)


def _finish_another(store: Store) -> None:
    """Publishes what an earlier write has left, and tells that the folder is taken."""
    record = _recorded(store)
    staged, files = record.get("staged"), record.get("files")
    if not isinstance(staged, str) or not isinstance(files, dict):
        raise FileExistsError(f"{store.url_of(RECORD)}: not the record of a write")
    left = store.stat(staged) is not None
    if left:
        _finish(store, staged, files)
    done = "an earlier write that was cut off has been finished now" if left else "it was written before"
    raise FileExistsError(
        f"{store.url}: expected no directory, or an empty one: {done}, with {len(files)} files; to write it "
        f"anew, delete them and {RECORD}"
    )


def _finish(store: Store, staged: str, files: dict[str, int]) -> None:
    """Publishes all files of a record, of which others may publish some at the same time."""
    for path in sorted(files):
        _publish(store, f"{staged}/{path}", path)
    if missing := [path for path in sorted(files) if _size(store.stat(path)) != files[path]]:
        raise OSError(f"{store.url_of(missing[0])}: a file that was written is no longer there, or another")
    store.delete(staged, recursive=True)


def _publish(store: Store, source: str, path: str) -> None:
    try:
        store.publish(source, path)
    except NotFoundError:
        return  # published before, which is looked at when all are
    except FileExistsError:
        if not _is_same(store, source, path):
            raise
        with contextlib.suppress(NotFoundError):
            store.delete(source)


def _is_same(store: Store, one: str, other: str) -> bool:
    """Whether two files have the same bytes: a copy whose source has not been deleted yet."""
    try:
        first, second = store.open(one), store.open(other)
    except NotFoundError:
        return True
    if first.size != second.size:
        return False
    starts = range(0, first.size, _COMPARED)
    return all(first.read(at, at + _COMPARED) == second.read(at, at + _COMPARED) for at in starts)


def _size(entry: StoreEntry | None) -> int | None:
    return None if entry is None or entry.is_folder else entry.size
