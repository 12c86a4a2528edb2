"""Operations that only CFiles support: seek by ordinal, look up a value, query a bloom file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coldframe import _coldframe
from coldframe.arrow import pa

if TYPE_CHECKING:
    from coldframe._coldframe import RawFile


class Ordinals:
    """The part of `File` that only CFiles support; other formats raise UnsupportedError."""

    _raw: RawFile

    def seek(self, ordinal: int, *, batch_size: int = 65536) -> pa.RecordBatchReader:
        """The rows from `ordinal` on as a pyarrow.RecordBatchReader. Uses the positional index."""
        if ordinal < 0:
            raise ValueError(f"ordinal must be at least 0, not {ordinal}")
        scan = self._raw.scan(batch_size=batch_size, split=_coldframe.seek_ordinal(self._raw, ordinal))
        return pa.RecordBatchReader.from_batches(pa.schema(scan), (pa.record_batch(batch) for batch in scan))

    def lookup(self, value: Any) -> pa.Table:
        """The rows with this value, as a pyarrow.Table of `ordinal` and `value`; empty if there are none.

        Searches the value index if the file has one; otherwise reads the whole file.
        """
        wanted = value if isinstance(value, pa.Scalar) else pa.scalar(value)
        # Converts the value through Arrow, since the last year of Python's datetime is 9999.
        array = pa.repeat(wanted, 1) if wanted.is_valid else pa.nulls(1, wanted.type)
        schema = pa.schema(self._raw)
        zone = getattr(schema.field("value").type, "tz", None) if "value" in schema.names else None
        if zone and pa.types.is_timestamp(array.type) and array.type.tz is None:
            array = array.cast(pa.timestamp(array.type.unit, zone))
        return pa.Table.from_batches([pa.record_batch(_coldframe.lookup_value(self._raw, array))])

    def might_contain_key(self, key: bytes) -> bool:
        """False only if the encoded primary key is certainly not in this Kudu bloom file."""
        return _coldframe.might_contain_key(self._raw, key)
