"""Columns of unions as structs, since Parquet has no unions: `struct<tag, f0, f1, ..>`, as in a migration."""

from __future__ import annotations

from typing import Any

from coldframe._coldframe import conform_batch
from coldframe.arrow import pa


def without_unions(reader: Any) -> Any:
    """A pyarrow.RecordBatchReader with structs in place of unions."""
    schema = pa.schema([field.with_type(_plain_type(field.type)) for field in reader.schema])
    if schema.equals(reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(schema, (conform_batch(batch, schema) for batch in reader))


def _plain_type(of: Any) -> Any:
    """A type with structs in place of unions."""
    if pa.types.is_union(of):
        branches = [of.field(i) for i in range(of.num_fields)]
        fields = [pa.field(f"f{i}", _plain_type(branch.type)) for i, branch in enumerate(branches)]
        return pa.struct([pa.field("tag", pa.int32()), *fields])
    if pa.types.is_struct(of):
        return pa.struct([of.field(i).with_type(_plain_type(of.field(i).type)) for i in range(of.num_fields)])
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(_plain_type(of.value_type)))
    if pa.types.is_map(of):
        key, item = of.key_field, of.item_field
        return pa.map_(key.with_type(_plain_type(key.type)), item.with_type(_plain_type(item.type)))
    return of
