"""pyarrow, imported when it is first used.

It takes longer to import than all of coldframe, and many commands never use it: `--help`, `detect`, `count`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa"]


class _Later:
    """A module that is imported when an attribute of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # the next use finds it here
        return value


if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = _Later("pyarrow")
