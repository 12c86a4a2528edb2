"""The options that formats declare as types of keywords. Made by packaging/keywords.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

__all__ = ["OpenOptions", "WriteOptions"]

# fmt: off

Time = datetime | str | int


class OpenOptions(TypedDict, total=False):
    """What `open` and `scan` take besides their own arguments."""

    acid: bool | None
    """the directory of a transactional Hive table opens as its live rows; false refuses it, for those who
    want its files one by one"""
    acid_valid_write_ids: str | None
    """of a transactional table: which writes count, as Hive's ValidReaderWriteIdList has it:
    "table:highest:least open:open,..:aborted,.."; default all"""
    as_of: Time | None
    """the time by which cells have expired or not, in milliseconds or as text (UTC); default now"""
    block_cache_bytes: int | str | None
    """decoded blocks that look-ups keep; or: decoded blocks of a file that look-ups keep: tables have
    many files"""
    byte_array: Literal["binary", "string"] | None
    """what all byte arrays are; default string where the file calls them UTF8 and their first page is"""
    columns: Mapping[str, Any] | None
    """{"family:qualifier": type}: the columns of view="pivot"; types are HBase's Bytes: binary, string,
    long, int, short, float, double, boolean, decimal (as text)"""
    complete: bool | None
    """true demands a tablet for each hash bucket; false says that other servers are known to hold some:
    without either, those that they may hold are a warning"""
    decode: Literal["avro"] | None
    """"avro": Hudi's values also as a struct of the schema that the file holds"""
    dialect: Literal[
        "auto", "redelm-a", "redelm-b", "redelm-c", "redelm-d", "redelm-e", "redelm-f", "spec"
    ] | None
    """"auto" tells it by the pages; "redelm-a" .. "redelm-f" or "spec" where they cannot"""
    dictionary: bool | None
    """true gives text and bytes as Arrow dictionaries; or: true hands out string columns as Arrow
    dictionaries; the words of a stripe with a dictionary are not repeated"""
    families: Sequence[str] | str | None
    """the only families to read; default all"""
    hive_version: str | None
    """whose lenient parsing and calendar apply"""
    int96: Literal["binary", "timestamp"] | None
    """what 96-bit values are"""
    masked: Literal["read", "error"] | None
    """"read" gives encrypted columns without a key as their mask left them; "error" refuses them"""
    max_block_bytes: int | str | None
    """largest block after decompression"""
    max_columns: int | None
    """most columns of a file"""
    max_depth: int | None
    """deepest nesting"""
    max_metadata_bytes: int | str | None
    """largest header, footer, index or key"""
    max_unit_rows: int | None
    """most rows of a row group, stripe or block"""
    ordinal: bool | None
    """true adds the column `ordinal`: the place of each value, from 0"""
    phoenix: str | None
    """of a table that Phoenix wrote its CREATE TABLE statement: the columns of view="pivot", by Phoenix's
    types, with those of the row key"""
    pivot: Mapping[str, Any] | None
    """{"family:qualifier": type}: one row per row key with the latest visible value of these columns;
    types are HBase's Bytes: binary, string, long, int, short, float, double, boolean"""
    recover: bool | None
    """true finds the stripes of a file without its tail; needs `schema` or `schema_from`. Where nothing
    is left of the tail that proves how many stripes there were, `on_error` must be skip or null; or: true
    reads a file without a whole footer at its end up to the last cumulative footer inside it; where there
    is none, by its pages and the `schema` given"""
    rest: bool | None
    """with view="pivot": whether the column `rest` has all other columns; default true, with `phoenix`
    false"""
    row_group_rows: int | None
    """rows of each row group but the last, where `recover` cannot tell from the pages"""
    schema: Any
    """names and types of the columns where the file does not hold them, such as "id bigint, tags
    array<string>"; an Arrow schema in Python and Rust"""
    schema_from: str | None
    """with `recover`: the name of the whole file beside it whose types, codec and writer the file has"""
    schema_of: Literal["file", "table"] | None
    """"file": `schema` names columns of this file. "table": it is the table's; of it the file takes
    binary for its text and digits for decimals that state none, by name, or by position where its columns
    are called _col0, _col1 .."""
    serde: Literal["text", "binary"] | None
    """"text" (ColumnarSerDe) or "binary" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file
    does not say which"""
    serde_properties: Mapping[str, Any] | None
    """table and SerDe properties under Hive's names: field.delim, collection.delim, mapkey.delim,
    escape.delim, serialization.null.format, timestamp.formats ..."""
    snapshot: Time | str | None
    """the table as it was before this time: a datetime (UTC if it has no zone), ISO 8601 text, or a raw
    hybrid time; default latest; or: the name of a snapshot: the table as it was when that was taken"""
    table: str | None
    """the table's name or id; needed where there are several; or: "namespace:table"; needed where there
    are several"""
    tablet: str | None
    """the id of the one tablet to read"""
    threads: int | None
    """how many threads may be at work on a read; default all processors, 1 for none but the caller's"""
    time_range: tuple[Time, Time] | None
    """(from, to): only cells of these timestamps, `to` excluded"""
    timestamp_unit: Literal["ns", "us"] | None
    """unit of timestamps; us holds years outside 1677..2262, cutting digits off; or: unit of timestamps;
    us holds years outside 1677..2262"""
    timezone: str | None
    """zone of the session that wrote binary timestamps with Hive 2.x or older, such as
    "America/Los_Angeles"; default UTC"""
    types: Literal["code", "name"] | None
    """whether a cell's type is a number or a word"""
    value_type: str | None
    """the values' Arrow type where the file leaves it open: "decimal128(18,5)", "binary", "timestamp[us]"
    """
    versions: int | None
    """with view="versions" or "raw": most versions of a column"""
    view: Literal["cells", "kv"] | Literal["latest", "versions", "raw", "pivot"] | None
    """"cells" (HBase) or "kv" (Hudi); default what the file says it is; or: "latest" (default): the
    newest visible version of each column, as a client's scan shows it; "versions": all visible ones;
    "raw": all cells and delete markers that are stored; "pivot": a row for each row key, the columns of
    `columns` and a map of the others"""
    wal: bool | None
    """whether rows count that only the write-ahead log holds: those that the server had in memory; or:
    whether edits that only the write-ahead logs hold count. A snapshot has none"""


class WriteOptions(TypedDict, total=False):
    """What `write` takes besides its own arguments."""

    block_size: int | str | None
    """bytes of cells with which a data block ends; or: bytes before encoding with which a block ends"""
    bloom: Literal["none", "row", "rowcol"] | None
    """what a bloom filter is made of; there is none for Hudi"""
    bloom_block_size: int | str | None
    """bytes of a chunk of the bloom filter"""
    bloom_error_rate: float | None
    """false positives of the bloom filter"""
    bloom_filter_columns: Sequence[str] | str | None
    """columns that get bloom filters: a list, or names with commas between; nested ones as a.b"""
    bloom_filter_fpp: float | None
    """part of absent values that a bloom filter lets pass"""
    bulk_load: bool | None
    """whether the file info says that the file is to be loaded into a table"""
    bytes_per_checksum: int | str | None
    """bytes that a checksum covers"""
    checksum: Literal["crc32c", "crc32", "null"] | None
    """what checks the bytes of a block"""
    checksums: bool | None
    """false leaves out the CRC-32C of header, blocks and footer"""
    codec: str | None
    compression: str | None
    """compression of blocks; none or gz for Hudi; or: how blocks are compressed; or: compression of
    streams and footers; or: compression of keys and columns: a word (deflate is the same as zlib, under
    Hadoop's other name), or the class name of a Hadoop codec; or: compression of pages"""
    compression_block_size: int | str | None
    """bytes that are compressed together; default 4 KiB to 256 KiB by stripe size and columns, as Java"""
    compression_level: int | None
    """level of gz, zstd, brotli or bzip2; or: level of the codec; default the codec's own; or: level of
    gzip, 0 to 12; default 6"""
    crc: bool | None
    """whether pages get a CRC-32 of their stored bytes"""
    create_time: int | None
    """milliseconds, when the file was made; default now"""
    data_type: Literal[
        "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64", "STRING", "BOOL",
        "FLOAT", "DOUBLE", "BINARY", "UNIXTIME_MICROS", "INT128", "DECIMAL32", "DECIMAL64",
        "DECIMAL128", "IS_DELETED", "VARCHAR", "DATE"
    ] | None
    """Kudu's name of the type where Arrow's leaves it open: VARCHAR, INT128, DECIMAL64 .."""
    dialect: Literal["redelm-f", "spec"] | None
    """"redelm-f": as the reference's last commit wrote; "spec": as the format's README says"""
    dictionary_threshold: float | None
    """a string column gets dictionaries if at most this part of its first row group's values is distinct;
    0 for never, 1 for always"""
    encoding: Literal[
        "none", "prefix", "diff", "fast_diff", "row_index_v1", "plain", "rle", "bit_shuffle", "dict",
        "group_varint", "group_var_int"
    ] | None
    """how cells are encoded; none for Hudi; or: how values become bytes; default Kudu's own for the type;
    or: of INT32 and INT64: "plain" or "group_var_int", which the reference cannot read"""
    encoding_strategy: Literal["speed", "compression"] | None
    """"speed" rounds the widths of integers up to those that are read fastest, "compression" does not"""
    family: bytes | str | None
    """the column family of all cells where there is no column `family`"""
    footer_every: int | None
    """row groups after each of which a sync marker and a footer of all so far are written, so that a
    partly written file can be read; default never"""
    header: Literal["RCF1", "SEQ6"] | None
    """"RCF1" or "SEQ6" (Hive before 0.9)"""
    hive_version: str | None
    """whose lenient parsing and calendar apply"""
    index_block_size: int | str | None
    """bytes with which a block of the index ends"""
    index_min_entries: int | None
    """entries below which the root of the index is not cut, whatever its size"""
    last_second: Literal["refuse", "cpp"] | None
    """times in the last second before 1970 with a millisecond or more, which Java cannot read: "refuse"
    ends the writing, "cpp" stores them for readers in C++"""
    meta_blocks: Mapping[str, Any] | None
    """meta blocks: text or bytes by name, such as Hudi's bloomFilter"""
    metadata: Mapping[str, Any] | None
    """further entries of the file info: text or bytes by name; or: the file's user metadata: text or
    bytes by name; or: further entries of the header's metadata; or: the file's key/value metadata; a
    value may be None"""
    page_bytes: int | str | None
    """levels and values with more than which a page ends"""
    record_interval: int | None
    """most rows of a row group; default no limit"""
    row_group_bytes: int | str | None
    """bytes of cells after which a row group ends; or: pages and values with more than which a row group
    ends"""
    row_group_rows: int | None
    """most rows of a row group; the default is the most that is read by default"""
    row_index_stride: int | None
    """rows of a row group; 0 for no indexes"""
    schema: Any
    """Hive column types such as "id bigint, name varchar(20)" where they are not those the Arrow types
    give"""
    schema_name: str | None
    """name of the schema's root"""
    serde: Literal["text", "binary"] | None
    """"text" (ColumnarSerDe) or "binary" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file
    does not say which"""
    serde_properties: Mapping[str, Any] | None
    """table and SerDe properties under Hive's names: field.delim, collection.delim, mapkey.delim,
    escape.delim, serialization.null.format, timestamp.formats ..."""
    stripe_rows: int | None
    """most rows of a stripe; the default is the most that is read by default"""
    stripe_size: int | str | None
    """bytes of memory with which a stripe ends"""
    sync_seed: int | None
    """makes the sync marker, and so the file, reproducible"""
    tags: bool | None
    """whether cells have tags; default whether there is a column `tags`"""
    timestamp: int | None
    """milliseconds, the timestamp of all cells where there is no column `timestamp` or it is null"""
    timezone: str | None
    """zone of the session that wrote binary timestamps with Hive 2.x or older, such as
    "America/Los_Angeles"; default UTC"""
    types: Mapping[str, Any] | None
    """"varchar(n)" or "char(n)" by the names of string columns, nested ones as a.b: values are cut to n
    characters, of char filled up with blanks"""
    value_index: bool | None
    """true writes a value index; values must ascend, without nulls"""
    view: Literal["cells", "kv"] | None
    """"cells" (HBase) or "kv" (Hudi); default "kv" where the columns are key and value"""
