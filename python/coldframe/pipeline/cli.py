"""`coldframe migrate SRC DST`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from coldframe.cli.options import pairs, size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coldframe.pipeline.report import Report

EPILOG = """\
exit codes: 0 done; 1 files failed or could not be read, or the target is not what was verified; 2 wrong use,
such as a missing schema

A run that was stopped goes on where it was when it is started again with the same arguments. Everything about
it is below DST/_coldframe: report.html, report.json, manifest.jsonl, quarantine/.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Adds `migrate` to the commands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "migrate",
        help="convert a directory tree to Parquet, Iceberg, Delta or ORC, verified",
        description="Converts every table below SRC to one below DST with Spark, and verifies what it wrote.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `migrate`."""
    parser.add_argument(
        "src", metavar="SRC", help="directory or URL with the tables; nothing in it is changed"
    )
    parser.add_argument("dst", metavar="DST", help="new or empty directory or URL, or that of an earlier run")
    parser.add_argument(
        "--to", default="parquet", choices=["parquet", "iceberg", "delta", "orc"], help="target (parquet)"
    )
    parser.add_argument(
        "--schema", metavar="TABLES.TOML", help="schemas of the tables (SRC/tables.toml where it exists)"
    )
    parser.add_argument(
        "--on-error",
        default="raise",
        choices=["raise", "skip", "quarantine"],
        help="damaged files: fail them, save what can be saved, or also keep a copy (raise)",
    )
    parser.add_argument(
        "--untyped", action="store_true", help="binary columns _c0.. for RCFiles without a schema"
    )
    parser.add_argument(
        "--timestamp-unit",
        "--timestamps",
        default="us",
        choices=["us", "ns"],
        help="unit of timestamps written (us)",
    )
    parser.add_argument(
        "--codec",
        "--compression",
        default="zstd",
        choices=["zstd", "snappy", "gzip", "none"],
        help="of Parquet (zstd)",
    )
    parser.add_argument(
        "--split-bytes",
        type=size_of,
        default=128 << 20,
        metavar="SIZE",
        help="source bytes for one task (128m)",
    )
    parser.add_argument(
        "--target-file-size",
        type=_size_or_none,
        default=128 << 20,
        metavar="SIZE",
        help="of a file of the target, at most; small sources of a partition are merged into such files. "
        "0: at least one file for each source (128m)",
    )
    parser.add_argument("--split-mb", type=_mebibytes, dest="split_bytes", help=argparse.SUPPRESS)
    parser.add_argument("--no-verify", action="store_true", help="do not read back what was written")
    parser.add_argument(
        "--master",
        help="Spark master (local[*]; spark-submit's own under spark-submit), or in-process[N]: N threads of "
        "this process, without Spark (in-process: one a processor; the default without PySpark or Java)",
    )
    parser.add_argument(
        "--on-vanished",
        default="fail",
        choices=["fail", "keep", "remove"],
        help="sources that are gone since an earlier run: say so and exit with 1, keep their rows, or take "
        "them out of the target (fail)",
    )
    parser.add_argument(
        "--most-vanished",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="how much of a table --on-vanished remove takes out at once, by the bytes of its sources (0.5)",
    )
    parser.add_argument(
        "--dropped",
        action="append",
        default=[],
        metavar="TABLE",
        help="a table, or a pattern of tables, that --on-vanished remove may take out whole; repeatable",
    )
    parser.add_argument(
        "--on-foreign-changes",
        default="refuse",
        choices=["refuse", "append"],
        help="Delta and Iceberg tables that others have written to: leave them, or add what is new (refuse)",
    )
    parser.add_argument(
        "--leave-behind",
        action="append",
        default=[],
        metavar="WHAT",
        help="what of a directory (HBase, Kudu) need not be in DST for it to be listed as safe to delete: "
        "older-versions, snapshots, tables, .. or one of them, tables=ns:old; with commas, or repeated",
    )
    parser.add_argument(
        "--allow-loss",
        action="append",
        default=[],
        metavar="HOW",
        help="changes of values that keep no source off that list: digits-below-microseconds, "
        "malformed-text, partition-columns, masked-columns; with commas, or repeated",
    )
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only files that match: a name (*.orc), or a path below SRC (sales/dt=2014*); repeatable",
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="not those that match; repeatable"
    )
    parser.add_argument(
        "--metastore",
        metavar="URI",
        help="thrift://host:9083 of a Hive metastore: compare what is migrated with the numbers of rows, "
        "locations and formats that it has",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done and refused, and write nothing"
    )
    for end in ("source", "target"):
        parser.add_argument(
            f"--{end}-storage-option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help=f"credentials and endpoints of the {end}'s URL",
        )
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="go on with an earlier run (the default)")
    again.add_argument("--fresh", action="store_true", help="convert again what an earlier run has done")
    parser.add_argument("--json", action="store_true", help="print report.json instead of a summary")


def _size_or_none(text: str) -> int:
    """A size, or 0."""
    return 0 if text == "0" else size_of(text)


def _mebibytes(text: str) -> int:
    """What `--split-bytes` was, in MiB."""
    return size_of(f"{text}m")


def run(arguments: argparse.Namespace) -> int:
    """Runs the migration and prints its outcome."""
    from coldframe._coldframe import ColdframeError

    try:
        if arguments.dry_run:
            return _preview(arguments)
        report = _migrate(arguments)
    except (ColdframeError, ValueError) as error:
        print(f"coldframe migrate: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1, default=str))
    else:
        print(summary(report))
    return report.exit_code


def _migrate(arguments: argparse.Namespace) -> Report:
    try:
        from coldframe.pipeline.run import migrate
    except ImportError as missing:
        from coldframe.errors import unsupported

        raise unsupported(f"migrating without {missing.name}; pip install 'coldframe[spark]'") from missing
    from coldframe.pipeline.progress import progress_for
    from coldframe.pipeline.scheduling import InProcess
    from coldframe.pipeline.session import in_process, start_session, stop

    with contextlib.ExitStack() as stack:

        def session() -> SparkSession:
            spark = start_session(arguments.master)
            stack.callback(stop, spark)
            return spark

        threads, why = in_process(arguments.master)
        if why is not None:
            print(f"coldframe migrate: {why}: in-process, {threads} threads", file=sys.stderr)
        progress = stack.enter_context(progress_for(sys.stderr))
        return migrate(
            session if threads is None else InProcess(threads),
            arguments.src,
            arguments.dst,
            to=arguments.to,
            tables=arguments.schema,
            on_error=arguments.on_error,
            on_vanished=arguments.on_vanished,
            most_vanished=arguments.most_vanished,
            dropped=arguments.dropped,
            on_foreign_changes=arguments.on_foreign_changes,
            leave_behind=_names(arguments.leave_behind),
            allow_loss=_names(arguments.allow_loss),
            include=arguments.include,
            exclude=arguments.exclude,
            metastore=arguments.metastore,
            untyped=arguments.untyped,
            timestamp_unit=arguments.timestamp_unit,
            split_bytes=arguments.split_bytes,
            target_file_bytes=arguments.target_file_size,
            codec=arguments.codec,
            verify=not arguments.no_verify,
            fresh=arguments.fresh,
            progress=progress,
            **_storage(arguments),
        )


def _names(given: list[str]) -> list[str]:
    """Names of repeated arguments, each of which may have several."""
    return [name.strip() for one in given for name in one.split(",") if name.strip()]


def _storage(arguments: argparse.Namespace) -> dict[str, Any]:
    """How the stores of source and target are reached."""
    return {
        f"{end}_storage_options": pairs(
            getattr(arguments, f"{end}_storage_option"), f"--{end}-storage-option"
        )
        or None
        for end in ("source", "target")
    }


def _preview(arguments: argparse.Namespace) -> int:
    from coldframe.pipeline.options import Options
    from coldframe.pipeline.preview import preview, preview_text
    from coldframe.pipeline.progress import progress_for
    from coldframe.pipeline.selection import select

    options = Options(
        to=arguments.to,
        on_error=arguments.on_error,
        on_vanished=arguments.on_vanished,
        most_vanished=arguments.most_vanished,
        dropped=tuple(arguments.dropped),
        untyped=arguments.untyped,
        timestamp_unit=arguments.timestamp_unit,
        split_bytes=arguments.split_bytes,
        target_file_bytes=arguments.target_file_size,
        compression=arguments.codec,
        fresh=arguments.fresh,
        metastore=arguments.metastore,
        selection=select(arguments.include, arguments.exclude),
        **_storage(arguments),
    )
    with progress_for(sys.stderr) as progress:
        found = preview(arguments.src, arguments.dst, options, tables=arguments.schema, progress=progress)
    print(json.dumps(found.to_json(), indent=1) if arguments.json else preview_text(found))
    return found.exit_code


def add_audit_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Adds `audit` to the commands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "audit",
        help="compare a migrated directory with what its migration wrote down",
        description="Compares what lies in DST with what was verified: length, checksum and number of rows "
        "of each file. Changes nothing, and needs no Spark; the source only for --before-delete.",
        epilog="exit codes: 0 all is as it was verified; 1 something is not; 2 no migration has been there",
    )
    parser.add_argument(
        "dst", metavar="DST", nargs="?", help="directory or URL that was migrated into; a list names its own"
    )
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="credentials and endpoints of a URL",
    )
    parser.add_argument(
        "--source-storage-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="the same of the sources that a list names",
    )
    parser.add_argument(
        "--before-delete",
        metavar="LIST",
        help="also check a safe-to-delete.txt: each source by its size, time and digest, and by the journal",
    )
    parser.add_argument("--deep", action="store_true", help="also read every value, and compare fingerprints")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_audit)
    return parser


def run_audit(arguments: argparse.Namespace) -> int:
    """Runs the audit and prints its outcome."""
    from coldframe.pipeline.audit import audit
    from coldframe.pipeline.report_html import size_text

    if arguments.dst is None and arguments.before_delete is None:
        print("coldframe audit: name DST, or a list with --before-delete", file=sys.stderr)
        return 2
    found = audit(
        arguments.dst,
        deep=arguments.deep,
        before_delete=arguments.before_delete,
        storage_options=pairs(arguments.storage_option, "--storage-option") or None,
        source_storage_options=pairs(arguments.source_storage_option, "--source-storage-option") or None,
    )
    if arguments.json:
        print(json.dumps(found.to_json(), indent=1))
        return found.exit_code
    for fault in found.faults:
        print(
            f"{fault.kind}: {fault.file}: {fault.reason}" + (f" (of {fault.source})" if fault.source else "")
        )
    for table in found.tables:
        if table["rows_now"] is not None:
            own = f"{table['path']} ({table['to']}, {table['version']}): {table['rows_now']:,} rows"
            print(f"{own} by its own log, {table['rows_verified']:,} by the journal")
    if found.interrupted:
        print("the last run did not come to its end: start it again")
    if found.listed is not None:
        broken = sum(fault.kind == "line" for fault in found.faults)
        print(f"{found.listed - broken:,} of {found.listed:,} lines of the list hold")
    print(f"{found.files:,} files, {found.rows:,} rows, {size_text(found.bytes)}: {found.verdict.text}")
    return found.exit_code


def summary(report: Report) -> str:
    """The outcome in a few lines."""
    from coldframe.pipeline.findings import metastore_lines
    from coldframe.pipeline.report_html import size_text

    lines: list[str] = []
    for table in report.tables:
        counts = ", ".join(
            f"{count} {status}" for status, count in table.to_json()["counts"].items() if count
        )
        sizes = f"{size_text(table.bytes_in)} -> {size_text(table.bytes_out)}"
        outcome = f"{table.rows:,} rows, {sizes}, {table.verdict.text}"
        lines.append(f"{table.name} ({table.format}): {counts}; {outcome}")
        for file in table.files:
            if file.error is not None:
                lines.append(f"  {file.status}: {file.source}: {file.error}")
            elif file.damage:
                lost = "an unknown number of" if file.rows_lost is None else f"{file.rows_lost:,}"
                places = "1 place" if len(file.damage) == 1 else f"{len(file.damage)} places"
                lines.append(f"  {file.status}: {file.source}: {lost} rows lost in {places}")
        lines += [f"  {table.error}"] if table.error is not None else []
        lines += [f"  missing: {name}" for name in table.missing]
        lines += [f"  not the migration's, but in the table: {name}" for name in table.foreign]
        lines += [f"  a part of the table only: {text}" for text in table.partial]
        lines += metastore_lines(table.metastore, "  ")
        if table.vanished:
            what = {"fail": "--on-vanished says what to do", "keep": "their rows stay", "remove": "taken out"}
            count, first = len(table.vanished), table.vanished[0]
            lines.append(f"  {count:,} source(s) are gone, such as {first}: {what[table.on_vanished]}")
    if report.metastore is not None:
        lines += metastore_lines(report.metastore.findings)
        lines.append(report.metastore.summary)
    lines += [f"NOT READ: {one.relative}: {one.reason}" for one in report.unread]
    lines += [f"NOT ASKED FOR: {one.source}: {one}" for one in report.left_out if one.blocks]
    lines += [f"left behind: {one.source}: {one}" for one in report.left_out if one.visible and one.named]
    if report.hidden:
        names = "1 hidden name" if report.hidden == 1 else f"{report.hidden:,} hidden names"
        lines.append(f"{names} passed over, such as {report.hidden_names[0]}")
    if report.unknown:
        count = len(report.unknown)
        files = "1 file" if count == 1 else f"{count:,} files"
        lines.append(f"{files} of other formats left alone, such as {report.unknown[0]}")
    lines.append(f"{report.verdict.text}; {report.safe_to_delete:,} sources in safe-to-delete.txt")
    lines.append(f"{report.rows:,} rows in {report.seconds:.1f} s; {report.target}/_coldframe/report.html")
    return "\n".join(lines)
