"""Snapshots with any number of files: PyIceberg alone writes one manifest for all files of a commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles, _SnapshotProducer

MANIFEST_BYTES = 8 << 20
"""About how large a manifest gets, as Iceberg's own writers have it."""
_FIRST = 2000
"""Entries of the first manifest, by whose size the others are made."""


def add_snapshot(
    transaction: Any, io: Any, added: Iterable[Any], removed: Iterable[Any], *, is_alone: bool = False
) -> None:
    """Adds a snapshot to a transaction. `added`, `removed`: entries of data files. `is_alone`: the snapshot
    lists the added files only, and none that the table has already.
    """
    leaving = list(removed)
    has_snapshot = transaction.table_metadata.current_snapshot() is not None
    overwrites = bool(leaving) and has_snapshot
    kind = _Alone if is_alone else _Overwrite if overwrites else _Append
    operation = Operation.OVERWRITE if overwrites else Operation.APPEND
    with kind(operation=operation, transaction=transaction, io=io) as snapshot:
        for entry in leaving:
            snapshot.delete_data_file(entry)
        for entry in added:
            snapshot.append_data_file(entry)


def discard(transaction: Any) -> None:
    """Deletes what was written for a transaction that is not committed."""
    for producer in transaction._snapshot_producers:
        producer._clean_all_uncommitted()


class _Divided(_SnapshotProducer[Any]):
    """Divides the added files into several manifests."""

    def _manifests(self) -> list[ManifestFile]:
        added, self._added_data_files = self._added_data_files, []
        try:
            others = super()._manifests()
        finally:
            self._added_data_files = added
        return [*self._of_added(), *others]

    def _of_added(self) -> Iterable[ManifestFile]:
        at, count = 0, _FIRST
        while at < len(self._added_data_files):
            some = self._added_data_files[at : at + count]
            with self.new_manifest_writer(spec=self._transaction.table_metadata.spec()) as writer:
                for data_file in some:
                    writer.add(
                        ManifestEntry.from_args(
                            status=ManifestEntryStatus.ADDED,
                            snapshot_id=self._snapshot_id,
                            sequence_number=None,
                            file_sequence_number=None,
                            data_file=data_file,
                        )
                    )
            manifest = writer.to_manifest_file()
            yield manifest
            at += len(some)
            count = max(1, MANIFEST_BYTES * len(some) // max(manifest.manifest_length, 1))


class _Append(_Divided, _FastAppendFiles):
    pass


class _Alone(_Append):
    def _existing_manifests(self) -> list[ManifestFile]:
        return []


class _Overwrite(_Divided, _OverwriteFiles):
    pass
