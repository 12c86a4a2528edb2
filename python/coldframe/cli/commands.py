"""The commands and the modules that add them. A command line loads the module of its command alone; `--help`
and a mistyped command load none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from coldframe._coldframe import __version__
from coldframe.cli.summaries import SUMMARIES
from coldframe.cli.verbosity import add_verbose_options
from coldframe.options import format_names

_MODULES = {
    "reading": ("detect", "schema", "meta", "stats", "splits", "head", "cat", "count", "convert"),
    "keys": ("get", "scan", "keys", "bloom"),
    "sizes": ("sizes", "index"),
    "diff": ("diff",),
    "sql": ("sql", "summarize"),
    "table_list": ("tables",),
    "dictionaries": ("dictionary",),
    "integrity": ("inspect", "layout", "verify"),
    "rescue": ("salvage",),
    "format_options": ("options",),
    "migrate": ("migrate",),
    "audit": ("audit",),
    "status": ("status",),
    "delete": ("delete",),
    "unswitch": ("unswitch",),
    "sample": ("sample",),
    "completion": ("completion",),
}
_NAMES = [name for names in _MODULES.values() for name in names]
_OWN = ("help", "version")

_DESCRIPTION = """\
Reads, checks, rescues and converts files of {formats}, without the engine that wrote them.
"""

_EPILOG = """\
first steps:
  coldframe sample estate                             a small estate of all formats, to try this on
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
  coldframe status new/                               how far is it?
  coldframe audit new/                                is the target still as it was verified?
  coldframe delete new/_coldframe/safe-to-delete.txt  deletes the sources that are proved to be there
  coldframe -v count hdfs:///warehouse/events         what does it wait for?

exit codes: 0 success; 1 damage or mismatch; 2 usage, unsupported, not found; 3 stopped by a disk, a
permission or a store (migrate, delete); 130 interrupted
'coldframe help COMMAND' shows the options and examples of a command.
"""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    import difflib

    names = list(known)
    by_lower = {name.lower(): name for name in reversed(names)}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


class Parser(argparse.ArgumentParser):
    """A parser that answers a mistyped word with the nearest one."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but each command refuses what it does not know, with the nearest option."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
            meant = nearest(option, self._option_string_actions) if option else None
            self.refuse(f"unrecognized arguments: {' '.join(unknown)}", meant)
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        known = [str(choice) for choice in action.choices]
        name = "" if what == "command" else f"argument {'/'.join(action.option_strings) or action.dest}: "
        self.refuse(f"{name}no {what} {value!r}: one of {', '.join(known)}", nearest(str(value), known))

    def refuse(self, message: str, meant: str | None) -> NoReturn:
        """Ends the command, with the word that was probably meant."""
        self.error(message if meant is None else f"{message}\n  next: did you mean {meant!r}?")


def parser_of_all() -> Parser:
    """The parser with all commands; with `migrate` if Spark is installed."""
    return _parser([*_MODULES], loaded=True)


def parser_for(arguments: Sequence[str]) -> Parser:
    """The parser for a command line: with its command alone, or with the names of all if none is named."""
    words = [word for word in arguments if not word.startswith("-")]
    named = words[1] if words[:1] == ["help"] and len(words) > 1 else words[0] if words else ""
    modules = [module for module, names in _MODULES.items() if named in names]
    return _parser(modules or [*_MODULES], loaded=bool(modules))


def _parser(modules: Sequence[str], *, loaded: bool) -> Parser:
    """`loaded`: whether the commands are added in full. A list of the commands needs only their names."""
    parser = Parser(
        prog="coldframe",
        description=_DESCRIPTION.format(formats=", ".join(sorted(format_names()))),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"coldframe {__version__}")
    parser.add_argument(
        "--no-pager", action="store_true", help="print directly to the terminal (or set COLDFRAME_PAGER=)"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for module in modules:
        if not loaded:
            for name in _MODULES[module]:
                commands.add_parser(name, help=SUMMARIES[name])
        elif module == "migrate":
            _add_migrate(commands)
        else:
            import_module(f"coldframe.cli.{module}").add_parsers(commands)
    _add_help(commands, parser)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=lambda _: print(f"coldframe {__version__}"))
    add_verbose_options(parser, commands)
    return parser


def _add_help(commands: Any, whole: Parser) -> None:
    parser = commands.add_parser("help", help="show the options and examples of a command")
    parser.add_argument("topic", metavar="COMMAND", nargs="?", help="the command (default: all commands)")

    def show(args: argparse.Namespace) -> None:
        if args.topic is not None and args.topic not in commands.choices:
            known = [*_NAMES, *_OWN]
            message = f"no command {args.topic!r}: one of {', '.join(known)}"
            whole.refuse(message, nearest(args.topic, known))
        (whole if args.topic is None else commands.choices[args.topic]).print_help()

    parser.set_defaults(run=show)


def _add_migrate(commands: Any) -> None:
    """Adds `migrate`, which needs Spark."""
    try:
        import_module("coldframe.cli.migrate").add_parsers(commands)
        return
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.split(".")[0] not in ("pyspark", "py4j"):
            raise

    def refuse(_: argparse.Namespace) -> int:
        reason = "migrate runs on Spark: install coldframe[spark], or pyspark beside coldframe"
        print(f"coldframe: {reason}", file=sys.stderr)
        return 2

    parser = commands.add_parser("migrate", help=SUMMARIES["migrate"], add_help=False)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=refuse)
