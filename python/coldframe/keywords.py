"""The options that formats declare as types of keywords. Made by packaging/keywords.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from coldframe.arguments import Keys
    from coldframe.filters import Filter
    from coldframe.literals import FormatName

__all__ = ["OpenKeywords", "OpenOptions", "ScanOptions", "WriteOptions"]

# fmt: off

Time = datetime | str | int


class OpenOptions(TypedDict, total=False):
    """What `open` takes besides its own arguments."""

    acid: bool | None
    """true opens the directory of a transactional Hive table as its live rows; false refuses it: open its
    files one by one instead"""
    acid_valid_write_ids: str | None
    """the visible writes of a transactional table, in the form of Hive's ValidReaderWriteIdList:
    "table:highest:least open:open,..:aborted,.."; default: all"""
    as_of: Time | None
    """an instant of the timeline, or a date and time: the state, and the columns, as of then; or: time at
    which the expiry of cells is judged, in milliseconds or as text (UTC); default: now"""
    begin: Time | None
    """for view="incremental": the instant after which rows were written; for table versions 8 and 9 a
    time of completion"""
    block_cache_bytes: int | str | None
    """size of the cache of decoded blocks for look-ups; or: size of the cache of decoded blocks for look-
    ups, for each file of the table"""
    bootstrap_base: str | None
    """the directory where the source of a bootstrapped table lies now, if it was moved"""
    byte_array: Literal["binary", "string"] | None
    """type of all byte arrays; default: string if the file calls them UTF8 and their first page is valid
    UTF-8"""
    calendar: Literal["writer", "hybrid", "proleptic"] | None
    """calendar of days before 1582-10-15 in files that do not state it: "hybrid" (Hive up to 3.0, Spark
    2), "proleptic" (Hive 3.1), or "writer", the default of the file's writer, which is hybrid for
    Java's"""
    columns: Mapping[str, Any] | None
    """{"family:qualifier": type}: the columns of view="pivot". Types, as HBase's `Bytes` encodes them:
    binary, string, long, int, short, float, double, boolean, decimal (returned as text)"""
    complete: bool | None
    """for a metadata table of Hudi: true treats as damage what its timeline seems to lack. Default: a
    warning; or: true treats as damage what seems to be missing, such as commits that the timeline has
    lost. Default: a warning; or: true requires a tablet for each hash bucket, and all logs and super
    blocks; false states that other servers hold the missing tablets, and have no newer rows. Default:
    what is missing causes a warning; or: true treats as damage what seems to be missing: write-ahead
    logs, a descriptor, regions that hbase:meta does not list. Default: a warning; or: true treats as
    damage that a base or delta of a transactional table is missing, which later deletes prove; false
    accepts it. Default: a warning"""
    decode: Literal["avro"] | None
    """"avro" adds a column with Hudi's values as structs, by the Avro schema stored in the file"""
    dialect: Literal[
        "auto", "redelm-a", "redelm-b", "redelm-c", "redelm-d", "redelm-e", "redelm-f", "spec"
    ] | None
    """layout of the pages: "auto" detects it; "redelm-a" .. "redelm-f" or "spec" if it cannot be
    detected"""
    dictionary: bool | None
    """true returns the families and qualifiers of cells as Arrow dictionaries; or: true returns string
    and binary columns as Arrow dictionaries; or: true returns families and qualifiers as Arrow
    dictionaries; not for view="pivot", which has none; or: true returns string columns as Arrow
    dictionaries"""
    end: Time | None
    """for view="incremental": the last instant, or time of completion, that counts; default: the
    latest"""
    families: Sequence[str] | str | None
    """column families to read; default: all"""
    hive_version: str | None
    """version of Hive whose lenient parsing, calendar and conversions apply"""
    hudi_reader: Literal["table", "1.x"] | None
    """whose rules apply where versions of Hudi read one table differently: "table" (default), those of
    the Hudi that the table's version belongs to (versions below 8: 0.15), or "1.x" """
    int96: Literal["binary", "timestamp"] | None
    """type of 96-bit values"""
    masked: Literal["read", "error"] | None
    """encrypted columns without a key: "read" returns their masked values, "error" refuses them"""
    max_block_bytes: int | str | None
    """largest size of a decompressed block"""
    max_columns: int | None
    """largest number of columns"""
    max_depth: int | None
    """deepest nesting of columns"""
    max_metadata_bytes: int | str | None
    """largest size of a header, footer, index or key"""
    max_unit_rows: int | None
    """largest number of rows in a row group, stripe or block; default: 2147483648, but 134217728 in
    RCFile, where rows of empty cells take no bytes"""
    memory_limit: int | str | None
    """decoded bytes that one read may hold, on all threads together: batches are cut to fit, nothing is
    refused. Default: 1 GiB for each thread"""
    metadata: bool | None
    """true opens the table's metadata table, `.hoodie/metadata`"""
    ordinal: bool | None
    """true adds a column `ordinal`: the number of each value, from 0"""
    phoenix: str | None
    """CREATE TABLE statement of a table that Phoenix wrote: gives view="pivot" its columns, those of the
    row key included, with Phoenix's types"""
    pivot: Mapping[str, Any] | None
    """{"family:qualifier": type}: gives one row for each row key, with the latest visible value of each
    of these columns. Types, as HBase's `Bytes` encodes them: binary, string, long, int, short, float,
    double, boolean"""
    recover: bool | None
    """true finds the stripes of a file that has lost its tail; requires `schema` or `schema_from`. If
    nothing proves how many stripes there were, `on_error` must be "skip" or "null"; or: true reads a file
    that has lost its footer: up to the last cumulative footer inside it or, if there is none, from its
    pages and the given `schema`. Since nothing proves how many row groups there were, `on_error` must be
    "skip" or "null" """
    rest: bool | None
    """for view="pivot": whether to add a column `rest`, a map of all other columns; default: true, but
    false with `phoenix`"""
    row_group_rows: int | None
    """for `recover`: rows of each row group but the last, if the pages do not show it"""
    row_numbers: str | None
    """name of a further column: the number of each row in the file, from 0"""
    schema: Any
    """names and types of the columns, if the file does not store them: "id bigint, tags array<string>",
    or an Arrow schema in Python and Rust"""
    schema_from: str | None
    """for `recover`: name of an intact file in the same directory with the same types, codec and
    writer"""
    schema_of: Literal["file", "table", "hive", "hive_exact"] | None
    """whose columns `schema` describes. "file": this file's. "table": the table's; the file then takes
    from it binary for string and the precision of old decimals, by name, or by position if its columns
    are called _col0, _col1 .. "hive": the table's, matched in the same way, also within structs; the file
    then takes the names, and its values are converted to the table's types as Hive's reader does.
    "hive_exact": the same without conversions: a file whose types are neither the table's nor narrower
    ones is refused"""
    serde: Literal["text", "binary"] | None
    """"text" (ColumnarSerDe) or "binary" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file
    does not state it"""
    serde_properties: Mapping[str, Any] | None
    """table and SerDe properties by Hive's names: field.delim, collection.delim, mapkey.delim,
    escape.delim, serialization.null.format, timestamp.formats ..."""
    snapshot: Time | str | None
    """time before which changes count: a datetime (UTC if it has no zone), ISO 8601 text, or a raw hybrid
    time. Default: all changes; or: name of a snapshot: reads the table as the snapshot has it"""
    strings: Literal["plain", "view"] | None
    """"view" returns string and binary columns as Arrow's string_view and binary_view, as polars and
    DuckDB use them: a value is copied at most once, and keeps its decoded block in memory"""
    table: str | None
    """name or id of the table; required if there are several; or: the table as "namespace:table";
    required if there are several"""
    tablet: str | None
    """id of the only tablet to read"""
    threads: int | None
    """most threads that one read may use; 1 uses only the caller's. Default: one for each processor"""
    time_range: tuple[Time, Time] | None
    """(from, to): only cells with a timestamp in this range; `to` is excluded"""
    timestamp_unit: Literal["ns", "us"] | None
    """unit of timestamps; "us" covers years outside 1677 to 2262 and drops nanoseconds; or: unit of
    timestamps; us holds years outside 1677..2262"""
    timestamps_in: str | None
    """a time zone: timestamps are then instants, as Spark's ORC reader gives them in a JVM with this
    zone. Without it, and with schema_of="hive", they are the writer's wall clock"""
    timezone: str | None
    """time zone of the session in which Hive 2.x or older wrote binary timestamps, such as
    "America/Los_Angeles"; default: UTC"""
    types: Literal["code", "name"] | None
    """how the type of a cell is shown: its number or its name"""
    value_type: str | None
    """Arrow type of the values, if the file does not determine it: "decimal128(18,5)", "binary",
    "timestamp[us]" """
    versions: int | None
    """for view="versions" or "raw": most versions to return of a column"""
    view: Literal[
        "cells", "kv", "snapshot", "read_optimized", "incremental", "latest", "versions", "raw",
        "pivot"
    ] | None
    """"cells" (HBase) or "kv" (Hudi); default: what the file states; or: "snapshot" (default): the latest
    state; "read_optimized": the base files without the logs over them; "incremental": the rows written
    after `begin` and up to `end`, as of `end`; or: "latest" (default): the newest visible version of each
    column, as a client scan returns it; "versions": all visible versions; "raw": all stored cells and
    delete markers; "pivot": one row for each row key, with the columns of `columns` and a map of the
    others"""
    wal: bool | None
    """whether to read rows that only the write-ahead log holds: those that the server had in memory; or:
    whether to read edits that only the write-ahead logs hold; a snapshot has none"""


class WriteOptions(TypedDict, total=False):
    """What `write` takes besides its own arguments."""

    block_size: int | str | None
    """bytes of cells after which a data block ends; or: bytes of values, before encoding, after which a
    block ends"""
    bloom: Literal["none", "row", "rowcol"] | None
    """what the bloom filter is built from; Hudi files have none"""
    bloom_block_size: int | str | None
    """bytes of one chunk of the bloom filter"""
    bloom_error_rate: float | None
    """false positive rate of the bloom filter"""
    bloom_filter_columns: Sequence[str] | str | None
    """columns to write bloom filters for: a list, or names separated by commas; nested columns as a.b"""
    bloom_filter_fpp: float | None
    """false positive rate of bloom filters"""
    bulk_load: bool | None
    """whether the file info marks the file for bulk load"""
    bytes_per_checksum: int | str | None
    """bytes covered by each checksum"""
    checksum: Literal["crc32c", "crc32", "null"] | None
    """checksum algorithm for blocks"""
    checksums: bool | None
    """false writes no CRC-32C for header, blocks and footer"""
    codec: str | None
    compression: str | None
    """compression of blocks; must be none or gz for Hudi; or: compression of blocks; or: compression of
    streams and metadata; or: compression of keys and columns: one of these names (deflate is Hadoop's
    other name for zlib), or the class name of a Hadoop codec; or: compression of pages"""
    compression_block_size: int | str | None
    """bytes of one compression chunk; default: 4 KiB to 256 KiB, by stripe size and number of columns, as
    the Java writer chooses"""
    compression_level: int | None
    """compression level of gz, zstd, brotli or bzip2; or: compression level; default: the codec's own;
    or: compression level of gzip, 0 to 12; default: 6"""
    crc: bool | None
    """whether pages get a CRC-32 of their stored bytes"""
    create_time: int | None
    """creation time in milliseconds; default: now"""
    data_type: Literal[
        "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64", "STRING", "BOOL",
        "FLOAT", "DOUBLE", "BINARY", "UNIXTIME_MICROS", "INT128", "DECIMAL32", "DECIMAL64",
        "DECIMAL128", "IS_DELETED", "VARCHAR", "DATE"
    ] | None
    """Kudu's type, if the Arrow type does not determine it: VARCHAR, INT128, DECIMAL64 .."""
    dialect: Literal["redelm-f", "spec"] | None
    """layout of the pages. "redelm-f": as the last commit of the reference wrote them; "spec": as the
    README of the format says"""
    dictionary_threshold: float | None
    """largest ratio of distinct values, in the first row group, for which a string column is written with
    dictionaries; 0 for never, 1 for always"""
    encoding: Literal[
        "none", "prefix", "diff", "fast_diff", "row_index_v1", "plain", "rle", "bit_shuffle", "dict",
        "group_varint", "group_var_int"
    ] | None
    """encoding of the cells in a block; must be none for Hudi; or: encoding of the values; default:
    Kudu's default for the type; or: encoding of INT32 and INT64: "plain", or "group_var_int", which the
    reference cannot read"""
    encoding_strategy: Literal["speed", "compression"] | None
    """"speed" rounds bit widths of integers up to those that decode fastest; "compression" does not"""
    family: bytes | str | None
    """the column family of all cells, if there is no column `family`"""
    footer_every: int | None
    """number of row groups after which a sync marker and a cumulative footer are written, so that a
    partly written file can be read; default: never"""
    header: Literal["RCF1", "SEQ6"] | None
    """file version: "RCF1", or "SEQ6" (Hive before 0.9)"""
    hive_version: str | None
    """version of Hive whose lenient parsing, calendar and conversions apply"""
    index_block_size: int | str | None
    """bytes after which an index block ends"""
    index_min_entries: int | None
    """fewest entries of an index block: a block with fewer is not split, whatever its size"""
    last_second: Literal["refuse", "cpp"] | None
    """timestamps in the last second before 1970 with a fraction of a millisecond or more, which the Java
    reader gets wrong: "refuse" raises an error, "cpp" stores them as the C++ reader expects"""
    meta_blocks: Mapping[str, Any] | None
    """meta blocks by name, as text or bytes, such as Hudi's `bloomFilter`"""
    metadata: Mapping[str, Any] | None
    """more entries of the file info by name, as text or bytes; or: user metadata by name, as text or
    bytes; or: more entries of the header's metadata; or: key/value metadata of the file; a value may be
    None"""
    page_bytes: int | str | None
    """bytes of levels and values after which a page ends"""
    record_interval: int | None
    """maximum rows of a row group; default: no limit"""
    row_group_bytes: int | str | None
    """bytes of cells after which a row group ends; or: bytes of pages and values after which a row group
    ends"""
    row_group_rows: int | None
    """maximum rows of a row group"""
    row_index_stride: int | None
    """rows of a row group; 0 writes no indexes"""
    schema: Any
    """Hive column types, if they differ from those that follow from the Arrow types: "id bigint, name
    varchar(20)" """
    schema_name: str | None
    """name of the root of the schema"""
    serde: Literal["text", "binary"] | None
    """"text" (ColumnarSerDe) or "binary" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file
    does not state it"""
    serde_properties: Mapping[str, Any] | None
    """table and SerDe properties by Hive's names: field.delim, collection.delim, mapkey.delim,
    escape.delim, serialization.null.format, timestamp.formats ..."""
    stripe_rows: int | None
    """most rows of a stripe"""
    stripe_size: int | str | None
    """bytes of memory after which a stripe ends"""
    sync_seed: int | None
    """seed of the sync marker: makes the file reproducible"""
    tags: bool | None
    """whether cells are written with tags; default: whether there is a column `tags`"""
    timestamp: int | None
    """timestamp in milliseconds of cells that have none: there is no column `timestamp`, or it is null"""
    timezone: str | None
    """time zone of the session in which Hive 2.x or older wrote binary timestamps, such as
    "America/Los_Angeles"; default: UTC"""
    types: Mapping[str, Any] | None
    """{column: "varchar(n)" or "char(n)"} for string columns, nested ones as a.b: values are cut to n
    characters; char is padded with blanks"""
    value_index: bool | None
    """true writes a value index; the values must ascend and contain no nulls"""
    view: Literal["cells", "kv"] | None
    """"cells" (HBase) or "kv" (Hudi); default: "kv" if the columns are `key` and `value`"""


class OpenKeywords(OpenOptions, total=False):
    """All keywords of `open`."""

    format: FormatName | None
    storage_options: Mapping[str, Any] | None
    filesystem: Any
    verify_checksums: bool
    keys: Keys | None


class ScanOptions(OpenOptions, total=False):
    """What `scan` takes besides its own arguments, also those of `hive_table` and `iceberg_table` only."""

    filter: Filter | None
    location: Mapping[str, str] | None
    snapshot_id: int | None
