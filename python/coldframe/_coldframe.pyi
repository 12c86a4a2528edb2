"""The compiled part: handles over the Rust core. Everything Arrow crosses as C data or C stream capsules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, final

class ArrowStreamExportable(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class ArrowArrayExportable(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class ArrowSchemaExportable(Protocol):
    def __arrow_c_schema__(self) -> object: ...

__version__: str

class ColdframeError(Exception): ...

class CorruptFileError(ColdframeError):
    path: str | None
    offset: int | None
    structure: str
    reason: str

class LimitError(ColdframeError):
    path: str | None
    offset: int | None
    structure: str
    what: str
    limit: int
    option: str

class UnsupportedError(ColdframeError):
    what: str

class SchemaError(ColdframeError, ValueError): ...
class KeyUnavailableError(ColdframeError): ...
class NotFoundError(ColdframeError): ...

# The identity of a file in a listing: size, milliseconds since 1970, etag.
_Known = tuple[int, int | None, str | None]

def detect(
    source: object, storage_options: Mapping[str, str] | None = None, known: _Known | None = None
) -> str | None:
    """The name of the format, detected from the bytes; None for other formats."""

def set_trace(on: bool) -> bool:
    """Turns the trace of the core on standard error on or off. Returns whether it was on."""

def formats() -> dict[str, dict[str, Any]]:
    """{format: {"open": {option: {..}}, "write": {option: {..}}, "capabilities": {name: value}}}

    An option has "kind" (flag, int, size, float, text, bytes, choice, open_choice, names, map, time,
    time_range, schema), "default" (None if its help describes it), "choices", "aliases", "help".

    Capabilities: keys, seek, lookup, might_contain (the queries of `File`), needs_schema, folders, tables,
    written, endings, empty_files, tables_of, folder_option (the flag that opens a folder as one table),
    side_by_side (folders beside each other are one source), input_formats (ends of Hive's class names),
    unit_option (the option that sets the unit of timestamps), zone_option (the option that turns timestamps
    into instants of a time zone), row_numbers_option (the option that names a further column with the
    numbers of rows).
    """

def parse_option(name: str, text: str, *, format: str | None = None, write: bool = False) -> Any:
    """Parses the text of an option of a format, or of any format if `format` is None.

    An option that no format has stays text. An invalid value raises ValueError.
    """

def load_options(given: Mapping[str, str], format: str | None = None) -> dict[str, Any]:
    """The options of Spark's `load()`, by the names of `coldframe.spark.options.ReadOptions`.

    `format`: the format in the name of the source, such as `coldframe_orc`.
    """

def save_options(given: Mapping[str, str], format: str | None = None) -> dict[str, Any]:
    """The options of Spark's `save()`, by the names of `spark.options.WriteOptions`."""

def local_path(path: str) -> str | None:
    """The local path that a path or a `file://` URL names; None for a URL of another store."""

def shown(path: str) -> str:
    """A path or URL as people may see it: without passwords and without a query, which may sign it."""

def shown_in(text: str) -> str:
    """A text with each URL in it as `shown` has it."""

def store_schemes() -> list[str]:
    """The schemes of URLs that are read without a Python file system."""

def store_options() -> list[tuple[str, list[str], list[str], str]]:
    """Of each option: name, the kinds of stores that have it, aliases (`!`: the opposite), help."""

def resolved_options(url: str, storage_options: Mapping[str, str] | None = None) -> dict[str, str]:
    """The options of a URL's store by their main names: the given ones and those of the environment.

    They contain secrets, to configure other libraries.
    """

@final
class StoreEntry:
    """A file or folder of a store. `path` is relative to the store's root, `modified` in ms since 1970."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...
    @property
    def modified(self) -> int | None: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def identity(self) -> _Known:
        """The argument `known` of `open_file`."""

@final
class StoreListing:
    """Entries in lists of up to 1,000, as they arrive."""

    def __iter__(self) -> StoreListing: ...
    def __next__(self) -> list[StoreEntry]: ...

@final
class StoreUpload:
    """An upload as a binary file to write. Without `finish`, no file appears."""

    def write(self, data: bytes) -> int: ...
    def tell(self) -> int: ...
    def flush(self) -> None: ...
    def writable(self) -> bool: ...
    def readable(self) -> bool: ...
    def seekable(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def finish(self) -> StoreEntry:
        """Makes the file appear. The `path` of the entry is the store's name of it."""
    def abandon(self) -> None:
        """Discards the upload."""

@final
class StoreFile:
    """A file of a store, read by ranges from any thread."""

    @property
    def size(self) -> int: ...
    @property
    def identity(self) -> _Known: ...
    def read(self, start: int, stop: int) -> bytes:
        """The bytes of a range, fewer at the end of the file."""

@final
class Store:
    """The files at and below a path or URL. Paths are relative to that, `""` is the root itself.

    mode: "new" raises FileExistsError if the path exists (of several writers, one succeeds); "over" replaces
    it.
    """

    def __new__(cls, url: str, storage_options: Mapping[str, str] | None = None) -> Store: ...
    @staticmethod
    def of(files: object, url: str, root: str) -> Store:
        """The files of an object with the interface in `coldframe.filesystems`, below its path `root`."""
    @property
    def url(self) -> str: ...
    @property
    def is_local(self) -> bool: ...
    def url_of(self, path: str) -> str: ...
    def below(self, path: str) -> Store:
        """The files at and below a path."""
    def list(self, path: str = ..., *, recursive: bool = False) -> StoreListing:
        """The direct entries or, if recursive, all files below; in any order."""
    def stat(self, path: str = ...) -> StoreEntry | None: ...
    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes: ...
    def open(self, path: str = ..., known: _Known | None = None) -> StoreFile:
        """Opens a file for reading by ranges. With `known`, a changed file is an error."""
    def put(self, path: str, data: bytes, *, mode: str = "new", etag: str | None = None) -> StoreEntry:
        """Writes a whole file. With "over" and an etag, replaces only the content with this etag."""
    def create(self, path: str = ..., *, mode: str = "new", permissions: int | None = None) -> StoreUpload:
        """Starts a file, which appears when it is finished. Creates folders below the root. It has those
        `permissions` that the umask leaves; stores without permissions ignore them.
        """
    def publish(self, source: str, path: str, *, mode: str = "new") -> None:
        """Renames a complete file atomically."""
    def above(self) -> tuple[Store, str] | None:
        """The store of the parent folder, and the root's name in it."""
    @property
    def renames_folders(self) -> bool:
        """Whether `publish_folder` is supported."""
    def publish_folder(self, source: str, path: str) -> None:
        """Renames a folder atomically; FileExistsError unless the new name is free or an empty folder."""
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file (NotFoundError if there is none) or a folder with all below."""
    def check_exclusive(self, path: str) -> None:
        """Raises UnsupportedError if the store overwrites in mode "new". Writes and deletes a file there."""

def hash_rows(batch: ArrowArrayExportable, target: ArrowSchemaExportable) -> bytes:
    """The hash of each row, in the types of `target`'s columns, as little-endian 64-bit words."""

def conform_batch(batch: Any, target: Any) -> Any:
    """A pyarrow.RecordBatch with exactly the pyarrow.Schema `target`; columns match by position.

    Raises SchemaError if names differ, or if a value would change in the target's type by more than digits
    below a microsecond. Returns a batch that has the schema already.
    """

def unified(schemas: Sequence[tuple[str, Any]], table: str | None = None) -> Any:
    """One pyarrow.Schema for those of several files, given with their paths: the first one's columns (and
    metadata), then what the others add, in types as wide as needed.

    If a column has incompatible types, a SchemaError names both files and the `table`.
    """

def plain_type(arrow_type: ArrowSchemaExportable, timestamp_unit: str) -> Any:
    """Spark's type for the values of a pyarrow.DataType, as a pyarrow.DataType."""

def plain_schema(schema: ArrowSchemaExportable, timestamp_unit: str) -> Any:
    """A pyarrow.Schema in Spark's types: nullable, without metadata."""

def type_shape(arrow_type: ArrowSchemaExportable) -> str:
    """A pyarrow.DataType as text, the same for structs whose fields differ in their order alone."""

def parse_columns(text: str, *, partitions: bool = False, timestamp_unit: str = "us") -> Any:
    """The columns of a list in Hive's syntax, `id bigint, tags array<string>`, as a pyarrow.Schema.

    With `partitions`, only types that the name of a directory can hold. A mistake is a SchemaError.
    """

def partition_values(table: str, names: Sequence[str], keys: Sequence[Any]) -> RawBatch:
    """The values of partitions by their names, `dt=2014-01-01/region=eu`: a row for each.

    As in Hive, a value that is none of its key's type is null.
    """

def matching_rows(
    predicate: Predicate, schema: ArrowSchemaExportable, rows: ArrowArrayExportable
) -> list[int]:
    """The numbers of the rows of known values that a filter, bound to a table's columns, keeps."""

def serde_properties(parameters: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table or partition that mean something to a SerDe."""

def declared_format(input_format: str | None, parameters: Mapping[str, str]) -> str:
    """The format by the table's properties or input format; if it is not ours, the name of the class."""

def hudi_view(
    input_format: str | None, parameters: Mapping[str, str], serde_properties: Mapping[str, str]
) -> str | None:
    """The view of a Hudi table that a definition shows; None if its table is not one of Hudi."""

def location_of_files(
    kind: str, location: str | None, parameters: Mapping[str, str], serde_properties: Mapping[str, str]
) -> str | None:
    """Where a table's files are; None if it has no files: views, HBase tables and the like."""

def partitions_are_registered(parameters: Mapping[str, str]) -> bool:
    """Whether the metastore has the partitions of a partitioned table, unlike some tables of Spark."""

def match_by_position(parameters: Mapping[str, str]) -> bool:
    """Whether Hive matches a table's columns by position even in files that have names."""

def are_folders_of(keys: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether the outermost folders name a value of each key: `dt=2014-01-01`, `region=asia%2Fpacific`. More
    folders may follow.
    """

def print_columns(schema: ArrowSchemaExportable) -> str:
    """The columns of a pyarrow.Schema as a list in Hive's syntax."""

def with_fields(array: Any, target: Any) -> Any:
    """A pyarrow.Array with all struct fields of the pyarrow.DataType `target`, in its order; missing fields
    are null.

    Keeps types. Returns the array unchanged if it is of another kind than the target.
    """

def pruned(array: Any, target: Any) -> Any:
    """A pyarrow.Array with only the struct fields that the pyarrow.DataType `target` has, and its views."""

def requested_strings(requested: object | None) -> str | None:
    """The option `strings` for the schema capsule that a consumer passes to `__arrow_c_stream__`."""

def without_views(schema: Any) -> Any:
    """The pyarrow.Schema with plain strings instead of views; the same object if it has none."""

@final
class RawOpening:
    """The arguments with which files are opened."""

    def __new__(
        cls,
        *,
        format: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        verify_checksums: bool = True,
        keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
        schema: ArrowSchemaExportable | str | None = None,
        options: Mapping[str, Any] | None = None,
        microseconds: bool = False,
    ) -> RawOpening: ...

def open_file(
    opening: RawOpening,
    source: object,
    *,
    storage_options: Mapping[str, str] | None = None,
    recorded: Sequence[tuple[int, bytes]] | None = None,
    known: _Known | None = None,
) -> RawFile:
    """source: str path or URL, Store, bytes-like, or an object with read/seek/tell.

    `recorded`: the result of RawFile.recorded() for the same file, so that opening it again reads nothing.
    """

def splits_of(
    file: RawFile, split_bytes: int, opening: RawOpening, path: str, *, source: object = None
) -> list[RawSplit]:
    """The splits of an open file. `source`: the handle of a source that is an object of this process."""

@final
class RawSplit:
    """A split of a file or table, as plain data for other processes."""

    def __new__(
        cls,
        opening: RawOpening,
        path: str,
        cut: tuple[int, int, int],
        *,
        rows: int | None = None,
        recorded: Sequence[tuple[int, bytes]] = ...,
        known: _Known | None = None,
        own: Sequence[tuple[int, bytes]] = ...,
    ) -> RawSplit: ...
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def cut(self) -> tuple[int, int, int, int | None]:
        """Part, start, stop, rows if known."""
    @property
    def share(self) -> tuple[int, int] | None:
        """Its number and the count of shares, if it is a share of its file's splits."""
    @property
    def known(self) -> _Known | None: ...
    @property
    def own(self) -> list[tuple[int, bytes]]: ...
    @property
    def recorded(self) -> list[tuple[int, bytes]]: ...
    @property
    def weight(self) -> int | None:
        """Its size in bytes for packing; None for a split of a folder that is one table."""
    def arguments(self) -> tuple[dict[str, str], bool, dict[str, bytes], dict[str, Any]]:
        """Storage options, whether checksums are compared, keys, the format's options."""
    def options(self) -> dict[str, Any]: ...
    @property
    def is_of_table(self) -> bool:
        """Whether its rows have the columns of a table of many files."""
    @property
    def is_bound(self) -> bool:
        """Whether its bytes need objects of Python: a file system, or a function for keys."""
    @property
    def travels(self) -> bool: ...
    def constants(self) -> RawBatch:
        """The partition's values: a batch of one row."""
    def open(self, *, alone: bool = False) -> RawFile:
        """Opens its file, or only the parts that the split's rows need."""
    def expand(self) -> list[RawSplit]:
        """Opens the file of a share and returns its splits; for other splits, itself."""
    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        batch_size: int = 65536,
        on_error: str = "raise",
        strings: str | None = None,
    ) -> RawTableRows: ...
    def to_bytes(self) -> bytes: ...
    def __arrow_c_schema__(self) -> object: ...

def plan_to_bytes(splits: Sequence[RawSplit]) -> bytes:
    """Splits as the bytes of one plan, which stores common parts once."""

def plan_from_bytes(
    bytes: bytes,
    *,
    storage_options: Mapping[str, Any] | None = None,
    keys: Callable[[str], Any] | None = None,
) -> list[RawSplit]:
    """The splits of a plan's bytes. `storage_options`, `keys`: the objects that a plan cannot contain."""

def pack(sizes: Sequence[int], target: int) -> list[tuple[int, int]]:
    """Groups of consecutive splits of about `target` bytes, by their sizes: start and stop of each."""

HIVE_NULL: str

_Found = tuple[str, list[tuple[str, str]], _Known | None]

def find_files(
    paths: Sequence[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    whole: bool = False,
    selection: Mapping[str, str] | None = None,
) -> list[_Found]:
    """The files of paths, patterns and folders: path, `key=value` pairs of its folders, identity.

    `whole`: each folder is one table. `selection`: the options of a `load()` that select some of them.
    """

def managed_by(names: Sequence[str]) -> str | None:
    """Why the files of a folder with these entries are no table by themselves; None for other folders.

    The metadata of a table format says which of them count.
    """

def foreign_files(
    files: Sequence[_Found], *, storage_options: Mapping[str, Any] | None = None
) -> tuple[list[int], str | None]:
    """The numbers of the files whose kind is none of the formats, and a warning about them. NotFoundError if
    no other files remain.
    """

def stop_reading() -> None:
    """Stops the reading threads."""

@final
class RawDataset:
    """Many files as one table."""

    def __new__(
        cls,
        opening: RawOpening,
        sources: Sequence[object],
        *,
        partitioned: bool = True,
        types: ArrowSchemaExportable | None = None,
        unify: bool = True,
        schema: ArrowSchemaExportable | None = None,
        ids: str | None = None,
        file_path: str | None = None,
        row_index: str | None = None,
        first_row: int = 0,
    ) -> RawDataset:
        """sources: paths, RawFile, tuples of `found`, or (handle, name) of an object. A tuple of `found` may
        end with a batch of one row: values of columns that the file may lack.

        ids: match columns by the id under this key in the metadata of fields.

        file_path, row_index: names of further columns: the path of the file, the number of the row from
        `first_row`.
        """
    def to_bytes(self) -> bytes:
        """The definition of the table, with the options of stores and the keys of encrypted files."""
    @staticmethod
    def from_bytes(
        bytes: bytes,
        *,
        storage_options: Mapping[str, Any] | None = None,
        keys: Any = None,
    ) -> RawDataset:
        """The table of a definition.

        `storage_options`, `keys`: Python objects that the bytes cannot hold.
        """
    @staticmethod
    def of_hive(
        opening: RawOpening,
        definition: Any,
        partitions: Sequence[Any],
        locations: Sequence[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> RawDataset:
        """The table of some partitions as a metastore defines them, whose files lie at `locations`.

        The options of `opening` override those in the metastore.
        """
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def format(self) -> str: ...
    def found(self) -> list[_Found]: ...
    def left_out(self) -> list[tuple[str, str]]:
        """The files of other kinds beside them: path and kind."""
    def objects(self) -> list[int]:
        """The numbers of the files that are objects of this process, in the order of the sources."""
    def partition_columns(self) -> list[str]: ...
    def partitions(self) -> object:
        """A capsule of the partition columns' schema."""
    def constants(self, number: int) -> RawBatch:
        """A file's values of the partition columns: a batch of one row."""
    def partition_values(self) -> RawBatch:
        """The values of the partition columns: a row for each file."""
    def open(self, number: int) -> RawFile: ...
    def num_rows(self) -> int | None: ...
    def count(self, predicate: Predicate | None = None) -> int: ...
    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        limit: int | None = None,
        batch_size: int = 65536,
        on_error: str = "raise",
        threads: int = 1,
        files: Sequence[int] | None = None,
        strings: str | None = None,
    ) -> RawTableRows:
        """`files`: the numbers of the files to read. `strings`: the option; None: as the files are opened."""
    def splits(
        self, split_bytes: int, *, predicate: Predicate | None = None, files: Sequence[int] | None = None
    ) -> list[RawSplit]:
        """Splits at the boundaries of units; opens all files."""
    def plan(self, split_bytes: int, *, predicate: Predicate | None = None) -> list[RawSplit]:
        """Splits by the sizes in the listing; opens only files that it did not list."""
    def adapt(self, number: int, batch: ArrowArrayExportable, columns: Sequence[str]) -> RawBatch:
        """A batch of a file, from any reader, with the table's columns."""

@final
class RawTableRows:
    """One pass over the rows of files, as an iterator or as a C stream; see `RawScan`."""

    def __iter__(self) -> RawTableRows: ...
    def __next__(self) -> RawBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def damage(self) -> list[dict[str, Any]]:
        """The losses so far, with the files' paths; complete when the stream has ended."""
    def close(self) -> None:
        """Frees the units that were read ahead."""

@final
class Calls:
    """What a pyarrow expression contains: its calls, columns and values."""

    def __new__(cls, message: bytes) -> Calls:
        """From the pickled form of a `pyarrow.compute.Expression`."""
    def columns(self) -> list[str]:
        """The names of the columns that it refers to."""
    @property
    def depth(self) -> int:
        """How deeply its calls are nested."""
    def predicate(self, schema: ArrowSchemaExportable) -> Predicate | None:
        """The filter, bound to a schema; None if it contains something that only pyarrow evaluates."""

@final
class Condition:
    """A filter that is not bound to a schema yet, with SQL's three-valued logic."""

    @staticmethod
    def parse(text: str) -> Condition:
        """From SQL such as `x > 5 and s is not null`. A mistake raises ValueError with its position."""
    @staticmethod
    def from_lists(lists: object) -> Condition:
        """From pyarrow.parquet's lists: [(column, op, value), ..], or a list of such."""
    @staticmethod
    def compare(column: str, op: str, value: object) -> Condition:
        """op: one of = == != <> < <= > >="""
    @staticmethod
    def is_in(column: str, values: Iterable[object]) -> Condition: ...
    @staticmethod
    def is_null(column: str) -> Condition: ...
    @staticmethod
    def starts_with(column: str, prefix: str) -> Condition: ...
    @staticmethod
    def all_of(parts: Sequence[Condition]) -> Condition: ...
    @staticmethod
    def any_of(parts: Sequence[Condition]) -> Condition: ...
    def negate(self) -> Condition: ...
    def columns(self) -> set[str]:
        """The names that it mentions, as the caller wrote them."""
    def bind(self, schema: ArrowSchemaExportable) -> Predicate:
        """Binds it to a schema; SchemaError if it does not fit."""
    def __eq__(self, value: object, /) -> bool: ...

@final
class Predicate:
    """A filter in normal form, bound to a schema."""

    def columns(self) -> list[str]: ...
    def tree(self) -> tuple[Any, ...]:
        """("and", nodes), ("or", nodes), or (kind, column, operand, whether negated).

        The kind is a comparison, "in", "null" or "like"; the operand a batch of a column, a pattern or None.
        """
    def evaluate(self, batch: ArrowArrayExportable) -> RawBatch:
        """A truth value or null for each row of a record batch: a batch of one column."""

@final
class RawFile:
    @property
    def format(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def has_placeholder_names(self) -> bool:
        """Whether its columns only have names by position, such as `_col0`."""
    @property
    def num_rows(self) -> int | None: ...
    @property
    def has_doubtful_rows(self) -> bool:
        """Whether some rows of damaged files of this kind are doubtful."""
    @property
    def names(self) -> list[str]:
        """The names of its columns."""
    def printed_columns(self) -> list[tuple[str, str, bool]] | None:
        """Each column's name, its type as pyarrow prints it, and whether it may be null; None if only pyarrow
        can say so.
        """
    def metadata(self) -> Any: ...
    def proposal(self) -> dict[str, Any] | None: ...
    def statistics(self) -> Any: ...
    def lengths(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]: ...
    def dictionaries(self, column: str, each: Callable[[str, int, int, object], None]) -> None:
        """Calls `each` with part, start, end and values of each dictionary."""
    def stated(self, split: tuple[int, int, int]) -> list[list[dict[str, Any]]] | None:
        """The file's statistics for the columns of a split: as `statistics`, by unit or for all units."""
    def witness(self, split: tuple[int, int, int]) -> RawWitness:
        """The file's statistics for the columns of a split, to compare with decoded values."""
    def inspect(self) -> dict[str, Any]:
        """{"name", "offset", "length", "detail": {..}, "children": [..]}"""
    @property
    def identity(self) -> _Known | None:
        """`known` of `open_file`; None for a folder."""
    def notices(self) -> list[tuple[str, str]]:
        """Warnings for users: the kind, such as "encrypted_columns", and a text."""
    def notices_by_reading(self) -> list[tuple[str, str]]:
        """Warnings that only reading a part of the table gives, as reading its rows does."""
    @property
    def threads(self) -> int | None:
        """The option `threads`, if it was given."""
    def recorded(self) -> list[tuple[int, bytes]]: ...
    def byte_split(self, start: int, end: int) -> tuple[int, int, int]:
        """The split (part, start, stop) of a byte range."""
    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        limit: int | None = None,
        batch_size: int = 65536,
        split: tuple[int, int, int] | None = None,
        on_error: str = "raise",
        threads: int | None = None,
        read_ahead: bool = False,
        prune: bool = True,
        strings: str | None = None,
        doubtful: bool = False,
    ) -> RawScan:
        """A fresh scan: a stream of batches. split: (part, start, stop); None is the whole file.

        `doubtful`: only the rows that `skip` leaves out although they were decoded before the first
        contradiction.

        Without `prune`, statistics, indexes and bloom filters are not used; the rows are the same.

        Up to `threads` threads decode: the columns of a unit and, with `read_ahead`, several splits of a
        whole file.

        Checks names and types at once, but reads nothing before the first batch is requested.
        """
    def units(
        self, *, columns: Sequence[str] | None = None, predicate: Predicate | None = None
    ) -> list[tuple[str, int, int, int | None, int]]:
        """The units that a scan would read: (structure, offset, length, rows or None, bytes fetched)"""
    def count(self, predicate: Predicate | None = None) -> int: ...
    def verify(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """{"rows", "units", "checksums", "checked",
        "damage": [{offset, length, rows_lost, structure, reason}]}
        """
    def __arrow_c_schema__(self) -> object: ...

@final
class RawScan:
    """One pass over the rows, as an iterator or as a C stream.

    Either checks for Ctrl-C between batches and releases the GIL while decoding. Errors keep their type
    through the iterator; through the C stream only their message survives.
    """

    def __iter__(self) -> RawScan: ...
    def __next__(self) -> RawBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Consumes the scan: a second call is a ColdframeError."""
    def damage(self) -> list[dict[str, Any]]:
        """The losses so far; complete when the stream has ended."""
    def take_notices(self) -> list[tuple[str, str]]:
        """What to warn of in the rows read so far: kind and text. Each is returned once."""
    def changes(self) -> dict[str, int]:
        """The number of changed values so far, by the kind of change."""
    def passed_over(self) -> dict[str, int]:
        """The number of cells that the request excludes, complete when the stream has ended: visible older
        `versions`, cells of other `times`, cells of `columns` that a wide table lacks.
        """

@final
class RawBatch:
    """A batch for `pa.record_batch(raw_batch)`."""

    @property
    def num_rows(self) -> int: ...
    def printed(self) -> list[list[Any]] | None:
        """The values of each column as the command line prints them; None if only pyarrow can do so."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RawPositions:
    """The numbers of the deleted rows of a file."""

    def add(self, numbers: ArrowArrayExportable, path: str) -> None:
        """Adds numbers, an array of int64, of the delete file `path`."""
    def add_vector(self, vector: bytes, path: str, offset: int) -> None:
        """Adds the numbers of a deletion vector, which lies at `offset` of the file `path`."""
    def remaining(self, batch: ArrowArrayExportable, numbers: str) -> RawBatch | None:
        """The rows of a batch that are not deleted; None if all rows stay.

        `numbers`: the column of row numbers, ascending.
        """

@final
class RawFingerprint:
    """The fingerprint of the added rows, which does not depend on their order.

    `target`: the written columns; added batches have their types, or narrower ones. rows_only: takes no
    fingerprints of columns, which saves two thirds of the time; differences then name no column.
    """

    def __new__(cls, target: ArrowSchemaExportable, *, rows_only: bool = False) -> RawFingerprint: ...
    def add(self, batch: ArrowArrayExportable) -> None: ...
    def join(self, other: RawFingerprint) -> None:
        """Adds the rows of another fingerprint of the same columns."""

    @property
    def rows(self) -> int: ...
    def differences(self, written: RawFingerprint) -> list[str]:
        """The differences of `written` as texts; empty if both have the same rows."""

    def to_json(self) -> dict[str, Any]:
        """{"rows": n, "row_checksum": hex, "columns": {name: {"nulls", "min", "max", "checksum"}}};
        columns of floats have "nans" too.
        """

@final
class RawObserved:
    """Statistics of decoded columns, in the form of files' statistics, for the columns in `names`."""

    def __new__(cls, names: Sequence[str]) -> RawObserved: ...
    def add(self, batch: ArrowArrayExportable) -> None: ...
    def columns(self) -> dict[str, dict[str, Any]]:
        """{name: {"values", "smallest", "largest", "has_nan", "sum", "bytes", "trues"}} of the
        decoded columns. `values` counts values that are not null; figures that a type lacks are None;
        bounds of decimals are text.
        """

@final
class RawWitness:
    """The statistics of a file, to compare with decoded values."""

    @property
    def names(self) -> list[str]:
        """The columns with statistics."""
    def differences(self, observed: RawObserved) -> list[str]:
        """The differences between decoded values and the file's statistics as texts; empty if they agree."""

@final
class RawShape:
    """The target columns for the rows of a source, and the statistics to collect.

    schema: the table's columns. names: new names for the source's columns by position. constants: arrays of
    one value for columns that are the same in each row. verify: take fingerprints. stated: columns of the
    source to observe, see `RawObserved`.
    """

    def __new__(
        cls,
        schema: ArrowSchemaExportable,
        *,
        names: Sequence[str] | None = None,
        constants: Mapping[str, ArrowArrayExportable] | None = None,
        verify: bool = True,
        stated: Sequence[str] | None = None,
    ) -> RawShape: ...

@final
class RawDecoded:
    """A small source that was decoded to its end, in the target's types."""

    @property
    def rows(self) -> int: ...
    @property
    def print(self) -> RawFingerprint: ...
    @property
    def held(self) -> bool:
        """Whether its rows are in memory; otherwise they took too much of it."""
    def observed(self) -> RawObserved: ...

@final
class RawTarget:
    """A file of the target with the rows of several sources. Without `finish`, no file appears.

    The arguments are those of `convert`.
    """

    def __new__(
        cls,
        schema: ArrowSchemaExportable,
        folder: Store,
        name: str,
        *,
        format: str,
        options: Mapping[str, Any] | None = None,
    ) -> RawTarget: ...
    def add(self, decoded: RawDecoded) -> None:
        """Adds rows that are held."""
    def add_rows(self, rows: RawScan | ArrowStreamExportable, shape: RawShape) -> tuple[int, RawFingerprint]:
        """Decodes rows and adds them; returns their number and fingerprint."""
    def finish(self) -> dict[str, Any]:
        """Completes the file: {"rows", "bytes", "sha256"}; the hash is of the written bytes."""

def decode(rows: RawScan | ArrowStreamExportable, shape: RawShape, *, most_bytes: int = ...) -> RawDecoded:
    """Decodes all rows; holds them if they take at most so many bytes. Releases the GIL for a RawScan."""

def convert(
    rows: RawScan | ArrowStreamExportable,
    shape: RawShape,
    folder: Store,
    name: str,
    *,
    format: str,
    options: Mapping[str, Any] | None = None,
    most_bytes: int | None = None,
    divide: tuple[Sequence[int], Callable[[ArrowArrayExportable], ArrowArrayExportable]] | None = None,
) -> dict[str, Any]:
    """Converts the rows of a part of a source to files of a folder: decodes, takes fingerprints, writes.
    Releases the GIL for a RawScan.

    name: of the first file; the names of others have a number. format: "parquet" with the options `codec`,
    `row_group_bytes` and `row_group_rows`, or one of coldframe's formats with its options. most_bytes: a file
    ends with the batch that reaches this size. divide: numbers of columns, and a function from batches of
    these columns to the partition of each row (uint32); each file then has the rows of one partition.

    Returns {"files": [{"name", "rows", "bytes", "sha256", "print": RawFingerprint, "partition": int | None}],
    "observed": RawObserved}; no file without rows, and no file after an error.
    """

@final
class RawCells:
    """The result of a look-up: batches of one schema, `pa.schema(raw_cells)`."""

    def addresses(self) -> list[int]:
        """The addresses of one or more `ArrowArray`s, valid while this object lives."""
    def __arrow_c_schema__(self) -> object: ...

def hfile_get(file: RawFile, key: bytes | str) -> RawCells:
    """The cells of a row, or the pairs of a key; UnsupportedError for other formats."""

def hfile_get_many(file: RawFile, keys: Sequence[bytes | str]) -> RawCells:
    """The cells of many rows in file order."""

def might_contain(
    file: RawFile, row: bytes | str, qualifier: bytes | str | None = None, delete_family: bool = False
) -> bool:
    """False only if a filter of the file rules the key out."""

def hfile_scan(
    file: RawFile,
    *,
    start: bytes | str | None = None,
    stop: bytes | str | None = None,
    prefix: bytes | str | None = None,
    reverse: bool = False,
    columns: Sequence[str] | None = None,
    time_range: tuple[int, int] | None = None,
    max_versions: int | None = None,
    batch_size: int = 65536,
) -> RawTableRows: ...

@final
class RawRows:
    """One pass over the cells of a range of rows."""

    def __iter__(self) -> RawRows: ...
    def __next__(self) -> RawBatch: ...
    def __arrow_c_schema__(self) -> object: ...

def hudi_partitions(store: Store, path: str) -> list[str]:
    """The partitions of the metadata table in a folder of the store, by name."""

def hudi_files(files: RawFile, partition: str | None = None, *, all_versions: bool = False) -> RawBatch:
    """The files of the data table: partition, name, path, size, kind, file_id, instant.

    The path is relative to the table's directory.
    """

def hudi_column_stats(stats: RawFile, columns: Sequence[str] | None = None) -> RawBatch:
    """The statistics of columns of the data table's files: file, column, min, max, values, nulls, bytes.

    The bounds are as stored: structs of which one field is set.
    """

def hudi_prune(files: RawFile, stats: RawFile, condition: Condition, partition: str | None) -> RawBatch:
    """The rows of `hudi_files` that may hold rows that pass."""

def hudi_locate(index: RawFile, keys: Sequence[str]) -> RawBatch:
    """The places of the records with these keys: key, partition, file_id, instant, position."""

def seek_ordinal(file: RawFile, ordinal: int) -> tuple[int, int, int]:
    """The rows of a CFile from an ordinal on as (part, start, stop)."""

def lookup_value(file: RawFile, value: ArrowArrayExportable) -> RawBatch:
    """The rows of a CFile with the value in an array of length 1, with their ordinals."""

def might_contain_key(file: RawFile, key: bytes) -> bool:
    """False only if an encoded primary key is not in a Kudu bloom file."""

def tables(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
) -> list[tuple[str, str]]:
    """The tables of a folder of a format: the value of the option `table`, and the name of each."""

def shared_of_tables(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, list[tuple[int, bytes]]]:
    """Reads the data once that opening each table of a folder would read again: `recorded` of `open_file`, by
    the value of the option `table`. Empty for formats and options that share no data.
    """

def contents(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The parts of a folder of a format, each with whether a read with `options` takes all of it.

    `kind` and `of` describe the part, `visible` whether a reader of the engine may see it, `taken` whether
    it is read: None if only reading can tell. `count` of `unit`, `bytes` and `note` have details that are
    cheap to get.
    """

def unclaimed(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
) -> list[tuple[str, int]]:
    """The files of a folder of a format that belong to none of its tables: relative paths, and sizes.

    Nobody reads them. Files without bytes are left out.
    """

def write_partitioned(
    data: ArrowStreamExportable,
    root: Store,
    keys: Sequence[str],
    *,
    format: str,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[tuple[str, int, int]]:
    """Writes files below `key=value` folders. Returns their paths below the root, rows and bytes."""

def escaped(name: str) -> str:
    """A name or value as Hive writes it in the name of a folder."""

def folder_of(names: Iterable[str], values: Iterable[str]) -> str:
    """The folders of a partition: `dt=2014-01-01/region=asia%2Fpacific`."""

def write(
    data: ArrowStreamExportable,
    dest: object,
    *,
    format: str,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    new: bool = False,
) -> dict[str, Any]:
    """Writes atomically. dest: path, URL or Store; `new`: the file must not exist.

    Returns {"rows", "bytes"} and, if the store has one, "etag".
    """
