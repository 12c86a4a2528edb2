"""Whether a source is still the one that was planned.

    file        size : mtime_ns : ctime_ns : inode
    directory   sha256 over `relative name, size, mtime_ns, ctime_ns, inode` of every file below it

The inventory takes it, the task compares it before its first and after its last byte. An edit of equal size,
and one whose time was set back, change it too; reading does not. It says nothing across runs: a source that
was restored from a backup is the same by path, size and time, which is what the state goes by.
"""

from __future__ import annotations

import hashlib
import os

CHANGED = "changed while it was read: a later run converts it"


def identity_of(path: str) -> str:
    """The identity of what lies at `path` now; an OSError where it cannot be looked at."""
    found = os.stat(path)
    if not os.path.isdir(path):
        return _words(found)
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            one = os.path.join(folder, name)
            digest.update(f"{os.path.relpath(one, path)}\0{_words(os.stat(one))}\n".encode(errors="replace"))
    return digest.hexdigest()


def is_unchanged(path: str, identity: str) -> bool:
    """Whether `path` still has an identity that was taken before; what is gone has not."""
    try:
        return identity_of(path) == identity
    except OSError:
        return False


def _words(found: os.stat_result) -> str:
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}"
