"""The values of arguments that take one of a few strings, as types for checkers and editors."""

from __future__ import annotations

from typing import Literal, TypeAlias

FormatName: TypeAlias = Literal["cfile", "hbase", "hfile", "hudi", "kudu", "orc", "rcfile", "redfile"]
WrittenFormat: TypeAlias = Literal["cfile", "hfile", "orc", "rcfile", "redfile"]
OnError: TypeAlias = Literal["raise", "skip", "null"]
