"""`coldframe migrate SRC DST`."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from coldframe.cli import output
from coldframe.cli.options import add_choice, add_list_option, add_storage_option, pairs, size_of
from coldframe.cli.summaries import SUMMARIES
from coldframe.logs import step

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from coldframe.pipeline.options import Options
    from coldframe.pipeline.report.model import Report
    from coldframe.pipeline.report.progress import Progress

_log = logging.getLogger(__name__)

EPILOG = """\
exit codes: 0 success; 1 files failed or could not be read, or the target differs from what was verified; 2
nothing was started: wrong usage, such as a missing schema; 3 stopped by a disk, a permission, a store or
another migration: start it again

To continue a stopped run, start it again with the same arguments. Its report and state are in
DST/_coldframe: report.html, report.json, manifest.jsonl, quarantine/.
"""


def add_parsers(commands: Any) -> None:
    """Adds `migrate` to the commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "migrate",
        help=SUMMARIES["migrate"],
        description="Converts every table below SRC to one below DST with Spark, and verifies what it wrote.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `migrate`."""
    _add_places(parser)
    _add_conversion(parser)
    _add_safety(parser)
    _add_selection(parser)
    _add_metastore(parser)
    _add_catalog(parser)
    _add_run(parser)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "src",
        metavar="SRC",
        help="directory or URL with the tables; or thrift://host:9083/[database[.table]], the tables of a "
        "Hive metastore; or a file with definitions: a dump of a metastore, or a script of "
        "CREATE TABLE; never changed",
    )
    parser.add_argument(
        "dst",
        metavar="DST",
        help="a new or empty directory or URL, or the destination of an earlier run",
    )


def _add_conversion(parser: argparse.ArgumentParser) -> None:
    """The options for the written files."""
    add_choice(parser, "--to", ["parquet", "iceberg", "delta", "orc"], "format of the target")
    add_choice(parser, "--files", ["parquet", "orc"], "with --to iceberg: format of the tables' files")
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="with --to iceberg: files stay where they are, and only files that Iceberg's readers would get "
        "wrong are converted",
    )
    add_list_option(
        parser,
        "--detach",
        "TABLE",
        "with --adopt: a table, or a pattern of tables, that is to read no file of the source any more: "
        "its files that still lie there are converted; repeatable",
    )
    add_choice(
        parser,
        "--prove",
        ["pyiceberg", "spark"],
        "with --adopt: who reads the rows of a new table before it is verified: PyIceberg alone, or a Spark "
        "with Iceberg's runtime as well",
    )
    add_list_option(
        parser,
        "--spark-conf",
        "KEY=VALUE",
        "a setting of the Spark session, such as spark.jars=iceberg-spark-runtime.jar; repeatable",
    )
    parser.add_argument(
        "--schema", metavar="TABLES.TOML", help="schemas of the tables (default: SRC/tables.toml, if any)"
    )
    add_choice(
        parser,
        "--on-error",
        ["raise", "skip", "quarantine"],
        "damaged files: fail, save the readable rows, or also keep a copy of the file",
    )
    parser.add_argument(
        "--untyped", action="store_true", help="read RCFiles without a schema as binary columns _c0 .."
    )
    add_choice(parser, "--timestamp-unit", ["us", "ns"], "unit of the timestamps written")
    add_choice(parser, "--codec", ["zstd", "snappy", "gzip", "none"], "compression of Parquet")
    parser.add_argument(
        "--split-bytes",
        type=size_of,
        default=128 << 20,
        metavar="SIZE",
        help="bytes of the source that one task reads (default: 128m)",
    )
    parser.add_argument(
        "--target-file-size",
        type=_size_or_none,
        default=128 << 20,
        metavar="SIZE",
        help="largest file of the target; small sources of a partition are merged up to this size. "
        "0: at least one file for each source (default: 128m)",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not read back what was written")
    parser.add_argument(
        "--master",
        help="Spark master (default: local[*], or that of spark-submit), or in-process[N]: N threads of this "
        "process, without Spark (in-process: one for each processor; the default without PySpark or Java)",
    )


def _add_safety(parser: argparse.ArgumentParser) -> None:
    """The options for removals, foreign changes, and accepted losses of sources that are safe to delete."""
    add_choice(
        parser,
        "--on-vanished",
        ["fail", "keep", "remove"],
        "sources that have disappeared since an earlier run: report them and exit with 1, keep their "
        "rows, or remove their rows from the target",
    )
    parser.add_argument(
        "--most-vanished",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="the largest share of a table that --on-vanished remove may remove in one run, by bytes of the "
        "sources (default: 0.5)",
    )
    add_list_option(
        parser,
        "--dropped",
        "TABLE",
        "a table, or a pattern of tables, that --on-vanished remove may remove entirely; repeatable",
    )
    add_choice(
        parser,
        "--archived-rows",
        ["ask", "keep", "drop"],
        "rows of sources that an earlier run listed as safe to delete, and that are gone or replaced by "
        "other files: ask keeps these rows and exits with 1 if another option would remove them; keep keeps "
        "the rows of sources that are gone; drop treats these sources like all others",
    )
    add_choice(
        parser,
        "--on-foreign-changes",
        ["refuse", "append"],
        "Delta and Iceberg tables that others have written to: leave them alone, or append new rows",
    )
    add_list_option(
        parser,
        "--leave-behind",
        "WHAT",
        "parts of an HBase or Kudu directory that DST may lack when the directory is listed as safe to "
        "delete: older-versions, snapshots, tables, .. or a single part: tables=ns:old; separated by "
        "commas, or repeated",
    )
    add_list_option(
        parser,
        "--allow-loss",
        "HOW",
        "accepted changes of values for sources that are listed as safe to delete: "
        "digits-below-microseconds, malformed-text, partition-columns, masked-columns, not-shown-by-spark; "
        "separated by commas, or repeated",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    add_list_option(
        parser,
        "--include",
        "PATTERN",
        "only files that match: a name (*.orc), or a path below SRC (sales/dt=2014*); repeatable",
    )
    add_list_option(parser, "--exclude", "PATTERN", "leave out files that match; repeatable")


def _add_metastore(parser: argparse.ArgumentParser) -> None:
    """The options for a metastore, as the source or to compare with."""
    parser.add_argument(
        "--metastore",
        metavar="URI",
        help="thrift://host:9083 of a Hive metastore: compare the result with its row counts, locations and "
        "formats",
    )
    add_list_option(
        parser,
        "--tables",
        "PATTERN",
        "if SRC is a metastore: the tables to migrate, as database.table with * and ?; repeatable",
    )
    add_list_option(
        parser,
        "--location",
        "OLD=NEW",
        "if SRC is a metastore: a prefix of its locations, and where those files are now; repeatable",
    )
    add_choice(
        parser,
        "--others",
        ["list", "spark"],
        "if SRC is a metastore: partitions in Parquet, Avro, text and SequenceFiles: left out and "
        "reported, or read by Spark",
    )


def _add_catalog(parser: argparse.ArgumentParser) -> None:
    """The options for registering tables of the target in a catalog."""
    parser.add_argument(
        "--catalog",
        metavar="NAME",
        help="catalog to register the tables in: of Iceberg, its name in PyIceberg's configuration (a file "
        "below DST); of Parquet and Delta, thrift://host:9083[/database]",
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="namespace of the tables in the catalog (their database in the metastore, or migrated)",
    )
    add_list_option(
        parser,
        "--rename",
        "OLD=NEW",
        "a table and its name in the catalog: table or namespace.table; repeatable",
    )
    parser.add_argument(
        "--suffix", default="", metavar="TEXT", help="added to the names of all other tables in the catalog"
    )
    parser.add_argument(
        "--switch",
        action="store_true",
        help="give each verified table the name of its source table in the metastore, and rename that to "
        "NAME_old; coldframe unswitch undoes it",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be converted and what refused; write nothing"
    )
    add_choice(
        parser,
        "--order",
        ["listed", "size", "age", "name"],
        "tables that come first: as listed, the largest, the oldest, or by name",
    )
    parser.add_argument(
        "--waves",
        metavar="FILE",
        help="a name, path or pattern of tables on each line: these are converted before all others, in the "
        "order of the lines",
    )
    parser.add_argument(
        "--max-bytes-per-second",
        type=size_of,
        metavar="SIZE",
        help="how much of the source is read in a second, on average, such as 50m; tasks wait for it",
    )
    parser.add_argument(
        "--window",
        metavar="HH:MM-HH:MM",
        help="the hours in which tasks start, in local time, such as 22:00-06:00: the run waits for them",
    )
    parser.add_argument(
        "--summary",
        metavar="FILE",
        help="write what has changed since the last run to FILE, one screen of text; replaces it",
    )
    for end in ("source", "target"):
        help = f"credentials and endpoints for the URL of the {end}"
        add_storage_option(parser, f"--{end}-storage-option", help)
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue an earlier run (the default)")
    again.add_argument(
        "--fresh", action="store_true", help="convert everything again that an earlier run converted"
    )
    parser.add_argument("--json", action="store_true", help="print report.json instead of a summary")


def _size_or_none(text: str) -> int:
    """A size, or 0."""
    return 0 if text == "0" else size_of(text)


def run(arguments: argparse.Namespace) -> int:
    """Runs the migration and prints its outcome."""
    from coldframe.cli.stopping import ERRORS, stopped

    try:
        if arguments.adopt:
            return _adopt(arguments)
        if arguments.dry_run:
            return _preview(arguments)
        report = _migrate(arguments)
    except ERRORS as error:
        return stopped("migrate", error)
    if arguments.json:
        from coldframe.pipeline.report.files import report_json

        print(*report_json(report), sep="")
    else:
        from coldframe.pipeline.report.summary import summary

        print(summary(report))
    return report.exit_code


def _migrate(arguments: argparse.Namespace) -> Report:
    try:
        from coldframe.pipeline import migrate_with
    except ImportError as missing:
        from coldframe.errors import install_hint, unsupported

        raise unsupported(f"migrating without {missing.name}; {install_hint('spark')}") from missing
    from coldframe.pipeline.report.files import last_report
    from coldframe.pipeline.report.progress import progress_for
    from coldframe.pipeline.report.summary import changes
    from coldframe.pipeline.scheduling import InProcess
    from coldframe.pipeline.session import in_process

    with contextlib.ExitStack() as stack:
        session = _session_of(arguments, stack)
        threads, why = in_process(arguments.master)
        if why is not None:
            print(f"coldframe migrate: {why}: in-process, {threads} threads", file=sys.stderr)
        progress = _LoggedProgress(stack.enter_context(progress_for(sys.stderr)))
        options = _options(arguments)
        before = None
        if arguments.summary is not None:
            before = last_report(arguments.dst, options.target_storage_options)
        what = "migrating %s to %s", arguments.src, arguments.dst
        with step(_log, logging.INFO, *what) as notes:
            report = migrate_with(
                session if threads is None else InProcess(threads),
                arguments.src,
                arguments.dst,
                options,
                tables=arguments.schema,
                progress=progress,
            )
            notes.append(f"exit code {report.exit_code}")
        if arguments.summary is not None:
            output.replace_file(arguments.summary, changes(before, report) + "\n")
        return report


def _session_of(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> Callable[[], SparkSession]:
    """A function that starts Spark, and stops it with `stack`."""
    from coldframe.pipeline.session import start_session, stop, with_hive

    given = pairs(arguments.spark_conf, "--spark-conf")

    def session() -> SparkSession:
        conf = with_hive(arguments.master) if arguments.others == "spark" else {}
        spark = start_session(arguments.master, conf={**conf, **given})
        stack.callback(stop, spark)
        return spark

    return session


@dataclass
class _LoggedProgress:
    """Logs the stages of a migration, and passes them on."""

    progress: Progress

    def start(self, tables: int, files: int, size: int) -> None:
        """Planning has ended."""
        _log.info("converting %d files of %d tables, %d bytes", files, tables, size)
        self.progress.start(tables, files, size)

    def advance(self, table: str, size: int, rows: int) -> None:
        """A task has ended."""
        _log.debug("%s: %d bytes of the source done, %d rows", table, size, rows)
        self.progress.advance(table, size, rows)


def _names(given: list[str]) -> list[str]:
    """Names from repeated arguments, each a list with commas."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _lines_of(path: str | None) -> tuple[str, ...]:
    """The lines of a file, without empty lines and comments."""
    if path is None:
        return ()
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return tuple(line for line in lines if line and not line.startswith("#"))


def _options(arguments: argparse.Namespace) -> Options:
    """The arguments as options of the pipeline."""
    from coldframe.pipeline.options import Options
    from coldframe.pipeline.source.selection import select

    def storage_of(end: str) -> dict[str, str] | None:
        name = f"{end}_storage_option"
        return pairs(getattr(arguments, name), f"--{end}-storage-option") or None

    own: dict[str, Any] = {
        "dropped": tuple(arguments.dropped),
        "detach": tuple(arguments.detach),
        "leave_behind": tuple(_names(arguments.leave_behind)),
        "allow_loss": tuple(_names(arguments.allow_loss)),
        "target_file_bytes": arguments.target_file_size,
        "compression": arguments.codec,
        "verify": not arguments.no_verify,
        "tables": tuple(arguments.tables),
        "locations": pairs(arguments.location, "--location"),
        "rename": pairs(arguments.rename, "--rename"),
        "waves": _lines_of(arguments.waves),
        "selection": select(arguments.include, arguments.exclude),
        "source_storage_options": storage_of("source"),
        "target_storage_options": storage_of("target"),
    }
    # The other arguments have the names of the fields.
    same = {field.name for field in fields(Options)} - own.keys()
    return Options(**{name: getattr(arguments, name) for name in same}, **own)


def _adopt(arguments: argparse.Namespace) -> int:
    """Runs or, with `--dry-run`, plans an adoption, and prints its outcome."""
    try:
        from coldframe.pipeline import adopt_in_place
        from coldframe.pipeline.adopt.summary import adoption_text
    except ImportError as missing:
        from coldframe.errors import install_hint, unsupported

        raise unsupported(f"adopting without {missing.name}; {install_hint('iceberg')}") from missing
    if arguments.master is not None and arguments.prove != "spark":
        raise ValueError("--master: an adoption works in this process; leave it out, or --prove spark")
    where = arguments.src, arguments.dst
    with contextlib.ExitStack() as stack, step(_log, logging.INFO, "adopting %s in %s", *where):
        adoption = adopt_in_place(
            arguments.src,
            arguments.dst,
            _options(arguments),
            tables=arguments.schema,
            plan=arguments.dry_run,
            spark=_session_of(arguments, stack),
        )
    if arguments.json:
        print(json.dumps(adoption.to_json(), indent=1, default=str))
    else:
        print(adoption_text(adoption))
    return adoption.exit_code


def _preview(arguments: argparse.Namespace) -> int:
    from coldframe.pipeline import dry_run
    from coldframe.pipeline.report.preview import preview_text
    from coldframe.pipeline.report.progress import progress_for

    options = _options(arguments)
    what = "planning the migration of %s to %s", arguments.src, arguments.dst
    with step(_log, logging.INFO, *what), progress_for(sys.stderr) as progress:
        preview = dry_run(arguments.src, arguments.dst, options, tables=arguments.schema, progress=progress)
    print(json.dumps(preview.to_json(), indent=1) if arguments.json else preview_text(preview))
    return preview.exit_code
