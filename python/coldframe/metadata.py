"""The metadata, statistics, layout and integrity of an open file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from coldframe.arrow import pa
from coldframe.batches import names_of
from coldframe.filters import Bound, Filter, bind, parse

if TYPE_CHECKING:
    from coldframe._coldframe import RawFile


class _WithSchema(Protocol):
    _raw: RawFile

    @property
    def schema(self) -> pa.Schema: ...


class FileMetadata:
    """The part of `File` that returns no rows."""

    _raw: RawFile

    @property
    def metadata(self) -> Any:
        """All metadata of the file, as nested dicts."""
        return self._raw.metadata()

    def units(
        self: _WithSchema, columns: Sequence[str] | None = None, *, filter: Filter | None = None
    ) -> list[dict[str, Any]]:
        """The units (stripes, row groups, blocks) that a read of these columns and rows would decode.

        Decodes nothing. Each has `structure` (its name), `offset` and `length` (its location in the file),
        `rows` (how many would be decoded, None if unknown) and `fetched` (bytes to read; in a local ORC
        file with a filter, only those of the filter's columns: other columns are read if a row passes). Units
        that statistics, indexes or bloom filters exclude for `filter` are not listed.
        """
        decoded = names_of(columns)
        parsed = parse(filter)
        bound = bind(parsed, self.schema) if parsed is not None else Bound(None)
        names = ("structure", "offset", "length", "rows", "fetched")
        units = self._raw.units(columns=decoded, predicate=bound.predicate)
        return [dict(zip(names, unit, strict=True)) for unit in units]

    def statistics(self) -> Any:
        """Per column min, max, null_count ..., per file, stripe, row group or block, as stored."""
        return self._raw.statistics()

    def lengths(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """The lengths of the keys, values and rows of an HFile, as HBase's `hfile -s` prints them. Reads the
        whole file.

        `key_bytes`, `value_bytes`, `row_bytes` and `row_cells` each have `count`, `min`, `max`, `mean`,
        `stddev`, `median`, `p75` .. `p999` and a `histogram`: a list of `from`, `to` and `count`.
        `biggest_row` has the most bytes. `progress` is called with the number of cells read so far.
        """
        return self._raw.lengths(progress)

    def dictionaries(self, column: str) -> list[dict[str, Any]]:
        """The dictionaries of a column of an ORC file (one for each stripe) or a CFile, as stored.

        Each has `part` (such as `stripe 0`), `offset` and `length` of its values in the file, and `values`, a
        pyarrow.Array: strings, or binary if some values are not UTF-8. Empty if the column has no
        dictionaries.
        """
        dictionaries: list[dict[str, Any]] = []
        self.each_dictionary(column, dictionaries.append)
        return dictionaries

    def each_dictionary(self, column: str, take: Callable[[dict[str, Any]], None]) -> None:
        """Passes the dictionaries to `take` one by one, so that only one is in memory."""

        def add(part: str, start: int, end: int, values: Any) -> None:
            array = pa.record_batch(values).column(0)
            take({"part": part, "offset": start, "length": end - start, "values": array})

        self._raw.dictionaries(column, add)

    def proposal(self) -> dict[str, Any] | None:
        """Options of `open` that would reveal more of the file, guessed from its values.

        For an HBase table, the columns of a wide table; for an RCFile, the SerDe that its cells suggest.
        People should review these options. None if there is no proposal.
        """
        return self._raw.proposal()

    def inspect(self) -> dict[str, Any]:
        """The physical layout as a tree: every byte belongs to a node with a name, an offset and a length."""
        return self._raw.inspect()

    def verify(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Decodes everything and checks everything that the format can verify.

        Never raises on damage. The report has `rows`, `units` and `damage`, and states how much was
        checked: `checksums` is "all", "some", "none" (the file stores none) or "ignored"; `checked` lists
        the other checks as text. `progress` is called with the number of rows decoded so far.
        """
        return self._raw.verify(progress)
