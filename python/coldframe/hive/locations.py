"""Maps locations in a metastore to the paths and URLs where the files are now.

file:/wh/t                                        /wh/t
hdfs:/wh/t                                        hdfs:///wh/t
hdfs://old/wh/t     {"hdfs://old/": "/mnt/"}      /mnt/wh/t
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NO_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/(?!/)")


@dataclass(frozen=True)
class Locations:
    """How locations of a metastore become paths and URLs that can be opened."""

    moved: Mapping[str, str] = field(default_factory=dict)
    """Prefixes and their replacements. The longest prefix wins; a prefix matches whole names of a path."""

    def readable(self, location: str) -> str:
        """The path or URL of a location."""
        plain = _plain(location)
        for old in sorted(self.moved, key=len, reverse=True):
            start = _plain(old).rstrip("/")
            if f"{plain}/".startswith(f"{start}/"):
                return self.moved[old].rstrip("/") + plain[len(start) :]
        return plain


def _plain(location: str) -> str:
    text = location.rstrip("/") or location
    match = _NO_AUTHORITY.match(text)
    if match is not None and match.group(1).lower() != "file":
        text = f"{match.group(1)}://{text[match.end() - 1 :]}"
    for local in ("file://localhost/", "file:///", "file:/"):
        if text.lower().startswith(local):
            return "/" + text[len(local) :]
    return text
