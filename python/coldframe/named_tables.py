"""The tables below a directory, by name: by their own, and by those of a copied Hive warehouse."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coldframe._coldframe import shown
from coldframe.file import File
from coldframe.scanning import Dataset
from coldframe.table_listing import FoundTable, tables


def estate(source: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> Estate:
    """The tables below a directory, which open by name: `cf.estate("warehouse/")["sales.orders"]`.

    Args:
        source: a path or URL, as for `tables`. No table is opened yet.
        storage_options: as for `open`.
    """
    return Estate(
        os.fspath(source), tables(source, storage_options=storage_options, rows=False), storage_options
    )


class Estate(Mapping[str, "File | Dataset"]):
    """The tables of a directory: `list(estate)` has their names, `estate[name]` opens one."""

    def __init__(
        self, source: str, listed: Iterable[FoundTable], storage_options: Mapping[str, Any] | None = None
    ) -> None:
        """`listed`: the tables below `source`."""
        self.source = source
        self.tables = {table.name: table for table in listed}
        """The tables by their own names: the folders below the directory, with dots."""
        self._by_hive = by_hive_names(self.tables)
        self._storage_options = storage_options

    def find(self, name: str) -> FoundTable | None:
        """A table by its own name or the one that Hive gave it, unopened; None if there is none."""
        return self.tables.get(name) or self._by_hive.get(name)

    def __getitem__(self, name: str) -> File | Dataset:
        """Opens a table; a KeyError with the nearest name if there is none of this name."""
        table = self.find(name)
        if table is None:
            near = difflib.get_close_matches(name, [*self.tables, *self._by_hive], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"no table {name!r} in {shown(self.source)}{hint}")
        return table.open(storage_options=self._storage_options)

    def __contains__(self, name: object) -> bool:
        """Whether there is a table of this name. Opens nothing."""
        return isinstance(name, str) and self.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        """The tables' own names."""
        return iter(self.tables)

    def __len__(self) -> int:
        """The number of tables."""
        return len(self.tables)

    def __repr__(self) -> str:
        """The names of the tables, with formats and numbers of files."""
        lines = [f"  {table.name}: {table.format}, {table.files:,} files" for table in self.tables.values()]
        return "\n".join([f"<Estate {shown(self.source)}: {len(lines):,} tables>", *lines])

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.tables, *self._by_hive]


def by_hive_names(known: Mapping[str, FoundTable]) -> dict[str, FoundTable]:
    """The tables of a copied warehouse by their names in Hive: `sales.orders`, or `orders` if it is unique.

    Such a table lies in a folder `sales.db/orders`, so its own name ends with `sales.db.orders`.
    """
    named: dict[str, list[FoundTable]] = {}
    for name, table in known.items():
        if (match := re.search(r"(?:^|\.)([^.]+)\.db\.([^.]+)$", name)) is not None:
            for short in (".".join(match.groups()), match[2]):
                named.setdefault(short, []).append(table)
    return {name: some[0] for name, some in named.items() if len(some) == 1 and name not in known}
