"""The command `coldframe`: shows, checks, rescues and converts files of all formats.

Exit codes of all commands: 0 success; 1 damage or a mismatch; 2 failure (usage, unsupported, not found);
3 stopped by the surroundings (migrate, delete, unswitch); 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence

from coldframe import __version__
from coldframe._coldframe import formats, shown_in
from coldframe.cli import (
    completion,
    delete,
    dictionaries,
    diff,
    format_options,
    integrity,
    keys,
    output,
    reading,
    rescue,
    sizes,
    sql,
    unswitch,
)
from coldframe.cli.next_steps import next_step
from coldframe.cli.pager import paged
from coldframe.cli.verbosity import add_verbose_options, log_to_stderr, verbosity_of
from coldframe.errors import ColdframeError, CorruptFileError
from coldframe.terminal import printed_safely, stream_of

__all__ = ["main", "parser_of_all"]

# Commands with output that people read from the top.
_PAGED = frozenset(
    {
        "schema",
        "meta",
        "stats",
        "dictionary",
        "splits",
        "head",
        "cat",
        "get",
        "scan",
        "keys",
        "sizes",
        "index",
        "inspect",
        "diff",
        "summarize",
        "tables",
        "options",
    }
)

DAMAGED, FAILED, INTERRUPTED = 1, 2, 130

_DESCRIPTION = """\
Reads, checks, rescues and converts files of {formats}, without the engine that wrote them.
"""

_EPILOG = """\
first steps:
  coldframe detect *                                  the formats of these files
  coldframe meta 000000_0                             the metadata of a file
  coldframe head 000000_0       -c id,name -n 5       the first rows
  coldframe head old.rc --schema 'id bigint, name string' --serde text
  coldframe verify warehouse/events/*.rc              is it intact? exit code 1 if not
  coldframe salvage broken.rc rescued.parquet         what can be saved
  coldframe sizes events.orc                          which column takes the bytes?
  coldframe get cf/3f2a77 row-17                      one row, by its key
  coldframe diff old.rc new.parquet --by id           the same rows?
  coldframe tables hadoop-disks/                      which tables lie here?
  coldframe sql "select count(*) from 'events.orc'"   any query, by DuckDB
  coldframe convert 'events/*.rc'  all.parquet --where "dt >= '2014-01-01'"
  coldframe migrate hdfs-dump/ new/ --to parquet      a whole estate, on Spark
  coldframe audit new/                                is the target still as it was verified?
  coldframe delete new/_coldframe/safe-to-delete.txt  deletes the sources that are proved to be there
  coldframe -v count hdfs:///warehouse/events         what does it wait for?

exit codes: 0 success; 1 damage or mismatch; 2 usage, unsupported, not found; 3 stopped by a disk, a
permission or a store (migrate, delete); 130 interrupted
'coldframe COMMAND --help' shows the options and examples of a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.showwarning = _show_warning
    out = stream_of(sys.stdout)
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="surrogateescape")  # file names need not be UTF-8
    with printed_safely():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        parsed = _parser(arguments).parse_args(arguments)
        run: Callable[[argparse.Namespace], int | None] = parsed.run
        code = 0
        with (
            log_to_stderr(verbosity_of(parsed)),
            paged(parsed.command in _PAGED and not parsed.no_pager),
        ):
            code = run(parsed) or 0
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. Without the redirection, Python reports the closed pipe
        # again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        output.complain("interrupted")
        return INTERRUPTED
    except CorruptFileError as error:
        _complain(str(error), is_damage=True)
        return DAMAGED
    except (ColdframeError, ValueError, OSError, TypeError) as error:
        _complain(_as_options(str(error)))
        return FAILED


def _complain(message: str, *, is_damage: bool = False) -> None:
    """Prints an error, and below it the next step if the message names none."""
    message = shown_in(message)
    output.complain(message)
    if (step := next_step(message, is_damage=is_damage)) is not None:
        print(f"  next: {step}", file=sys.stderr)


def _as_options(message: str) -> str:
    """A message with arguments of `open` replaced by options of the command line."""
    return re.sub(r"\bby table=(?:\"<id>\")?: ", "by --option table=NAME: ", message)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning as one line, without its location in the code."""
    output.complain(f"warning: {shown_in(str(message))}")


def parser_of_all() -> argparse.ArgumentParser:
    """The parser with all commands; with `migrate` if Spark is installed."""
    return _parser(["migrate"])


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="coldframe",
        description=_DESCRIPTION.format(formats=", ".join(sorted(formats()))),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"coldframe {__version__}")
    parser.add_argument(
        "--no-pager", action="store_true", help="print directly to the terminal (or set COLDFRAME_PAGER=)"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    reading.add_parsers(commands)
    keys.add_parsers(commands)
    sizes.add_parsers(commands)
    diff.add_parsers(commands)
    sql.add_parsers(commands)
    dictionaries.add_parsers(commands)
    integrity.add_parsers(commands)
    rescue.add_parsers(commands)
    format_options.add_parser(commands)
    command = next((word for word in arguments if not word.startswith("-")), "")
    _add_migrate(commands, wanted=command == "migrate")
    _add_audit(commands, wanted=command in ("audit", "migrate"))
    delete.add_parser(commands)
    unswitch.add_parser(commands)
    completion.add_parser(commands, parser_of_all)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=lambda _: print(f"coldframe {__version__}"))
    add_verbose_options(parser, commands)
    return parser


def _add_migrate(commands: argparse._SubParsersAction[argparse.ArgumentParser], wanted: bool) -> None:
    """Adds `migrate`, which needs Spark: the command is loaded only if it is requested."""
    if wanted:
        try:
            from coldframe.cli.migrate import add_parser
        except ModuleNotFoundError as missing:
            if missing.name is not None and missing.name.split(".")[0] not in ("pyspark", "py4j"):
                raise
            reason = "migrate runs on Spark: install coldframe[spark], or pyspark beside coldframe"
        else:
            add_parser(commands)
            return
    else:
        reason = "migrate is not loaded"  # never printed: the command is loaded if it is named

    def refuse(_: argparse.Namespace) -> int:
        output.complain(reason)
        return FAILED

    parser = commands.add_parser(
        "migrate", help="convert and verify a whole directory tree, on Spark", add_help=not wanted
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=refuse)


def _add_audit(commands: argparse._SubParsersAction[argparse.ArgumentParser], wanted: bool) -> None:
    """Adds `audit`, which is also loaded only if it is requested; it needs no Spark."""
    if wanted:
        from coldframe.cli.audit import add_parser

        add_parser(commands)
        return
    parser = commands.add_parser(
        "audit", help="compare a migrated directory with the record of its migration"
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
