"""pyarrow, imported when it is first used.

It takes longer to import than all of coldframe, and many commands never use it: `--help`, `detect`, `count`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["own_process", "pa", "without_numpy"]

_owned = False


def own_process() -> None:
    """Says that this process runs one command, and nobody else uses its modules."""
    global _owned
    _owned = True


def without_numpy() -> None:
    """Lets pyarrow do without numpy and pandas, which it imports where they are installed.

    Printing rows needs neither. `import pyarrow` takes half the time without them, and `import
    pyarrow.dataset` an eighth. Only in a process of our own: `import numpy` fails from now on.
    """
    if _owned and "pyarrow" not in sys.modules:
        for name in ("numpy", "pandas"):
            sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # an import of it fails


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
