"""Columns of unions as structs, since Parquet has no unions: `struct<tag, f0, f1, ..>`, as in a migration."""

from __future__ import annotations

from typing import Any

from coldframe.arrow import pa

__all__ = ["without_unions"]


def without_unions(reader: Any) -> Any:
    """A pyarrow.RecordBatchReader with structs in place of unions."""
    schema = pa.schema([field.with_type(plain_type(field.type)) for field in reader.schema])
    if schema.equals(reader.schema):
        return reader

    def batches() -> Any:
        for batch in reader:
            columns = [plain(column) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def plain_type(of: Any) -> Any:
    """A type with structs in place of unions."""
    if pa.types.is_union(of):
        branches = [of.field(i) for i in range(of.num_fields)]
        fields = [pa.field(f"f{i}", plain_type(branch.type)) for i, branch in enumerate(branches)]
        return pa.struct([pa.field("tag", pa.int32()), *fields])
    if pa.types.is_struct(of):
        return pa.struct([of.field(i).with_type(plain_type(of.field(i).type)) for i in range(of.num_fields)])
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(plain_type(of.value_type)))
    if pa.types.is_map(of):
        key, item = of.key_field, of.item_field
        return pa.map_(key.with_type(plain_type(key.type)), item.with_type(plain_type(item.type)))
    return of


def plain(array: Any) -> Any:
    """An array with structs in place of unions, which are sparse, as all of coldframe's are."""
    of, to = array.type, plain_type(array.type)
    if of.equals(to):
        return array
    if pa.types.is_union(of):
        # pyarrow's `type_codes` are those of the array of which this one is a slice.
        codes = pa.Array.from_buffers(pa.int8(), len(array), [None, array.buffers()[1]], offset=array.offset)
        fields = [codes.cast(pa.int32())]
        for place, code in enumerate(of.type_codes):
            branch = plain(array.field(place))
            # Nothing else than the value of the branch that is set.
            fields.append(branch.take(_indices(codes, code)))
        return pa.StructArray.from_arrays(fields, fields=list(to))
    validity = array.is_null()
    if pa.types.is_struct(of):
        children = [plain(array.field(i)) for i in range(of.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(to), mask=validity)
    if pa.types.is_list(of):
        items = plain(array.values)
        return pa.ListArray.from_arrays(_own(array.offsets), items, type=to, mask=validity)
    keys, items = plain(array.keys), plain(array.items)
    return pa.MapArray.from_arrays(_own(array.offsets), keys, items, type=to, mask=validity)


def _own(offsets: Any) -> Any:
    """A copy: pyarrow makes no nullable list from a slice of offsets."""
    return pa.array(offsets.to_numpy().copy(), offsets.type)


def _indices(codes: Any, code: int) -> Any:
    """The number of each row whose union has this branch; null for the others."""
    import pyarrow.compute as pc  # only where there is a union: it takes a tenth of a second to load

    rows = pa.array(range(len(codes)), pa.int64())
    return pc.if_else(pc.equal(codes, pa.scalar(code, codes.type)), rows, pa.scalar(None, pa.int64()))
