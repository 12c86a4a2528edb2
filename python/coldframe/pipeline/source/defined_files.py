"""The files of the tables that a metastore defines, wherever they lie.

    walked        the directory of each table, and partitions that lie elsewhere
    by Spark      the location of a partition that Spark reads is one source, and not walked
    a file        belongs to the partition whose location contains it, and takes that partition's place
    unregistered  files in a table's directory and in no partition: reported, not migrated, as Hive skips them

Directories of other tables are not entered.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from coldframe._coldframe import ColdframeError, NotFoundError, SchemaError, are_folders_of, contents
from coldframe.hive.definition import columns_of, keys_of
from coldframe.hive.write_ids import OPTION
from coldframe.pipeline.file_access import canonical_root, root_of
from coldframe.pipeline.options import Options
from coldframe.pipeline.records import Listing, SourceFile, Unread
from coldframe.pipeline.scheduling import Scheduler, in_threads
from coldframe.pipeline.source.defined import DefinedSource, Part, TakenTable
from coldframe.pipeline.source.findings import Finding
from coldframe.pipeline.source.inventory import (
    ROOT,
    Inventory,
    is_hidden,
    new_inventory,
    walked,
    whole_folder,
)
from coldframe.pipeline.source.locations import Location
from coldframe.pipeline.source.ownership import Claims, Key, key_of
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.selection import Selection
from coldframe.pipeline.source.store_listing import walked_in_store
from coldframe.pipeline.source.tables import Table, TableSpec
from coldframe.pipeline.source.whole_directories import Directory, look_at_directory
from coldframe.sources import is_remote, options_for, text_options
from coldframe.spark.types import plain_schema

WHOLE = "directory"
"""The name, below its partition's place, of a directory that is read as a whole."""
_AT_ONCE = 16
"""How many partitions outside of the table's directory are walked at once."""


def check_apart(source: DefinedSource, goal: str) -> None:
    """Raises SchemaError if the target and a location of the source contain each other."""
    target = canonical_root(goal) + "/"
    for table in source.tables:
        for location in {table.location or "", *(part.location for part in table.parts)} - {""}:
            place = canonical_root(root_of(location)) + "/"
            if place.startswith(target) or target.startswith(place):
                raise SchemaError(f"{table.name} at {location} and target {goal} must not contain each other")


def look_at_defined(
    source: DefinedSource, options: Options, scheduler: Scheduler | None = None
) -> tuple[Inventory, list[Table], dict[str, list[Finding]]]:
    """The files, their tables, and the findings on tables by their names in the metastore."""
    inventory = new_inventory(source.uri, options.source_storage_options)
    untaken = (part.place for table in source.tables for part in table.parts if not part.is_taken)
    inventory.not_meant = frozenset(source.not_meant).union(untaken)
    sharing = Counter(table.location for table in source.tables if table.is_handled)
    looks = [
        _Look(table, source.claims, options, inventory, max(sharing[table.location], 1))
        for table in source.tables
    ]
    for look in looks:
        look.run(scheduler)
    inventory.unread.sort(key=lambda place: place.relative)
    findings = {look.table.name: list(look.findings) for look in looks}
    return inventory, sorted((look.made for look in looks), key=lambda place: place.name), findings


def place_in(place: str, below: str, keys: int = 0) -> str:
    """The place of a file, by its path below its partition's location. `keys`: how many of the folders name
    partition values; `=` in other folders is escaped.
    """
    *folders, name = below.split("/")
    others = (folder.replace("%", "%25").replace("=", "%3D") for folder in folders[keys:])
    return "/".join((place, *folders[:keys], *others, name))


def _folder_in(part: Part, below: str) -> str:
    if not below:
        return part.place
    return place_in(part.place, f"{below}/x", len(part.keys)).rpartition("/")[0]


def _names_values(part: Part, below: str) -> bool:
    """For unregistered partitions: whether the names of the folders above a file give its values."""
    return are_folders_of(part.keys, below.split("/")[:-1])


@dataclass
class _Around:
    """A walked directory: finds the owners of the files below it."""

    root: str
    parts: dict[Key, list[Part]]
    table: str
    claims: Claims
    selection: Selection
    _key: Key = ()

    def __post_init__(self) -> None:
        self._key, self._on = key_of(self.root), Location.of(self.root)

    def find(self, relative: str) -> tuple[Part | None, str, bool]:
        """The partition to which a path belongs, the path in the partition, and whether the path belongs to
        another table.
        """
        names = () if relative == ROOT else tuple(relative.split("/"))
        for depth in range(len(names), -1, -1):
            key = (*self._key, *names[:depth])
            for part in self.parts.get(key, ()):
                if Location.of(part.location).is_on(self._on):
                    return part, "/".join(names[depth:]), False
            if any(other != self.table for other in self.claims.at(key)):
                return None, "", True
        return None, "", False

    def takes(self, relative: str) -> bool:
        """Whether a file is migrated."""
        part, below, _ = self.find(relative)
        if part is None or not part.is_walked or not _names_values(part, below):
            return False
        return self.selection.takes(place_in(part.place, below, len(part.keys)))

    def enters(self, relative: str) -> bool:
        """Whether a directory may have files to migrate, or unregistered files."""
        part, below, is_foreign = self.find(relative)
        if part is None:
            return not is_foreign
        return part.is_walked and self.selection.enters(_folder_in(part, below))


class _Look:
    """Finds the files of one table."""

    def __init__(
        self, table: TakenTable, claims: Claims, options: Options, inventory: Inventory, sharing: int
    ) -> None:
        """`sharing`: how many tables are in the same directory of another system."""
        self.table, self._claims, self._options, self._inventory = table, claims, options, inventory
        self._sharing = sharing
        self.made = _new_table(table, inventory, options.timestamp_unit)
        self._readings = list(table.readings)
        self._parts: dict[Key, list[Part]] = {}
        for part in table.parts:
            if part.location:
                self._parts.setdefault(key_of(part.location), []).append(part)
        self._later: list[str] = []
        self._unread: list[str] = []
        self._strange: list[str] = []
        self._count = 0

    def run(self, scheduler: Scheduler | None) -> None:
        """Walks the table's directory, and its partitions elsewhere."""
        own, elsewhere = self._roots()
        for around in own:
            for listing in self._walked(around, scheduler):
                self._take(around, listing)

        def listings(around: _Around) -> tuple[_Around, list[Listing]]:
            return around, list(self._walked(around, None))

        calls = ((lambda around=around: listings(around)) for around in elsewhere)
        for around, some in in_threads(calls, _AT_ONCE):
            for listing in some:
                self._take(around, listing)
        whole = [part for part in self.table.parts if part.by_spark]
        looks = (functools.partial(self._whole, part) for part in whole)
        for part, directory in zip(whole, in_threads(looks, _AT_ONCE), strict=True):
            self._take_whole(part, directory)
        self.made.readings = tuple(self._readings)
        formats = {_called(self._readings[file.reading]) for file in self.made.files}
        self.made.format = ", ".join(sorted(formats or {part.format for part in self.table.parts}))

    def _roots(self) -> tuple[list[_Around], list[_Around]]:
        """The table's directory, and the partitions that lie elsewhere or in a hidden folder of it."""
        own = self.table.location
        above = None if own is None else self._around(own)
        elsewhere = []
        for some in self._parts.values():
            for part in some:
                if part.is_walked and not (above is not None and _sees(above.root, part.location)):
                    elsewhere.append(self._around(part.location))
        at_root = None if above is None else above.find(ROOT)[0]
        is_whole = at_root is not None and at_root.by_spark
        return ([] if above is None or is_whole else [above]), elsewhere

    def _around(self, root: str) -> _Around:
        return _Around(root, self._parts, self.table.name, self._claims, self._options.selection)

    def _walked(self, around: _Around, scheduler: Scheduler | None) -> Iterator[Listing]:
        location = around.root
        options = options_for(location, self._options.source_storage_options)
        is_whole = around.find(ROOT)[0] is not None
        try:
            if is_remote(location):
                yield from walked_in_store(location, around, options, scheduler, is_whole=is_whole)
            elif not os.path.lexists(location):
                # The comparison with the metastore reports the missing directory.
                return
            elif is_whole and (whole := whole_folder(location, of_several=self.table.is_handled)) is not None:
                listing = Listing()
                listing.add(whole)
                yield listing
            else:
                yield from walked(location, around)
        except NotFoundError:
            return
        except (ColdframeError, OSError) as error:
            yield Listing(unread=[Unread(ROOT, str(error))])

    def _whole(self, part: Part) -> Directory | Unread | None:
        """What Spark would read of a partition; None if its directory does not exist."""
        return look_at_directory(
            part.location, options_for(part.location, self._options.source_storage_options)
        )

    def _take_whole(self, part: Part, directory: Directory | Unread | None) -> None:
        place = place_in(part.place, WHOLE)
        if directory is None:
            return
        if isinstance(directory, Unread):
            self._inventory.unread.append(Unread(place, f"{part.location}: {directory.reason}"))
            self._unread.append(part.location)
            return
        self._inventory.hide([f"{part.location}/{name}" for name in directory.hidden])
        if not self._options.selection.takes(place):
            self._inventory.left_out.append(place)
        elif directory.file is not None:
            file = replace(directory.file, format=part.format)
            self._add(
                part, "", file, self._refused(part.format, directory.refusal) if directory.refusal else None
            )

    def _take(self, around: _Around, listing: Listing) -> None:
        inventory = self._inventory
        inventory.hide([f"{around.root}/{name}" for name in listing.hidden_names], listing.hidden)
        for unread in listing.unread:
            part, below, is_foreign = around.find(unread.relative)
            where = around.root if unread.relative == ROOT else f"{around.root}/{unread.relative}"
            # A link that is not followed may be a partition's location, which is walked separately.
            is_link = part is None and key_of(where) in self._parts
            if not (is_foreign or is_link):
                # A directory above partitions may hold files of any of these partitions.
                place = self.table.place if part is None else _folder_in(part, below)
                inventory.unread.append(Unread(place, f"{where}: {unread.reason}"))
                self._unread.append(where)
        for relative in listing.left_out:
            part, below, is_foreign = around.find(relative)
            if is_foreign or (part is not None and not part.is_walked):
                continue
            asked = None if part is None else _folder_in(part, below)
            if asked is not None and not self._options.selection.takes(asked):
                inventory.left_out.append(asked)
            else:
                self._count += 1
                self._strange = self._strange or [f"{around.root}/{relative}"]
        for file in listing.files:
            part, below, _ = around.find(file.relative)
            if part is not None:
                self._add(part, below, file)

    def _add(self, part: Part, below: str, file: SourceFile, number: int | None = None) -> None:
        """Adds a file.

        `number`: the number of the file's reading, if it does not follow from the file's format.
        """
        below = f"{below}/{WHOLE}".lstrip("/") if file.is_folder else below
        place = place_in(part.place, below, len(part.keys))
        number = self._reading_of(part, file) if number is None else number
        if file.format and self._has_unknown_writes(file, self._readings[number]):
            self._later.append(file.path)
        file = replace(file, relative=place, reading=number, tables=self._sharing)
        self._inventory.add(file)
        if file.format:
            self.made.files.append(file)
        elif file.size:
            self.made.damaged.append(file)
        else:
            self.made.empty.append(file)

    def _reading_of(self, part: Part, file: SourceFile) -> int:
        if file.format is None:
            return 0
        readings = part.directories if file.is_folder else part.readings
        number = readings.get(file.format)
        if number is not None:
            return number
        what = "a directory of a transactional table" if file.is_folder else f"{file.format} by its bytes"
        reason = f"{what}, but {part.format} in the metastore"
        return self._refused(file.format, reason)

    def _has_unknown_writes(self, file: SourceFile, reading: Reading) -> bool:
        """Whether a directory that is read with all its writes has writes that the metastore does
        not know.
        """
        writes = self.table.writes
        if writes is None or not file.is_folder or reading.by_spark or reading.refusal:
            return False
        # If a list of writes is read, the end of the run reports what the list leaves out.
        return OPTION not in reading.options and _has_later_writes(file, writes.text(self.table.name))

    def _refused(self, format: str, reason: str) -> int:
        refused = Reading(format, refusal=reason, is_only=False)
        if refused not in self._readings:
            self._readings.append(refused)
        return self._readings.index(refused)

    @property
    def findings(self) -> Iterator[Finding]:
        """The findings that keep the whole table from being safe to delete."""
        name, place = self.table.name, self.table.location or ""
        yield from self.table.findings
        if self._count:
            text = f"{self._count:,} files in no registered partition, such as {self._strange[0]}"
            yield Finding("unregistered", name, text, location=place)
        if self._later:
            text = (
                f"writes later than the metastore knows, in {len(self._later):,} of its directories, such as"
                f" {self._later[0]}: whether they are valid is unknown, so all were migrated"
            )
            yield Finding("writes", name, text, location=self._later[0])
        if self._unread:
            text = f"{len(self._unread):,} places could not be read, such as {self._unread[0]}"
            yield Finding("unread", name, text, location=self._unread[0])


def _has_later_writes(file: SourceFile, known: str) -> bool:
    try:
        items = contents(
            file.path,
            format=file.format or "",
            storage_options=text_options(file.storage_options),
            options={OPTION: known},
        )
    except (ColdframeError, OSError):
        # Reading the directory reports the error.
        return True
    return any(item["kind"] == "later writes" for item in items)


def _called(reading: Reading) -> str:
    """A format's name for people, and whether Spark reads it."""
    return reading.format if reading.by_spark is None else f"{reading.format} by Spark"


def _sees(root: str, location: str) -> bool:
    """Whether a walk of the root comes to a location."""
    above, below = key_of(root), key_of(location)
    is_below = below[: len(above)] == above and Location.of(root).is_on(Location.of(location))
    return is_below and not any(is_hidden(name) for name in below[len(above) :])


def _new_table(table: TakenTable, inventory: Inventory, unit: str) -> Table:
    definition = table.definition
    # The partition columns of a Hudi table are columns of its files.
    keys = keys_of(() if table.is_handled else definition.keys)
    spec = TableSpec(table.name, table.place, None, tuple((key.name, key.type) for key in keys))
    files, damaged, empty = (inventory.new_files() for _ in range(3))
    made = Table(
        table.name, table.place, "", spec, files, damaged, empty, place=table.place, called=table.name
    )
    # Another system has its own types.
    columns = () if table.is_handled else definition.storage.columns
    made.declared = plain_schema(columns_of(columns, unit), timestamp_unit=unit)
    made.have_keys(keys.names)
    return made
