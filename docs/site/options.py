"""Writes docs/options.md: every option of every format, from the code.

python docs/site/options.py            writes the page
python docs/site/options.py --check    exit code 1 if the page is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coldframe._coldframe import formats

PAGE = Path(__file__).resolve().parents[1] / "options.md"


_HEAD = """# Options

Every option of `cf.open`, `cf.scan` and `cf.write`, of `--option` and `--write-option` on the command line,
of `.option(..)` in Spark and of tables.toml, by its common name. This page is generated from
the code (`python docs/site/options.py`). `format`, `storage_options`, `verify_checksums` and `keys` are
arguments for all formats: see [Python](api.md) and [stores](stores.md).

A size is a number of bytes, or text such as `64m`. Text on the command line and in Spark is parsed by the
type: `true` and `false`, numbers, JSON for maps, commas between names. Choices may be in upper or lower
case. `coldframe options` prints the same lists.
"""

Option = dict[str, Any]

_TYPES = {
    "flag": "true or false",
    "int": "integer",
    "float": "number",
    "bytes": "text or bytes",
    "choice": "",
    "open_choice": ", or other text",
    "names": "list of names",
    "map": "{name: value}",
    "time_range": "(time, time)",
    "schema": "columns",
}
"""The names of kinds of options, if they differ from the kind."""


def whole() -> str:
    """The page."""
    known = formats()
    common = _common([about["open"] for about in known.values()])
    parts = [
        _HEAD,
        "## All formats\n\nFor reading, with limits for the sizes that a file may claim:\n",
        _table(common),
    ]
    for name, about in known.items():
        own = {name: option for name, option in about["open"].items() if common.get(name) != option}
        parts.append(f"## {name}\n\n[The format's page](formats/{name}.md).\n")
        parts.append("Reading:\n\n" + _table(own) if own else "Reading: no other options.\n")
        if about["capabilities"]["needs_schema"]:
            parts.append(
                "`schema` gives the names and types of its columns, which the file does not store.\n"
            )
        if about["write"]:
            parts.append("Writing:\n\n" + _table(about["write"]))
        else:
            parts.append("Writing is not supported.\n")
    return "\n".join(parts)


def _common(options: list[dict[str, Option]]) -> dict[str, Option]:
    """The options that all formats have, with the same declaration."""
    first, *others = options
    return {name: text for name, text in first.items() if all(more.get(name) == text for more in others)}


def _table(options: dict[str, Option]) -> str:
    lines = [
        f"| {_name(name, option)} | {_type(option)} | {_default(option)} | {_cell(option['help'])} |"
        for name, option in sorted(options.items())
    ]
    return "\n".join(["| option | type | default | |", "|---|---|---|---|", *lines]) + "\n"


def _name(name: str, option: Option) -> str:
    return ", ".join(f"`{spelling}`" for spelling in [name, *option["aliases"]])


def _type(option: Option) -> str:
    kind = option["kind"]
    return ", ".join(f"`{word}`" for word in option["choices"]) + _TYPES.get(kind, kind)


def _default(option: Option) -> str:
    value = option["default"]
    if value is None:
        return ""
    if option["kind"] == "size":
        for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
            if value and value % (1 << shift) == 0:
                return f"{value >> shift} {unit}"
    return str(value).lower() if isinstance(value, bool) else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Returns 1 if the page is out of date."""
    if "--check" not in arguments:
        PAGE.write_text(whole(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == whole():
        return 0
    print("docs/options.md is out of date: run python docs/site/options.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
