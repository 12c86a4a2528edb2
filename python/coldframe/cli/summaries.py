"""What each command does, in a line. The list of commands needs these lines, and not the modules."""

from __future__ import annotations

__all__ = ["SUMMARIES"]

SUMMARIES = {
    "detect": "detect the format of files from their bytes",
    "schema": "show the columns and their types",
    "meta": "show the metadata of a file",
    "stats": "show the statistics that a file stores",
    "splits": "show the parts in which a file can be read in parallel",
    "head": "show the first rows as a table",
    "cat": "write all rows to standard output",
    "count": "count the rows",
    "convert": "write the rows to a file of another format",
    "get": "look up keys by the file's index",
    "scan": "write the rows of a range of keys to standard output",
    "keys": "list the distinct keys of a sorted file, in order",
    "bloom": "test whether files may contain a value, by their bloom filters; exit code 1 if none may",
    "sizes": "show the size of each column in the file and in memory",
    "index": "list the units of a file, or those that a filter does not rule out",
    "diff": "compare the rows of two tables and show the differences; exit code 1 if there are any",
    "sql": "query files and tables with SQL, run by DuckDB",
    "summarize": "show the minimum, maximum, distinct and missing values of each column, by DuckDB",
    "tables": "list the tables below a directory, of every format, or those of a Hive metastore",
    "dictionary": "show the dictionaries of a column, as ORC's stripes and CFiles store them",
    "inspect": "show the physical layout: the structure of every byte of the file",
    "layout": "draw the physical layout as a page for the browser",
    "verify": "decode everything, check all that the format can verify, and print what was checked",
    "salvage": "write all rows that can still be read to a Parquet file",
    "options": "list the options of a format, with their values and meaning",
    "migrate": "convert a directory tree to Parquet, Iceberg, Delta or ORC, verified",
    "audit": "compare a migrated directory with the record of its migration",
    "status": "show how far a migration is, also while it runs, from its journal",
    "delete": "delete the sources that a migration has listed as safe, with a receipt",
    "unswitch": "undo migrate --switch in a Hive metastore",
    "sample": "write a small estate of all formats, with one damaged file, to try the commands on",
    "completion": "print a script that completes commands and options in a shell",
}
