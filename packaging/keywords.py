"""Writes python/coldframe/keywords.py: the options that formats declare as types of keywords.

python packaging/keywords.py            writes the module
python packaging/keywords.py --check    exit code 1 if the module is out of date
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from coldframe.options import declared

MODULE = Path(__file__).resolve().parents[1] / "python" / "coldframe" / "keywords.py"

_HEAD = '''"""The options that formats declare as types of keywords. Made by packaging/keywords.py."""

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
'''

# The classes with keywords that are no options of a format; OpenKeywords has the arguments that `open` names.
_TAIL = '''

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
'''

_TYPES = {
    "flag": ["bool"],
    "int": ["int"],
    "size": ["int", "str"],
    "float": ["float"],
    "text": ["str"],
    "bytes": ["bytes", "str"],
    "open_choice": ["str"],
    "names": ["Sequence[str]", "str"],
    "map": ["Mapping[str, Any]"],
    "time": ["Time"],
    "time_range": ["tuple[Time, Time]"],
    "schema": ["Any"],
}


def whole() -> str:
    """The module."""
    return (
        _HEAD
        + _class("OpenOptions", "What `open` takes besides its own arguments.", write=False)
        + _class("WriteOptions", "What `write` takes besides its own arguments.", write=True)
        + _TAIL
    )


def _class(name: str, about: str, *, write: bool) -> str:
    lines = [f"\n\nclass {name}(TypedDict, total=False):", f'    """{about}"""\n']
    for option, declarations in sorted(declared(write=write).items()):
        for known in dict.fromkeys(
            [option, *(alias for declaration in declarations for alias in declaration["aliases"])]
        ):
            lines.append(_annotation(known, declarations))
        helps = dict.fromkeys(declaration["help"] for declaration in declarations)
        text = "; or: ".join(helps).replace("\\", "\\\\")
        quoted = f'"""{text} """' if text.endswith('"') else f'"""{text}"""'
        lines.append(textwrap.fill(quoted, 106, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines) + "\n"


def _annotation(name: str, declarations: list[Any]) -> str:
    types: dict[str, None] = {}
    for option in declarations:
        if option["kind"] == "choice":
            types[f"Literal[{', '.join(map(_quoted, option['choices']))}]"] = None
        else:
            types.update(dict.fromkeys(_TYPES[option["kind"]]))
    if "Any" in types:
        return f"    {name}: Any"
    if "str" in types:
        types = {type: None for type in types if not type.startswith("Literal")}
    short = f"    {name}: {' | '.join([*types, 'None'])}"
    if len(short) <= 110:
        return short
    choices = dict.fromkeys(word for option in declarations for word in option["choices"])
    listed = textwrap.fill(
        ", ".join(map(_quoted, choices)), 102, initial_indent=" " * 8, subsequent_indent=" " * 8
    )
    others = [type for type in types if not type.startswith("Literal")]
    return f"    {name}: Literal[\n{listed}\n    ]" + "".join(f" | {type}" for type in [*others, "None"])


def _quoted(word: str) -> str:
    return f'"{word}"'


def main(arguments: list[str]) -> int:
    """Returns 1 if the module is out of date."""
    if "--check" not in arguments:
        MODULE.write_text(whole(), encoding="utf-8")
        return 0
    if MODULE.read_text(encoding="utf-8") == whole():
        return 0
    print(
        "python/coldframe/keywords.py is out of date: run python packaging/keywords.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
