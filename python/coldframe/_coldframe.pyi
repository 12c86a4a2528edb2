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

class UnsupportedError(ColdframeError):
    what: str

class SchemaError(ColdframeError, ValueError): ...
class KeyUnavailableError(ColdframeError): ...
class NotFoundError(ColdframeError): ...

# What a listing has told of a file: size, milliseconds since 1970, etag.
_Known = tuple[int, int | None, str | None]

def detect(
    source: object, storage_options: Mapping[str, str] | None = None, known: _Known | None = None
) -> str | None:
    """Format name from the bytes, None if not one of ours."""

def formats() -> dict[str, dict[str, Any]]:
    """{format: {"open": {option: {..}}, "write": {option: {..}}, "capabilities": {name: value}}}

    Of an option: "kind" (flag, int, size, float, text, bytes, choice, open_choice, names, map, time,
    time_range, schema), "default" (None where its help says what happens), "choices", "aliases", "help".

    Capabilities: keys, seek, lookup, might_contain (what `File` can be asked), needs_schema, folders, tables,
    written, endings, empty_files, tables_of, folder_option (the flag that opens a folder as one table),
    side_by_side (folders beside each other are one source), input_formats (ends of Hive's class names),
    unit_option (the option that sets the unit of timestamps), row_numbers_option (the option that names a
    further column with the numbers of rows).
    """

def parse_option(name: str, text: str, *, format: str | None = None, write: bool = False) -> Any:
    """What the text of an option means: of a format, or of any where the format is not known yet.

    An option that no format has stays text. What cannot be its value raises ValueError.
    """

def load_options(given: Mapping[str, str], format: str | None = None) -> dict[str, Any]:
    """What the options of Spark's `load()` ask for, by the names of `coldframe.spark.options.ReadOptions`.

    `format` is the one in the name of the source, such as `coldframe_orc`.
    """

def save_options(given: Mapping[str, str], format: str | None = None) -> dict[str, Any]:
    """What the options of Spark's `save()` ask for, by the names of `spark.options.WriteOptions`."""

def local_path(path: str) -> str | None:
    """The local path that a path or a `file://` URL names; None for a URL of another store."""

def store_schemes() -> list[str]:
    """The schemes of URLs that are read without a Python file system."""

def store_options() -> list[tuple[str, list[str], list[str], str]]:
    """Name, the kinds of stores that know it, other names (`!` before one: its opposite), help."""

def resolved_options(url: str, storage_options: Mapping[str, str] | None = None) -> dict[str, str]:
    """The options that a URL's store works with, under their own names: those given and the environment's.

    They hold secrets: other libraries are configured by them.
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
        """What `open_file` takes as `known`."""

@final
class StoreListing:
    """Entries in lists of up to 1,000, as they come in."""

    def __iter__(self) -> StoreListing: ...
    def __next__(self) -> list[StoreEntry]: ...

@final
class StoreUpload:
    """A file on its way, as a binary file to write; one that is dropped leaves nothing."""

    def write(self, data: bytes) -> int: ...
    def tell(self) -> int: ...
    def flush(self) -> None: ...
    def writable(self) -> bool: ...
    def readable(self) -> bool: ...
    def seekable(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def finish(self) -> StoreEntry:
        """Makes it appear. `path` of what it gives is the store's own name."""
    def abandon(self) -> None:
        """Takes it back."""

@final
class StoreFile:
    """A file of a store, read by ranges from any thread."""

    @property
    def size(self) -> int: ...
    @property
    def identity(self) -> _Known: ...
    def read(self, start: int, stop: int) -> bytes:
        """The bytes of a range, fewer where the file ends before."""

@final
class Store:
    """The files at and below a path or URL. Paths are relative to that, `""` is the root itself.

    mode: "new" raises FileExistsError where something is (of several that try, one succeeds); "over"
    replaces it.
    """

    def __new__(cls, url: str, storage_options: Mapping[str, str] | None = None) -> Store: ...
    @staticmethod
    def of(files: object, url: str, root: str) -> Store:
        """The files of an object of the shape in `coldframe.filesystems`, below its path `root`."""
    @property
    def url(self) -> str: ...
    @property
    def is_local(self) -> bool: ...
    def url_of(self, path: str) -> str: ...
    def below(self, path: str) -> Store:
        """The files at and below a path."""
    def list(self, path: str = ..., *, recursive: bool = False) -> StoreListing:
        """What lies directly below or, if recursive, all files below; in any order."""
    def stat(self, path: str = ...) -> StoreEntry | None: ...
    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes: ...
    def open(self, path: str = ..., known: _Known | None = None) -> StoreFile:
        """Opens a file for reading by ranges; with `known`, another content is an error."""
    def put(self, path: str, data: bytes, *, mode: str = "new", etag: str | None = None) -> StoreEntry:
        """Writes a whole file. With "over" and an etag, only that content is replaced."""
    def create(self, path: str = ..., *, mode: str = "new") -> StoreUpload:
        """Starts a file, which appears whole when it is finished. Folders below the root are made."""
    def publish(self, source: str, path: str, *, mode: str = "new") -> None:
        """Gives a whole file another name, at once."""
    def above(self) -> tuple[Store, str] | None:
        """The store of the folder above, and the root's name in it."""
    @property
    def renames_folders(self) -> bool:
        """Whether there is `publish_folder`."""
    def publish_folder(self, source: str, path: str) -> None:
        """Gives a folder another name, at once, where nothing is or an empty folder; else FileExistsError."""
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file (NotFoundError if there is none) or a folder with all below."""
    def check_exclusive(self, path: str) -> None:
        """Raises UnsupportedError if the store overwrites in mode "new". Writes and deletes a file there."""

def hash_rows(batch: ArrowArrayExportable, target: ArrowSchemaExportable) -> bytes:
    """The hash of each row as 64-bit words, little-endian: of its values as `target`'s columns hold them."""

def conform_batch(batch: Any, target: Any) -> Any:
    """A pyarrow.RecordBatch with exactly the pyarrow.Schema `target`; its columns are taken by position.

    Their names must agree, and each value must be the same in the target's type, but for digits below a
    microsecond: otherwise a SchemaError. A batch that has the schema is given back.
    """

def unified(schemas: Sequence[tuple[str, Any]], table: str | None = None) -> Any:
    """One pyarrow.Schema for those of several files, given with their paths: the first one's columns (and
    metadata), then what the others add, in types as wide as needed.

    A SchemaError names both files where a column has types that do not go together, and the `table`.
    """

def plain_type(arrow_type: ArrowSchemaExportable, timestamp_unit: str) -> Any:
    """Spark's type for the values of a pyarrow.DataType, as a pyarrow.DataType."""

def plain_schema(schema: ArrowSchemaExportable, timestamp_unit: str) -> Any:
    """A pyarrow.Schema in Spark's types: nullable, without metadata."""

def type_shape(arrow_type: ArrowSchemaExportable) -> str:
    """A pyarrow.DataType as text, the same for structs whose fields differ in their order alone."""

def parse_columns(text: str, *, partitions: bool = False) -> Any:
    """The columns of a list in Hive's language, `id bigint, tags array<string>`, as a pyarrow.Schema.

    With `partitions`, only types that the name of a directory can hold. A mistake is a SchemaError.
    """

def print_columns(schema: ArrowSchemaExportable) -> str:
    """The columns of a pyarrow.Schema as a list in Hive's language."""

def with_fields(array: Any, target: Any) -> Any:
    """A pyarrow.Array with the struct fields that only the pyarrow.DataType `target` has, as nulls, and all
    in its order.

    Types are left as they are; where the array is not of the target's kind it is given back.
    """

def pruned(array: Any, target: Any) -> Any:
    """A pyarrow.Array with only the struct fields that the pyarrow.DataType `target` has, and its views."""

def requested_strings(requested: object | None) -> str | None:
    """The option `strings` for the schema capsule that a consumer passes to `__arrow_c_stream__`."""

def without_views(schema: Any) -> Any:
    """The pyarrow.Schema with plain strings in place of views; the same one if it has none."""

@final
class RawOpening:
    """How files are opened, made once for all of them."""

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

    `recorded`: what RawFile.recorded() gave for the same file, so that opening it again reads nothing.
    """

def splits_of(
    file: RawFile, split_bytes: int, opening: RawOpening, path: str, *, source: object = None
) -> list[RawSplit]:
    """Parts of an open file. `source`: where it is an object of this process, what opening it again takes."""

@final
class RawSplit:
    """A part of a table, as plain data that travels."""

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
        """Number and count, where it is a share of its file's splits."""
    @property
    def known(self) -> _Known | None: ...
    @property
    def own(self) -> list[tuple[int, bytes]]: ...
    @property
    def recorded(self) -> list[tuple[int, bytes]]: ...
    @property
    def weight(self) -> int | None:
        """What it counts where splits are packed: bytes; None of a part of a folder that is one table."""
    def arguments(self) -> tuple[dict[str, str], bool, dict[str, bytes], dict[str, Any]]:
        """Storage options, whether checksums are compared, keys, the format's options."""
    def options(self) -> dict[str, Any]: ...
    @property
    def is_of_table(self) -> bool:
        """Whether its rows are those of a table of many files."""
    @property
    def is_bound(self) -> bool:
        """Whether its bytes need what only Python has: a file system, a function that is asked for keys."""
    @property
    def travels(self) -> bool: ...
    def constants(self) -> RawBatch:
        """The partition's values: a batch of one row."""
    def open(self, *, alone: bool = False) -> RawFile:
        """Opens its file, for all of it or for the split's rows alone."""
    def expand(self) -> list[RawSplit]:
        """The splits of a share, for which its file is opened; itself where it is none."""
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
    """Splits as the bytes of one plan; what they have in common is in them once."""

def plan_from_bytes(
    bytes: bytes,
    *,
    storage_options: Mapping[str, Any] | None = None,
    keys: Callable[[str], Any] | None = None,
) -> list[RawSplit]:
    """The splits of a plan's bytes. `storage_options`, `keys`: what of them does not travel as bytes."""

def pack(sizes: Sequence[int], target: int) -> list[tuple[int, int]]:
    """Groups of consecutive parts of about `target` bytes, by their sizes: where each starts and stops."""

HIVE_NULL: str

_Found = tuple[str, list[tuple[str, str]], _Known | None]

def find_files(
    paths: Sequence[str], *, storage_options: Mapping[str, Any] | None = None, whole: bool = False
) -> list[_Found]:
    """The files that paths, patterns and folders name: path, pairs of its folders, what the listing told.

    `whole`: each folder is one table.
    """

def foreign_files(
    files: Sequence[_Found], *, storage_options: Mapping[str, Any] | None = None
) -> tuple[list[int], str | None]:
    """Which of the files that were listed are of another kind than all formats, by number; and what to say
    of it. NotFoundError if there are no others.
    """

def stop_reading() -> None:
    """Ends the threads that read."""

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
    ) -> RawDataset:
        """sources: paths, RawFile, what `found` gives, or (handle, name) of an object. What `found` gives may
        end in a batch of one row: values of columns that the file may lack.

        ids: columns are those of the same id, which fields have in their metadata under this key.
        """
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def format(self) -> str: ...
    def found(self) -> list[_Found]: ...
    def left_out(self) -> list[tuple[str, str]]:
        """Files found beside them that are of other kinds: path and kind."""
    def objects(self) -> list[int]:
        """The numbers of the files that are objects of this process, in the order in which they came."""
    def partition_columns(self) -> list[str]: ...
    def partitions(self) -> object:
        """A capsule of the partition columns' schema."""
    def constants(self, number: int) -> RawBatch:
        """A file's values of the partition columns: a batch of one row."""
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
        """`files`: only those of these numbers. `strings`: the option; None as the files are opened."""
    def splits(
        self, split_bytes: int, *, predicate: Predicate | None = None, files: Sequence[int] | None = None
    ) -> list[RawSplit]:
        """Splits that files cut themselves, for which all of them are opened."""
    def plan(self, split_bytes: int, *, predicate: Predicate | None = None) -> list[RawSplit]:
        """Splits by what the listing told of the files: only those of which it told nothing are opened."""
    def adapt(self, number: int, batch: ArrowArrayExportable, columns: Sequence[str]) -> RawBatch:
        """A batch of a file, however it was read, with the table's columns."""

@final
class RawTableRows:
    """One pass over the rows of files, as an iterator or as a C stream; see `RawScan`."""

    def __iter__(self) -> RawTableRows: ...
    def __next__(self) -> RawBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def damage(self) -> list[dict[str, Any]]:
        """What was lost so far, with the files' paths; complete once the stream has ended."""
    def close(self) -> None:
        """Lets go of what was read ahead."""

@final
class Condition:
    """A filter as it was stated, not yet bound to a schema. Its logic has SQL's three values."""

    @staticmethod
    def parse(text: str) -> Condition:
        """From SQL such as `x > 5 and s is not null`. A mistake raises ValueError with its place."""
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
        """Its meaning for the rows of a schema; SchemaError where it does not fit."""
    def given(self, schema: ArrowSchemaExportable, known: dict[str, Any]) -> Condition:
        """What is left of it where some columns have one known value, given as an array of one."""
    @property
    def always_true(self) -> bool: ...
    @property
    def never_true(self) -> bool: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class Predicate:
    """A filter in normal form, bound to a schema."""

    @staticmethod
    def from_substrait(message: bytes, schema: ArrowSchemaExportable) -> Predicate | None:
        """From pyarrow's `Expression.to_substrait(schema)`; None where it is not understood."""
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
        """Whether its columns are called by their places alone."""
    @property
    def num_rows(self) -> int | None: ...
    def metadata(self) -> Any: ...
    def proposal(self) -> dict[str, Any] | None: ...
    def statistics(self) -> Any: ...
    def lengths(self, progress: Callable[[int], None] | None = None) -> dict[str, Any]: ...
    def dictionaries(self, column: str, told: Callable[[str, int, int, object], None]) -> None:
        """Calls `told` with part, start, end and values of each dictionary."""
    def stated(self, split: tuple[int, int, int]) -> list[list[dict[str, Any]]] | None:
        """What the file says of the columns of a part: as `statistics`, for each unit or for all at once."""
    def witness(self, split: tuple[int, int, int]) -> RawWitness:
        """What the file states of the columns of a part, to be held against what is decoded of it."""
    def inspect(self) -> dict[str, Any]:
        """{"name", "offset", "length", "detail": {..}, "children": [..]}"""
    @property
    def identity(self) -> _Known | None:
        """`known` of `open_file`; None for a folder."""
    def notices(self) -> list[tuple[str, str]]:
        """What its user should hear of: "ambiguous_dialect" or "encrypted_columns", and a text."""
    @property
    def threads(self) -> int | None:
        """The option `threads`, if it was given."""
    def recorded(self) -> list[tuple[int, bytes]]: ...
    def byte_split(self, start: int, end: int) -> tuple[int, int, int]:
        """The split (part, start, stop) that a byte range stands for."""
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
    ) -> RawScan:
        """A fresh scan: a stream of batches. split: (part, start, stop); None is the whole file.

        Without `prune`, statistics, indexes and bloom filters leave nothing out: the rows are the same.

        Up to `threads` threads decode: the columns of a unit and, with `read_ahead`, several splits of a
        whole file.

        Nothing is read before the first batch is asked for, but names and types are checked here.
        """
    def units(
        self, *, columns: Sequence[str] | None = None, predicate: Predicate | None = None
    ) -> list[tuple[str, int, int, int | None, int]]:
        """What a scan would read: (structure, offset, length, rows or None, bytes fetched)"""
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
        """What was lost so far; complete once the stream has ended."""
    def changes(self) -> dict[str, int]:
        """How many values were changed on the way, by how, as far as it was read."""
    def passed_over(self) -> dict[str, int]:
        """How much the request passes over, complete once the stream has ended: visible older `versions` of
        cells, cells of other `times` than those asked for, cells of `columns` that a wide table leaves out.
        """

@final
class RawBatch:
    """A batch on its way out: `pa.record_batch(raw_batch)`."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RawFingerprint:
    """The fingerprint of the rows that were added: the same for the same rows in any order.

    `target`: the columns as they are written; what is added has them in their types, or in types that they
    widen. rows_only: columns are not looked at for themselves, which takes two thirds of the time; where a
    fingerprint of rows differs, no column is named.
    """

    def __new__(cls, target: ArrowSchemaExportable, *, rows_only: bool = False) -> RawFingerprint: ...
    def add(self, batch: ArrowArrayExportable) -> None: ...
    def join(self, other: RawFingerprint) -> None:
        """Adds the rows that another one of the same columns has seen."""

    @property
    def rows(self) -> int: ...
    def differences(self, written: RawFingerprint) -> list[str]:
        """What `written` has differently, in words; empty where both are of the same rows."""

    def to_json(self) -> dict[str, Any]:
        """{"rows": n, "row_checksum": hex, "columns": {name: {"nulls", "min", "max", "checksum"}}};
        columns of floats have "nans" too.
        """

@final
class RawObserved:
    """What is known of decoded columns, as files state it of theirs; only those of `names` are looked at."""

    def __new__(cls, names: Sequence[str]) -> RawObserved: ...
    def add(self, batch: ArrowArrayExportable) -> None: ...
    def columns(self) -> dict[str, dict[str, Any]]:
        """{name: {"values", "smallest", "largest", "has_nan", "sum", "bytes", "trues"}} of those that were
        seen. Values are those that are not null; what a type has none of is None; ends of decimals are text.
        """

@final
class RawWitness:
    """What a file states of its columns, against what was decoded of them."""

    @property
    def names(self) -> list[str]:
        """The columns of which something is stated."""
    def differences(self, observed: RawObserved) -> list[str]:
        """What was decoded otherwise than the file states, in words; empty where all agrees."""

@final
class RawShape:
    """What the rows of a source become, and what is to be known of them.

    schema: the table's columns. names: new names for the source's columns by position. constants: arrays of
    one value for columns that are the same in each row. verify: fingerprints are taken. stated: columns of
    the source that are looked at, see `RawObserved`.
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
    """All rows of a small source, in memory, in the target's types."""

    @property
    def rows(self) -> int: ...
    @property
    def print(self) -> RawFingerprint: ...
    def observed(self) -> RawObserved: ...

@final
class RawTarget:
    """A file of the target that several sources go into; let go before it is finished, nothing of it appears.

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
    def add(self, decoded: RawDecoded) -> None: ...
    def finish(self) -> dict[str, Any]:
        """Has it on disk, or in its store: {"rows", "bytes", "sha256"}; hashed as it was written."""

def decode(rows: RawScan | ArrowStreamExportable, shape: RawShape) -> RawDecoded:
    """Decodes all rows, without Python's lock where they are those of a RawScan."""

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
    """Converts the rows of a part of a source to files of a folder, without Python's lock where they are
    those of a RawScan: decodes, takes fingerprints, writes.

    name: of the first file; the others have a number in theirs. format: "parquet" with the options `codec`,
    `row_group_bytes` and `row_group_rows`, or one of ours with its own. most_bytes: a file ends with the
    batch with which it has so many. divide: numbers of columns, and what tells the partition of each row,
    given batches of these columns: a number (uint32). Each file has the rows of one partition then.

    Returns {"files": [{"name", "rows", "bytes", "sha256", "print": RawFingerprint, "partition": int | None}],
    "observed": RawObserved}; no file where there are no rows, and none is left behind an error.
    """

@final
class RawCells:
    """What a look-up found: batches of one schema, `pa.schema(raw_cells)`."""

    def addresses(self) -> list[int]:
        """Where the `ArrowArray` of each batch is, for an import while this object lives; one at least."""
    def __arrow_c_schema__(self) -> object: ...

def hfile_get(file: RawFile, key: bytes | str) -> RawCells:
    """The cells of a row, or the pairs of a key; UnsupportedError for what is no HFile."""

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

    The path is that below the table's directory.
    """

def hudi_column_stats(stats: RawFile, columns: Sequence[str] | None = None) -> RawBatch:
    """The statistics of columns of the data table's files: file, column, min, max, values, nulls, bytes.

    The bounds are as stored: structs of which one field is set.
    """

def hudi_prune(files: RawFile, stats: RawFile, condition: Condition, partition: str | None) -> RawBatch:
    """Of `hudi_files`, those that may hold rows that pass."""

def hudi_locate(index: RawFile, keys: Sequence[str]) -> RawBatch:
    """The places of the records with these keys: key, partition, file_id, instant, position."""

def seek_ordinal(file: RawFile, ordinal: int) -> tuple[int, int, int]:
    """The rows of a CFile from an ordinal on as (part, start, stop)."""

def lookup_value(file: RawFile, value: ArrowArrayExportable) -> RawBatch:
    """The rows of a CFile whose value is the one in an array of one, with their ordinals."""

def might_contain_key(file: RawFile, key: bytes) -> bool:
    """False only if an encoded primary key is not in a bloom file of Kudu's."""

def tables(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
) -> list[tuple[str, str]]:
    """The tables of a folder of a format: what the option `table` takes, and the name of each."""

def shared_of_tables(
    path: object,
    *,
    format: str,
    storage_options: Mapping[str, str] | None = None,
    verify_checksums: bool = True,
    keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, list[tuple[int, bytes]]]:
    """What opening each table of a folder would read again, read once: `recorded` of `open_file`, by
    what the option `table` takes. Nothing of formats, and for options, that read nothing twice.
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
    """What could be read from a folder of a format, each with whether a request by `options` takes all of it.

    `kind` and `of` say what it is, `visible` whether a reader of the engine may be shown it, `taken` whether
    it is read: None where only reading tells. `count` of `unit`, `bytes` and `note` say more of it where that
    is cheap.
    """

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
    """Writes atomically. dest: path, URL or Store; `new`: nothing may be there.

    Returns {"rows", "bytes"} and, where the store has one, "etag".
    """
