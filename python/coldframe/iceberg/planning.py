"""Plans a snapshot: its data files, and the deletes that apply to each of them.

    snapshot -> manifest list -> manifests of data, pruned by their partitions' ranges
                                   -> data files, pruned by their partition and by the ranges of their columns
                              -> manifests of deletes: each delete file applies by the rules below

| deletes | apply to data files | that are |
|---|---|---|
| vector | that it names | not newer |
| positions | of the same partition, or that it names; not those that a vector applies to | not newer |
| equality | of the same partition; all if its spec has no partitions | older |

"Newer" and "older" compare the sequence numbers of commits. PyIceberg prunes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.file import SYNC_SIZE, AvroFile, Block
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType

from coldframe._coldframe import shown
from coldframe.errors import ColdframeError, NotFoundError, SchemaError, unsupported
from coldframe.iceberg.files import DeleteFile, PlannedFile
from coldframe.iceberg.inputs import Inputs
from coldframe.iceberg.paths import below_store, is_same_file
from coldframe.logs import step

_log = logging.getLogger(__name__)
_THREADS = 8
"""The number of manifests that are read at once: most of the time is waiting for a store."""
_VERSION = max(MANIFEST_ENTRY_SCHEMAS)
_ENTRY = MANIFEST_ENTRY_SCHEMAS[_VERSION]
_FILE: Any = _ENTRY.find_type(2)
_PLACES = {field.field_id: at for at, field in enumerate(_FILE.fields)}
_REFERENCED, _OFFSET, _LENGTH = 143, 144, 145
"""Field ids of an entry for a deletion vector: its data file, and its offset and length in a Puffin file."""
_FILE_PATH = 2147483546
"""The id of the column with the paths of data files in position deletes."""


class _Exact(AvroFile[ManifestEntry]):
    """A manifest with doubles, which the compiled decoder of PyIceberg 0.12 rounds to 32 bits."""

    def _read_block(self) -> int:
        if self.block and self.decoder.read(SYNC_SIZE) != self.header.sync:
            raise ValueError("expected the sync marker after a block, found other bytes")
        count, data = self.decoder.read_int(), self.decoder.read_bytes()
        if codec := self.header.compression_codec():
            data = codec.decompress(data)
        self.block = Block(
            reader=self.reader, block_records=count, block_decoder=StreamingBinaryDecoder(data)
        )
        return count


@dataclass(frozen=True)
class _Entry:
    file: DataFile
    sequence: int
    spec: int

    @property
    def partition(self) -> tuple[Any, ...]:
        return tuple(self.file.partition[at] for at in range(len(self.file.partition)))


class Planner:
    """Plans the scans of one snapshot."""

    def __init__(self, metadata: Any, snapshot: Any, schema: Schema, files: Inputs) -> None:
        self._snapshot, self._schema, self._files = snapshot, schema, files
        self._specs = metadata.specs()
        self._types = {
            field.field_id: field.field_type for known in metadata.schemas for field in known.fields
        }
        self._manifests: list[ManifestFile] | None = None

    def plan(self, expression: BooleanExpression) -> list[PlannedFile]:
        """The data files that may have rows for which the expression is true, with their deletes."""
        if self._snapshot is None:
            return []
        pruning = _Pruning(self._schema, self._specs, expression)
        data = [manifest for manifest in self._of(ManifestContent.DATA) if pruning.may_have(manifest)]
        entries = [entry for entry in self._entries(data) if pruning.may_match(entry)]
        deletes = _Deletes(self._specs)
        for entry in self._entries(self._of(ManifestContent.DELETES)) if entries else ():
            deletes.add(entry)
        return [self._planned(entry, deletes) for entry in entries]

    def _of(self, content: ManifestContent) -> list[ManifestFile]:
        if self._manifests is None:
            with _reading("manifest list", self._snapshot.manifest_list):
                self._manifests = list(self._snapshot.manifests(self._files))
        return [manifest for manifest in self._manifests if manifest.content == content]

    def _entries(self, manifests: Iterable[ManifestFile]) -> Iterator[_Entry]:
        with ThreadPoolExecutor(_THREADS) as pool:
            for entries in pool.map(self._read, manifests):
                yield from entries

    def _read(self, manifest: ManifestFile) -> list[_Entry]:
        path = manifest.manifest_path
        with step(_log, logging.DEBUG, "reading the manifest %s", path), _reading("manifest", path):
            return self._read_manifest(manifest)

    def _read_manifest(self, manifest: ManifestFile) -> list[_Entry]:
        with self._reader_of(manifest.partition_spec_id)(
            self._files.new_input(manifest.manifest_path),
            _ENTRY,
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            live = [entry for entry in reader if entry.status != ManifestEntryStatus.DELETED]
        return [
            _Entry(entry.data_file, _sequence(entry, manifest), manifest.partition_spec_id) for entry in live
        ]

    def _reader_of(self, spec_id: int) -> type[AvroFile[ManifestEntry]]:
        """The reader of manifests with partitions of a spec."""
        sources = {part.source_id for part in self._specs[spec_id].fields}
        is_double = any(isinstance(self._types.get(source), DoubleType) for source in sources)
        return _Exact if is_double else AvroFile[ManifestEntry]

    def _planned(self, entry: _Entry, deletes: _Deletes) -> PlannedFile:
        file = entry.file
        _check_plain(file)
        positions, equality = deletes.of(entry)
        parts = zip(self._specs[entry.spec].fields, entry.partition, strict=True)
        partition = {part.source_id: v for part, v in parts if isinstance(part.transform, IdentityTransform)}
        size = (file.record_count, file.file_size_in_bytes)
        return PlannedFile(file.file_path, _format(file), *size, partition, positions, equality)


@contextlib.contextmanager
def _reading(what: str, path: str | None) -> Iterator[None]:
    """Names the file in errors of PyIceberg."""
    place = f"{shown(path or '')}: the {what} of an Iceberg table"
    try:
        yield
    except FileNotFoundError as gone:
        raise NotFoundError(f"{place} does not exist") from gone
    except (ColdframeError, OSError):
        raise
    except Exception as reason:  # PyIceberg has no common class of errors for wrong bytes
        why = str(reason).partition("\n")[0]
        raise SchemaError(f"{place} cannot be read: {type(reason).__name__}: {why}") from reason


def _sequence(entry: ManifestEntry, manifest: ManifestFile) -> int:
    """The sequence number of the entry, or of the manifest that added it; 0 in version 1."""
    own = entry.sequence_number
    return int(own if own is not None else manifest.sequence_number or 0)


def _format(file: DataFile) -> str:
    return str(file.file_format.value).lower()


def _check_plain(file: DataFile) -> None:
    if file.key_metadata is not None:
        raise unsupported(f"{shown(file.file_path)}: encrypted by Iceberg")


class _Pruning:
    """Prunes manifests and files by an expression."""

    def __init__(self, schema: Schema, specs: Mapping[int, Any], expression: BooleanExpression) -> None:
        self._all = isinstance(expression, AlwaysTrue)
        self._schema, self._specs, self._expression = schema, specs, expression
        self._by_spec: dict[int, tuple[Any, Any]] = {}
        self._metrics = None if self._all else _InclusiveMetricsEvaluator(schema, expression)

    def may_have(self, manifest: ManifestFile) -> bool:
        return self._all or bool(self._of(manifest.partition_spec_id)[0](manifest))

    def may_match(self, entry: _Entry) -> bool:
        if self._all:
            return True
        if not self._of(entry.spec)[1](entry.file.partition):
            return False
        try:
            return self._metrics is None or bool(self._metrics.eval(entry.file))
        except Exception:  # bounds of a former type of the column, which PyIceberg cannot read
            return True

    def _of(self, spec_id: int) -> tuple[Any, Any]:
        if spec_id not in self._by_spec:
            spec = self._specs[spec_id]
            try:
                projected = inclusive_projection(self._schema, spec)(self._expression)
                kind = Schema(*spec.partition_type(self._schema).fields)
                made = (
                    manifest_evaluator(spec, self._schema, projected),
                    expression_evaluator(kind, projected, True),
                )
            except (TypeError, ValueError):  # partitioned by a column that the table no longer has
                made = (_always, _always)
            self._by_spec[spec_id] = made
        return self._by_spec[spec_id]


def _always(_: object) -> bool:
    return True


@dataclass
class _Deletes:
    """The delete files of a snapshot, by the data files that they apply to."""

    specs: Mapping[int, Any]
    vectors: dict[str, list[tuple[int, DeleteFile]]] = field(default_factory=dict)
    """By the part that all names of the data file share; `by_path` has the same keys."""
    by_path: dict[str, list[tuple[int, DeleteFile]]] = field(default_factory=dict)
    by_partition: dict[tuple[Any, ...], list[tuple[int, DeleteFile]]] = field(default_factory=dict)
    equality: dict[tuple[Any, ...], list[tuple[int, DeleteFile]]] = field(default_factory=dict)
    everywhere: list[tuple[int, DeleteFile]] = field(default_factory=list)

    def add(self, entry: _Entry) -> None:
        file = entry.file
        _check_plain(file)
        key = (entry.spec, *entry.partition)
        if file.content == DataFileContent.EQUALITY_DELETES:
            delete_file = DeleteFile(
                file.file_path,
                _format(file),
                equality_ids=tuple(file.equality_ids or ()),
                rows=file.record_count,
            )
            is_global = not self.specs[entry.spec].fields
            of = self.everywhere if is_global else self.equality.setdefault(key, [])
            of.append((entry.sequence, delete_file))
            return
        referenced = _extra(file, _REFERENCED) or _only_path(file)
        if file.file_format == FileFormat.PUFFIN:
            part = (_extra(file, _OFFSET), _extra(file, _LENGTH))
            if referenced is None or None in part:
                raise unsupported(
                    f"{shown(file.file_path)}: a deletion vector whose entry lacks its position"
                )
            vector = DeleteFile(file.file_path, _format(file), referenced, part)
            self.vectors.setdefault(below_store(referenced), []).append((entry.sequence, vector))
            return
        delete_file = DeleteFile(file.file_path, _format(file), referenced, rows=file.record_count)
        of = (
            self.by_partition.setdefault(key, [])
            if referenced is None
            else self.by_path.setdefault(below_store(referenced), [])
        )
        of.append((entry.sequence, delete_file))

    def of(self, entry: _Entry) -> tuple[tuple[DeleteFile, ...], tuple[DeleteFile, ...]]:
        """The deletes by position and by equality that apply to a data file."""
        path, key = entry.file.file_path, (entry.spec, *entry.partition)
        equal = [*self.everywhere, *self.equality.get(key, ())]
        equality = tuple(delete_file for number, delete_file in equal if number > entry.sequence)
        vectors = _since(_of_file(self.vectors, path), entry)
        if len(vectors) > 1:
            raise unsupported(f"{shown(path)}: {len(vectors)} deletion vectors in one snapshot")
        if vectors:
            return vectors, equality
        by_path = _of_file(self.by_path, path)
        return _since([*by_path, *self.by_partition.get(key, ())], entry), equality


def _of_file(deletes: Mapping[str, list[tuple[int, DeleteFile]]], path: str) -> list[tuple[int, DeleteFile]]:
    """The deletes that name a data file."""
    some = deletes.get(below_store(path), ())
    return [(number, file) for number, file in some if is_same_file(file.referenced or "", path)]


def _since(deletes: Iterable[tuple[int, DeleteFile]], entry: _Entry) -> tuple[DeleteFile, ...]:
    return tuple(delete_file for number, delete_file in deletes if number >= entry.sequence)


def _extra(file: DataFile, field_id: int) -> Any:
    """The value of an entry under a field id; None if the entry has no such value."""
    at = _PLACES.get(field_id)
    return None if at is None or at >= len(file) else file[at]


def _only_path(file: DataFile) -> str | None:
    """The only data file that position deletes name, if the bounds of their path column are equal."""
    low, high = (file.lower_bounds or {}).get(_FILE_PATH), (file.upper_bounds or {}).get(_FILE_PATH)
    return low.decode() if low is not None and low == high else None
