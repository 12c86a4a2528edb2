"""Publishes a folder of files completely or not at all, even if two processes write it or one is killed.

If a store can rename folders (local files, HDFS), the files are written next to the folder, and one rename
publishes them:

    warehouse/.coldframe-3f..    warehouse/sales        nothing, or an empty folder, is at the new name
      dt=2014-01-01/part-0.orc ──▶ ..

Otherwise each file is published separately, after a record that lists them:

    sales/_coldframe-3f../dt=2014-01-01/part-0.orc      1. all files, under a name that readers ignore
    sales/_coldframe-written.json                       2. the record; a folder has one at most
    sales/dt=2014-01-01/part-0.orc                      3. the files; the staged ones are deleted

After step 2 the files will appear in any case: the next process publishes what a killed process left. The
record stays, so that no late writer considers the folder empty. A writer deletes no files of other writers.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import uuid
from typing import Any

from coldframe._coldframe import Store, StoreEntry
from coldframe.errors import ColdframeError, NotFoundError
from coldframe.json_input import parse_json
from coldframe.logs import step

_log = logging.getLogger(__name__)

STAGED = "_coldframe-"
RECORD = "_coldframe-written.json"
_COMPARED_BYTES = 8 << 20


class Publication:
    """A folder being written: files go below `staged`, then `publish` makes them appear."""

    def __init__(self, staged: Store) -> None:
        self.staged = staged

    def publish(self) -> None:
        """Makes all files appear; raises FileExistsError if another write came first."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Deletes the files that were never visible. Raises nothing, as the caller has an error to report."""
        raise NotImplementedError


def begin(store: Store) -> Publication:
    """Starts writing a folder, which must be absent or empty."""
    entry = store.stat()
    if entry is not None and not entry.is_folder:
        raise FileExistsError(f"{store.url}: expected no directory, or an empty one")
    names = [] if entry is None else _names(store)
    if RECORD in names:
        _finish_another(store)
    if any(not name.startswith(STAGED) for name in names):
        raise FileExistsError(f"{store.url}: expected no directory, or an empty one")
    if (above := _above(store, existed=entry is not None)) is not None and not names:
        return _ByRename(*above, existed=entry is not None)
    return _ByFile(store)


def _names(store: Store) -> list[str]:
    try:
        return [file.path for page in store.list() for file in page]
    except NotFoundError:
        return []


def _above(store: Store, *, existed: bool) -> tuple[Store, str] | None:
    """The parent folder and the folder's name in the parent, if one rename can publish the folder."""
    if not store.renames_folders:
        return None
    if store.is_local:
        place = os.path.realpath(store.url)
        # If the parent is not writable, or the folder is a mount point, the folder is filled in place.
        if existed and (os.path.ismount(place) or not os.access(os.path.dirname(place), os.W_OK)):
            return None
        return Store(place).above()
    # An existing HDFS folder may have quotas and permissions, so it is kept.
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
        with step(_log, logging.INFO, "publishing %s", self._above.url_of(self._name)):
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
        files = {file.path: file.size for page in self.staged.list(recursive=True) for file in page}
        if any(not name.startswith(STAGED) for name in _names(self._store)):
            raise FileExistsError(f"{self._store.url}: another process has written there in the meantime")
        record = json.dumps({"staged": self._own, "files": files}).encode()
        self._store.put(RECORD, record)
        self._is_recorded = True
        with step(_log, logging.INFO, "publishing %s, %d files", self._store.url, len(files)):
            _finish(self._store, self._own, files)

    def abandon(self) -> None:
        if self._is_recorded:
            return  # everything is written, and the next process finishes it
        with contextlib.suppress(ColdframeError, OSError):
            # If the store did not answer, it is unknown whether the record was written.
            if _recorded(self._store).get("staged") != self._own:
                self._store.delete(self._own, recursive=True)


def _recorded(store: Store) -> dict[str, Any]:
    """The record of a folder; empty if there is none."""
    try:
        record = parse_json(store.read(RECORD))
    except NotFoundError:
        return {}
    except ValueError as reason:
        raise FileExistsError(f"{store.url_of(RECORD)}: not the record of a write: {reason}") from reason
    return record if isinstance(record, dict) else {}


def _finish_another(store: Store) -> None:
    """Publishes the files of an interrupted write, then raises, because the folder is not empty."""
    record = _recorded(store)
    staged, files = record.get("staged"), record.get("files")
    if not isinstance(staged, str) or not isinstance(files, dict):
        raise FileExistsError(f"{store.url_of(RECORD)}: not the record of a write")
    left = store.stat(staged) is not None
    if left:
        _finish(store, staged, files)
    done = "an interrupted write has been completed now" if left else "it was written before"
    raise FileExistsError(
        f"{store.url}: expected no directory, or an empty one: {done}, with {len(files)} files; to write it "
        f"anew, delete them and {RECORD}"
    )


def _finish(store: Store, staged: str, files: dict[str, int]) -> None:
    """Publishes all files of a record. Other processes may publish some of the files at the same time."""
    for path in sorted(files):
        _publish(store, f"{staged}/{path}", path)
    if missing := [path for path in sorted(files) if _size(store.stat(path)) != files[path]]:
        raise OSError(f"{store.url_of(missing[0])}: a written file is missing or was replaced")
    store.delete(staged, recursive=True)


def _publish(store: Store, source: str, path: str) -> None:
    try:
        store.publish(source, path)
    except NotFoundError:
        return  # already published; `_finish` checks all files at the end
    except FileExistsError:
        if not _is_same(store, source, path):
            raise
        with contextlib.suppress(NotFoundError):
            store.delete(source)


def _is_same(store: Store, path: str, other: str) -> bool:
    """Whether two files have the same bytes. If so, `path` is a copy of `other` that is not deleted yet."""
    try:
        first, second = store.open(path), store.open(other)
    except NotFoundError:
        return True
    if first.size != second.size:
        return False
    starts = range(0, first.size, _COMPARED_BYTES)
    return all(first.read(at, at + _COMPARED_BYTES) == second.read(at, at + _COMPARED_BYTES) for at in starts)


def _size(entry: StoreEntry | None) -> int | None:
    return None if entry is None or entry.is_folder else entry.size
